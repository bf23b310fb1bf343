"""``memlint doctor`` as it is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import resources
from pathlib import Path

import click
import jsonschema
import pytest
from click.testing import CliRunner

from memlint.cli.doctor import doctor
from memlint.doctor import examine as examine_module
from memlint.doctor.facts import torch_build
from memlint.doctor.lines import Line, attention, bad, good
from memlint.doctor.machine import Machine

MEMLINT = Path(sys.executable).with_name("memlint")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    return subprocess.run(
        [str(MEMLINT), "doctor", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def test_it_shows_this_machine_without_colours_in_a_pipe() -> None:
    done = run()

    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "page size" in done.stdout


def test_json() -> None:
    done = run("--json")
    path = resources.files("memlint").joinpath("schemas/doctor.schema.json")

    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads(path.read_text("utf-8")))
    assert document["platform"] == sys.platform


@pytest.mark.parametrize(
    ("line", "arguments", "status"),
    [
        (bad("x", "y"), ["--strict"], 1),
        (bad("x", "y"), [], 0),
        (bad("x", "y"), ["--strict", "--json"], 1),
        (attention("x", "y"), ["--strict"], 0),
        (good("x", "y"), ["--strict"], 0),
    ],
)
def test_strict_is_about_what_is_bad(
    line: Line, arguments: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def say(machine: Machine) -> Line:
        return line

    monkeypatch.setattr(examine_module, "CHECKS", (say,))
    monkeypatch.setattr(torch_build, "ask_torch", lambda: lambda: torch_build.NOT_INSTALLED)

    with click.Context(doctor):
        done = CliRunner().invoke(doctor, arguments, standalone_mode=False)

    assert done.return_value == status


def test_it_imports_neither_pytorch_nor_numpy() -> None:
    code = (
        "import sys\n"
        "from memlint.doctor.host import this_host\n"
        "from memlint.doctor.machine import read_machine\n"
        "from memlint.doctor.examine import examine\n"
        "from memlint.doctor.facts.torch_build import ask_torch\n"
        "examine(read_machine(this_host(), ask_torch()))\n"
        "print(sorted({'torch', 'numpy', 'libcst'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_check_does_not_import_it() -> None:
    code = (
        "import sys\n"
        "from memlint.cli.main import main\n"
        "try:\n"
        "    main(['check', '--isolated', '--no-cache', sys.argv[1]])\n"
        "except SystemExit:\n"
        "    pass\n"
        "print([name for name in sys.modules if name.startswith('memlint.doctor')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, __file__], capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines()[-1] == "[]"
