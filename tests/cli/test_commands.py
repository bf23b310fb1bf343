"""The other commands, and what the command line does not import."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import memlint
from tests.cli.conftest import Shell
from tests.rules.linting import SECTIONS


def modules_after(shell: Shell, *arguments: str) -> set[str]:
    """The modules that a command has imported when it is through."""
    program = (
        "import sys\n"
        "from memlint.cli.main import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "except SystemExit:\n"
        "    print('\\nmodules:', *sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=shell.folder,
        env=shell.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return set(done.stdout.rpartition("modules:")[2].split())


def test_version_imports_next_to_nothing(shell: Shell) -> None:
    assert shell.memlint("--version", status=0).stdout == f"memlint {memlint.__version__}\n"
    modules = modules_after(shell, "--version")
    assert {name for name in modules if name.split(".")[0] == "memlint"} == {
        "memlint",
        "memlint.cli",
        "memlint.cli.main",
        "memlint.cli.status",
    }


def test_check_imports_no_heavy_library(everything: Shell) -> None:
    modules = modules_after(everything, "check", "--no-cache")
    assert "memlint.linter.run" in modules
    heavy = {"torch", "numpy", "numba", "triton", "rich", "libcst", "jsonschema", "pathspec"}
    assert not heavy & modules


def test_python_dash_m(shell: Shell) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memlint", "--version"],
        capture_output=True,
        text=True,
        env=shell.environment,
        timeout=60,
    )
    assert done.stdout.startswith("memlint ")


def test_usage_errors(shell: Shell) -> None:
    assert "check" in shell.memlint("--help", status=0).stdout
    assert "No such command" in shell.memlint("chek", status=2).stderr
    assert "--selct" in shell.memlint("check", "--selct", "X", status=2).stderr
    assert shell.memlint("explain", status=2).stdout == ""


def test_rules_lists_all_rules(shell: Shell) -> None:
    lines = shell.memlint("rules", status=0).stdout.splitlines()
    assert lines[0].split() == ["code", "name", "severity", "default", "fix", "summary"]
    rows = {line.split()[0]: line.split(maxsplit=5) for line in lines[1:]}
    assert rows["TOY104"][1:] == [
        "shy-call",
        "warning",
        "off",
        "none",
        "A call is flagged only on demand.",
    ]
    assert rows["TOY101"][4] == "safe"
    assert "MEM901" in rows
    data = json.loads(shell.memlint("rules", "--output-format", "json", status=0).stdout)
    by_code = {rule["code"]: rule for rule in data}
    assert list(by_code) == list(rows)
    assert by_code["TOY101"]["options"]["limit"] == {"default": 3, "help": "How much is too much."}
    assert by_code["TOY201"]["family"] == "doubt"


def test_explain_shows_a_page(shell: Shell) -> None:
    page = shell.memlint("explain", "flagged-call", status=0).stdout
    assert page.startswith("# flagged-call (TOY101)\n\nseverity **warning**")
    assert "## What it does\nFlags calls of `flag_me`." in page
    assert "- `rules.flagged-call.limit` (default `3`): How much is too much." in page
    assert shell.memlint("explain", "toy101", "--format", "markdown", status=0).stdout == page
    data = json.loads(shell.memlint("explain", "TOY101", "--format", "json", status=0).stdout)
    assert data["name"] == "flagged-call"
    assert data["page"].startswith("A call is flagged.")
    coloured = shell.memlint("explain", "TOY101", "--color", "always", status=0).stdout
    assert "\x1b[" in coloured
    assert "##" not in coloured
    unknown = shell.memlint("explain", "flaged-call", status=2)
    assert "unknown rule 'flaged-call' (did you mean 'flagged-call'?)" in unknown.stderr


def install_pack(shell: Shell, package: str) -> None:
    """Put a rule pack of the folder beside the toy pack."""
    points = f"[memlint.rules]\nmine = {package}\n"
    shell.write("pack/my_pack-1.0.dist-info/entry_points.txt", points)
    shell.write("pack/my_pack-1.0.dist-info/METADATA", "Name: my-pack\nVersion: 1.0\n")
    paths = (str(shell.folder / "pack"), shell.environment["PYTHONPATH"])
    shell.environment["PYTHONPATH"] = os.pathsep.join(paths)


def test_a_broken_rule_pack_is_named_and_the_others_work(everything: Shell) -> None:
    everything.write("pack/my_rules/__init__.py", "")
    everything.write("pack/my_rules/bad.py", "raise ValueError('not today')\n")
    install_pack(everything, "my_rules")
    everything.environment["PYTHONDONTWRITEBYTECODE"] = "1"
    listed = everything.memlint("rules", status=2)
    assert "TOY101" in listed.stdout
    assert "error: my_rules.bad: rule could not be loaded: ValueError('not today')" in listed.stderr
    found = everything.memlint("check", "all.py", status=1)
    assert "flagged-call" in found.stdout
    assert "my_rules.bad" in found.stderr
    for command in ("explain", "bench"):
        unknown = everything.memlint(command, "my-rule", status=2)
        assert "my_rules.bad" in unknown.stderr
        assert "unknown rule" in unknown.stderr


def test_a_new_rule_works_at_once(shell: Shell) -> None:
    shell.write("pack/my_rules/__init__.py", "")
    (shell.folder / "fixtures").mkdir()
    where = ("--pack", "pack/my_rules", "--fixtures", "fixtures")
    written = shell.memlint("new-rule", "loaders", "single-sample", "MINE101", *where, status=0)
    names = [Path(line).as_posix() for line in written.stdout.splitlines()]
    assert sorted(names) == [
        "fixtures/loaders/single-sample/bad_1.py",
        "fixtures/loaders/single-sample/good_1.py",
        "pack/my_rules/loaders/__init__.py",
        "pack/my_rules/loaders/single_sample.py",
    ]
    install_pack(shell, "my_rules")
    (finding,) = shell.json("--select", "single-sample", "fixtures", status=0)["findings"]
    marked = (shell.folder / finding["path"]).read_text("utf-8").splitlines()
    assert marked[finding["location"]["line"] - 1].endswith("# expect: single-sample")
    page = shell.memlint("explain", "MINE101", status=0).stdout
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert len(headings) == len(SECTIONS)
    for heading, allowed in zip(headings, SECTIONS, strict=True):
        assert heading == allowed or heading in allowed
    example, instead = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    select = ("--select", "single-sample", "-")
    assert len(shell.json(*select, stdin=example)["findings"]) == 1
    assert shell.json(*select, stdin=instead)["findings"] == []
    again = shell.memlint("new-rule", "loaders", "single-sample", "MINE102", *where, status=2)
    assert "single-sample is taken: MINE101" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("loaders", "BadName", "NEW101"), "NAME must be in kebab case"),
        (("loaders", "good-name", "new1"), "CODE must be letters and three digits"),
        (("Bad-family", "good-name", "NEW101"), "FAMILY must be the name of a package"),
        (("noise", "flagged-call", "NEW101"), "flagged-call is taken: TOY101"),
        (("noise", "good-name", "TOY101"), "TOY101 is taken: TOY101 flagged-call"),
        (("noise", "good-name", "TOY301"), "codes of noise begin with TOY1, TOY301 does not"),
        (("loaders", "good-name", "TOY199"), "begin with TOY1 are of noise, not of loaders"),
    ],
)
def test_a_new_rule_needs_good_names(
    shell: Shell, arguments: tuple[str, ...], message: str
) -> None:
    where = ("--pack", ".", "--fixtures", ".")
    done = shell.memlint("new-rule", *arguments, *where, status=2)
    assert message in done.stderr
    assert list(shell.folder.iterdir()) == []
