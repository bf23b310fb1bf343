"""``memlint check --fix`` and what belongs to it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import EVERYTHING, Shell

ROOT = Path(__file__).parents[2]
FIXED = EVERYTHING.replace("flag_me", "spare_me")


@pytest.fixture
def project(shell: Shell) -> Shell:
    shell.write("all.py", EVERYTHING)
    shell.write("one.py", "flag_me()\n")
    shell.write("clean.py", "x = 1\n")
    return shell


def content(shell: Shell, name: str) -> str:
    return (shell.folder / name).read_bytes().decode()


def test_fix_reports_what_remains(project: Shell) -> None:
    done = project.memlint("check", "--fix", "--output-format", "concise", status=1)
    assert [line.split()[1] for line in done.stdout.splitlines()[:3]] == [
        "error[TOY102]",
        "info[TOY103]",
        "warning[TOY202]",
    ]
    assert done.stdout.splitlines()[3:] == [
        "3 findings (1 error, 1 warning, 1 info) in 3 files.",
        "Fixed 2 findings in 2 files.",
    ]
    assert done.stderr == ""
    assert content(project, "all.py") == FIXED
    assert content(project, "one.py") == "spare_me()\n"
    again = project.memlint("check", "--fix", status=1)
    assert "Fixed" not in again.stdout
    project.memlint("check", "--fix", "one.py", status=0)


def test_the_exit_status_speaks_of_what_remains(shell: Shell) -> None:
    shell.write("one.py", "flag_me()\n")
    shell.memlint("check", "--fix", status=0)
    shell.write("one.py", "flag_me()\nlight()\n")
    shell.memlint("check", "--fix", status=0)
    shell.write("one.py", "flag_me()\ngrave()\n")
    shell.memlint("check", "--fix", "--exit-zero", status=0)
    shell.write("bad.py", "flag_me(\n")
    shell.write("one.py", "flag_me()\n")
    done = shell.memlint("check", "--fix", status=2)
    assert done.stderr.startswith("error: bad.py:1:")
    assert content(shell, "one.py") == "spare_me()\n"
    assert content(shell, "bad.py") == "flag_me(\n"


def test_a_report_for_machines_holds_nothing_else(project: Shell) -> None:
    done = project.memlint("check", "--fix", "--output-format", "json", status=1)
    assert [f["code"] for f in json.loads(done.stdout)["findings"]] == [
        "TOY102",
        "TOY103",
        "TOY202",
    ]
    assert done.stderr == "Fixed 2 findings in 2 files.\n"


def test_fix_only_reports_nothing_else(project: Shell) -> None:
    done = project.memlint("check", "--fix-only", status=0)
    assert done.stdout == "Fixed 2 findings in 2 files.\n"
    assert content(project, "all.py") == FIXED
    assert project.memlint("check", "--fix-only", status=0).stdout == ""
    project.write("bad.py", "flag_me(\n")
    assert project.memlint("check", "--fix-only", status=2).stderr.startswith("error: bad.py")
    project.memlint("check", "--fix-only", "-o", "report", status=2)


def test_fixes_are_listed_on_demand(project: Shell) -> None:
    done = project.memlint("check", "--fix-only", "--show-fixes", status=0)
    assert done.stdout == (
        "all.py:2:1: TOY101 flagged-call: call spare_me\n"
        "one.py:1:1: TOY101 flagged-call: call spare_me\n"
        "Fixed 2 findings in 2 files.\n"
    )
    project.write("one.py", "flag_me()\n")
    quiet = project.memlint("check", "--fix-only", "--show-fixes", "-q", status=0)
    assert quiet.stdout == "one.py:1:1: TOY101 flagged-call: call spare_me\n"


def test_a_diff_changes_nothing_and_can_be_applied(project: Shell) -> None:
    project.write("crlf.py", "x = 1\r\nflag_me()\r\ny = 2")
    before = {path.name: path.read_bytes() for path in project.folder.glob("*.py")}
    done = subprocess.run(
        project.command("check", "--diff"),
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == b"Would fix 3 findings in 3 files.\n"
    assert {path.name: path.read_bytes() for path in project.folder.glob("*.py")} == before
    assert done.stdout.startswith(
        b"--- all.py\n+++ all.py\n@@ -1,5 +1,5 @@\n"
        b" origin = 3\n-flag_me(origin)\n+spare_me(origin)\n"
    )
    assert b"-flag_me()\r\n+spare_me()\r\n y = 2\n\\ No newline at end of file\n" in done.stdout
    subprocess.run(["git", "apply", "-p0"], cwd=project.folder, input=done.stdout, check=True)
    assert content(project, "crlf.py") == "x = 1\r\nspare_me()\r\ny = 2"
    assert content(project, "all.py") == FIXED
    nothing = project.memlint("check", "--diff", status=0)
    assert (nothing.stdout, nothing.stderr) == ("", "")


def test_a_diff_may_go_to_a_file_or_in_colour(project: Shell) -> None:
    done = project.memlint("check", "--diff", "-q", "-o", "changes.diff", "one.py", status=1)
    assert (done.stdout, done.stderr) == ("", "")
    expected = "--- one.py\n+++ one.py\n@@ -1 +1 @@\n-flag_me()\n+spare_me()\n"
    assert content(project, "changes.diff") == expected
    painted = project.memlint("check", "--diff", "--color", "always", "one.py", status=1).stdout
    assert "\x1b[1;32m+spare_me()\x1b[0m\n" in painted
    project.memlint("check", "--diff", "--exit-zero", "one.py", status=0)
    project.memlint("check", "--diff", "--fix", "one.py", status=1)
    assert content(project, "one.py") == "flag_me()\n"


def test_standard_input_is_handed_on_fixed(shell: Shell) -> None:
    done = shell.memlint("check", "--fix", "-", stdin="flag_me()\ngrave()\n", status=1)
    assert done.stdout == "spare_me()\ngrave()\n"
    assert " --> <stdin>:2:1\n" in done.stderr
    assert "2 | grave()\n" in done.stderr
    assert done.stderr.endswith("Fixed 1 finding in 1 file.\n")
    quiet = shell.memlint("check", "--fix-only", "-q", "-", stdin="flag_me()\ngrave()\n", status=0)
    assert (quiet.stdout, quiet.stderr) == ("spare_me()\ngrave()\n", "")
    for program in ("x = 1\n", "", "flag_me(\n"):
        assert shell.memlint("check", "--fix", "-", stdin=program).stdout == program
    named = ("-", "--stdin-filename", "sub/x.py")
    diff = shell.memlint("check", "--diff", *named, stdin="flag_me()\n", status=1)
    assert diff.stdout.startswith("--- sub/x.py\n+++ sub/x.py\n")
    shell.write("sub/memlint.toml", 'ignore = ["TOY101"]\n')
    done = shell.memlint("check", "--fix", *named, stdin="flag_me()\n", status=0)
    assert done.stdout == "flag_me()\n"


def test_only_files_that_are_checked_are_fixed(project: Shell) -> None:
    project.write("memlint.toml", 'extend-exclude = ["all.py"]\n')
    project.write("sub/memlint.toml", 'ignore = ["flagged-call"]\n')
    project.write("sub/two.py", "flag_me()\n")
    project.write("accepted.py", "flag_me()  # memlint: ignore\n")
    done = project.memlint("check", "--fix", "--show-fixes", status=0)
    assert done.stdout.splitlines()[1:] == [
        "one.py:1:1: TOY101 flagged-call: call spare_me",
        "Fixed 1 finding in 1 file.",
    ]
    assert content(project, "all.py") == EVERYTHING
    assert content(project, "sub/two.py") == "flag_me()\n"


def test_the_baseline_is_not_fixed(project: Shell) -> None:
    project.memlint("check", "--baseline", "b.json", "--write-baseline", status=0)
    project.write("one.py", "flag_me()\nflag_me(2)\n")
    done = project.memlint("check", "--fix", "--baseline", "b.json", status=0)
    assert done.stdout == "No findings in 3 files; 5 in the baseline.\nFixed 1 finding in 1 file.\n"
    assert content(project, "one.py") == "flag_me()\nspare_me(2)\n"
    assert content(project, "all.py") == EVERYTHING


def test_the_cache_knows_fixed_files_as_they_are(project: Shell) -> None:
    old = time.time() - 1000
    for path in project.folder.glob("*.py"):
        os.utime(path, (old, old))
    assert project.codes() == "101 102 103 202 101"
    project.memlint("check", "--fix", status=1)
    fresh = project.json("--no-cache")
    assert project.json() == fresh
    assert [f["code"] for f in fresh["findings"]] == ["TOY102", "TOY103", "TOY202"]
    last = project.memlint("check", "-v").stderr.splitlines()[-1]
    assert "(3 from the cache)" in last


@pytest.mark.skipif(sys.platform == "win32", reason="needs symbolic links and modes")
def test_links_and_modes_are_kept(shell: Shell) -> None:
    real = shell.write("elsewhere/real.py", "flag_me()\n")
    real.chmod(0o750)
    (shell.folder / "src").mkdir()
    (shell.folder / "src" / "link.py").symlink_to(real)
    done = shell.memlint("check", "--fix-only", "--show-fixes", "src", status=0)
    assert done.stdout.startswith("src/link.py:1:1: ")
    assert (shell.folder / "src" / "link.py").is_symlink()
    assert real.read_text() == "spare_me()\n"
    assert real.stat().st_mode & 0o777 == 0o750
    assert os.listdir(real.parent) == ["real.py"]
    real.write_text("flag_me()\n")
    both = shell.memlint("check", "--fix-only", "src/link.py", "elsewhere/real.py", status=0)
    assert both.stdout == "Fixed 1 finding in 1 file.\n"


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="needs a user whom modes bind"
)
def test_a_file_that_may_not_be_written_is_named(project: Shell) -> None:
    (project.folder / "one.py").chmod(0o444)
    done = project.memlint("check", "--fix", status=1)
    assert done.stderr == "error: one.py: cannot be fixed: permission denied\n"
    assert content(project, "one.py") == "flag_me()\n"
    assert "Fixed 1 finding in 1 file." in done.stdout


def test_a_notebook(shell: Shell) -> None:
    cell = {"cell_type": "code", "source": ["%pip list\n", "flag_me()"], "outputs": []}
    shell.write("a.ipynb", json.dumps({"cells": [cell]}, indent=1))
    done = shell.memlint("check", "--fix", "--show-fixes", status=0)
    assert "a.ipynb:cell 1:2:1: TOY101" in done.stdout
    cell["source"] = ["%pip list\n", "spare_me()"]
    assert content(shell, "a.ipynb") == json.dumps({"cells": [cell]}, indent=1)


def test_options_that_do_not_go_together(project: Shell) -> None:
    for arguments, words in (
        (["--unsafe-fixes"], "--unsafe-fixes is of use with --fix"),
        (["--show-fixes"], "--show-fixes is of use with --fix"),
        (["--fix", "--write-baseline", "--baseline", "b"], "cannot be combined with fixes"),
    ):
        done = project.memlint("check", *arguments, status=2)
        assert words in done.stderr
    assert project.memlint("check", "--fix", "--show-files", status=0).stdout.count(".py\n") == 3
    assert content(project, "one.py") == "flag_me()\n"


def test_unsafe_fixes_of_the_rules(shell: Shell) -> None:
    demo = shutil.copy(ROOT / "fixtures" / "demo" / "train.py", shell.folder / "train.py")
    program = Path(demo).read_text(encoding="utf-8")
    shell.memlint("check", "--isolated", "--fix-only", status=0)
    safe = content(shell, "train.py")
    assert safe != program
    done = shell.memlint("check", "--isolated", "--fix", "--unsafe-fixes", "-q")
    assert content(shell, "train.py") not in (program, safe)
    assert done.stderr == ""
    again = shell.memlint("check", "--isolated", "--diff", "--unsafe-fixes", status=0)
    assert (again.stdout, again.stderr) == ("", "")


def test_the_hook_fixes(shell: Shell) -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    (hook,) = (hook for hook in hooks if hook["id"] == "memlint-fix")
    shell.write("one.py", "flag_me()\n")
    command, *arguments = hook["entry"].split()
    assert command == "memlint"
    shell.memlint(*arguments, "one.py", status=0)
    assert content(shell, "one.py") == "spare_me()\n"
