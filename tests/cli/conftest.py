"""Runs the installed command, with a rule pack that flags calls by their names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MEMLINT = Path(sys.executable).with_name("memlint")
TOYPACK = Path(__file__).with_name("toypack")


class Shell:
    """A folder, and the command run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        unwanted = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "MEMLINT_TRACEBACK")
        self.environment = {k: v for k, v in os.environ.items() if k not in unwanted}
        self.environment["PYTHONPATH"] = str(TOYPACK)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def command(self, *arguments: str) -> list[str]:
        return [str(MEMLINT), *arguments]

    def memlint(
        self, *arguments: str, stdin: str = "", status: int | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env={**self.environment, **environment},
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=60,
        )
        assert "Traceback" not in done.stderr, done.stderr
        if status is not None:
            assert done.returncode == status, (done.stdout, done.stderr)
        return done

    def codes(self, *arguments: str, status: int | None = None) -> str:
        """The codes found, in order, without their letters."""
        found = self.json(*arguments, status=status)["findings"]
        return " ".join(finding["code"].removeprefix("TOY") for finding in found)

    def json(self, *arguments: str, status: int | None = None, stdin: str = "") -> Any:
        command = ("check", "--output-format", "json", *arguments)
        return json.loads(self.memlint(*command, status=status, stdin=stdin).stdout)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


EVERYTHING = """\
origin = 3
flag_me(origin)
grave()
light()
shy()
doubt_me()
suspect_me()
"""


@pytest.fixture
def everything(shell: Shell) -> Shell:
    """A folder whose one file holds a call of each kind."""
    shell.write("all.py", EVERYTHING)
    return shell
