"""The command line of this checkout, with or without the rules that can be seen at work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SEENPACK = Path(__file__).with_name("seenpack")


class Command:
    """A folder, and ``memlint`` run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        unwanted = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "RANK", "WORLD_SIZE")
        self.environment = {
            k: v for k, v in os.environ.items() if k not in unwanted and not k.startswith("PYTEST_")
        }
        paths = (ROOT, ROOT / "rules", SEENPACK)
        self.environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def python(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )

    def memlint(
        self, *arguments: str, status: int = 0, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        done = self.python("-m", "memlint", *arguments, **environment)
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        return done

    def check(self, *arguments: str, status: int = 1) -> list[dict[str, Any]]:
        """The findings of the rules that can be seen at work."""
        options = ("--select", "SEEN", "--no-cache", "--output-format", "json")
        done = self.memlint("check", *options, *arguments, status=status)
        findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
        return findings

    def load(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text("utf-8"))

    def store(self, name: str, document: Any) -> None:
        (self.folder / name).write_text(json.dumps(document), encoding="utf-8")
