"""Section by section, what may be wrong with a tree: never a traceback, never a lost finding.

Each test runs the installed command over a bad file and a good one.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import heed_interrupts
from tests.packs import FLAG_PACK, environment

MEMLINT = Path(sys.executable).with_name("memlint")
GOOD = "flag_me()\n"
FLAG = ["--select", "TST"]


def run(
    folder: Path, *arguments: str | bytes, stdin: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    ran = subprocess.run(
        [MEMLINT, "check", *(arguments or ["."]), *FLAG, "--output-format", "concise", "-q"],
        cwd=folder, env=environment(FLAG_PACK), input=stdin, capture_output=True, timeout=60,
    )  # fmt: skip
    assert b"Traceback" not in ran.stderr, ran.stderr.decode()
    assert b"Fatal Python" not in ran.stderr, ran.stderr.decode()
    return ran


def errors(ran: subprocess.CompletedProcess[bytes]) -> list[str]:
    return [line for line in ran.stderr.decode().splitlines() if line.startswith("error: ")]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "good.py").write_text(GOOD)
    return tmp_path


def assert_one_error(folder: Path, bad: str, message: str) -> None:
    """The bad file is one error, the good file's finding is there, and the status is 1."""
    ran = run(folder)
    (error,) = errors(ran)
    assert error.startswith(f"error: {bad}:"), error
    assert message in error
    assert ran.stdout.startswith(b"good.py:1:1:"), ran.stdout
    assert len(ran.stdout.splitlines()) == 1
    assert ran.returncode == 1
    (folder / "good.py").unlink()
    alone = run(folder)
    assert (alone.returncode, alone.stdout, errors(alone)) == (2, b"", [error])


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.py", b"flag_me(\n", "1:8: cannot be parsed as Python"),
        ("a.py", b"x = 1\nprint 'flag_me'\n", "2:1: cannot be parsed as Python"),
        ("a.py", b"if x:\nflag_me()\n", "2:1: cannot be parsed as Python"),
        ("a.py", b"if x:\n\tflag_me()\n        y\n", "3:"),
        ("a.py", b"flag_me()\ns = '\xff\xfe'\n", "2:6: is not valid UTF-8"),
        ("a.py", b"# coding: klingon\nflag_me()\n", "unknown encoding 'klingon'"),
        ("a.py", b"\xef\xbb\xbf# coding: latin-1\nflag_me()\n", "byte order mark"),
        ("a.py", b"flag_me()\0\n", "1:10: contains NUL bytes"),
        ("a.py", "flag_me()\n".encode("utf-16"), "is encoded in UTF-16"),
        ("a.py", b"\0" * 1000, "1:1: contains NUL bytes"),
        ("a.py", b"\x7fELF\x02\x01\0flag_me", "contains NUL bytes"),
        ("a.py", b"flag_me" + b"(" * 5000 + b")" * 5000, "cannot be parsed as Python"),
        ("a.ipynb", b"{", "is not a valid notebook"),
        ("a.ipynb", b"", "is not a valid notebook"),
        ("a.ipynb", b'{"cells": [{"cell_type": "code", "source": "f("}]}', "cell 1:1:2: cannot be"),
        ("a.ipynb", b'{"cells": [{"cell_type": "code", "source": "f(\\ud800)"}]}', "cannot be"),
        ("a.py", b"flag_me()\n#" + b"x" * 2_000_000, "max-file-size"),
        ("a.py", b"misbehave_raise\n", "rule misbehaving failed: KeyError"),
        ("a.py", b"misbehave_none\n", "rule misbehaving failed: TypeError: a check yielded None"),
        ("a.py", b"misbehave_module\n", "rule misbehaving failed: TypeError: a finding is at a"),
        ("a.py", b"misbehave_far\n", "rule misbehaving failed: ValueError: a finding is at line"),
        ("a.py", b"misbehave_number\n", "rule misbehaving failed: TypeError: a finding has a te"),
        ("a.py", b"misbehave_related\n", "rule misbehaving failed: TypeError: a finding is at"),
        ("a.py", b"misbehave_word\n", "rule misbehaving failed: TypeError: a finding has no sev"),
        ("a.py", b"misbehave_abort\n", "died (SIGABRT)"),
        ("a.py", b"misbehave_exit\n", "died (exit status 7)"),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_error(project: Path, name: str, data: bytes, message: str) -> None:
    (project / name).write_bytes(data)
    assert_one_error(project, name, message)


DEEP = 5000


@pytest.mark.parametrize(
    "text",
    [
        "flag_me()" + ".a" * DEEP,
        "x = " + "-" * DEEP + "flag_me()",
        "x = " + " + ".join(["flag_me()"] * DEEP),
        "x = flag_me()" + "()" * DEEP,
        "x = flag_me()" + "[0]" * DEEP,
        "x = " + "lambda: " * DEEP + "flag_me()",
        "x = " + "not " * DEEP + "flag_me()",
        "x = " + "a if b else " * DEEP + "flag_me()",
        "\n".join(" " * level + "if x:" for level in range(95)) + "\n" + " " * 95 + "flag_me()",
        "if x: pass\n" + "elif x: pass\n" * DEEP + "flag_me()",
        "flag_me('" + "\\n" * DEEP + "')",
    ],
    ids=range(11),
)
def test_deep_nesting_is_worked_through_or_one_error(project: Path, text: str) -> None:
    (project / "deep.py").write_text(f"import torch, numpy, numba\n{text}\n")
    ran = run(project, ".", "--extend-select", "ALL")
    assert b"good.py:1:1:" in ran.stdout
    assert ran.returncode == 1
    complaints = errors(ran)
    assert len(complaints) <= 1
    assert complaints or b"deep.py:" in ran.stdout


@pytest.mark.parametrize(
    "data",
    [
        b"flag_me()\r\nflag_me()\r\n",
        b"flag_me()\rflag_me()\r",
        b"\xef\xbb\xbfflag_me()\nflag_me()",
        b"\x0cflag_me()\n\x0c\x0cflag_me()\n",
        b"# coding: latin-1\ns = '\xe9', flag_me(); flag_me()\n",
        b"#!/usr/bin/python\r\n# -*- coding: cp1252 -*-\r\nflag_me(), flag_me()",
        "def π(): return flag_me(), flag_me()\n".encode(),
    ],
)
def test_odd_but_sound_files_are_linted(project: Path, data: bytes) -> None:
    (project / "odd.py").write_bytes(data)
    ran = run(project)
    assert ran.stdout.count(b"odd.py:") == 2
    assert errors(ran) == []


def test_empty_files_and_empty_notebooks(project: Path) -> None:
    for name in ("a.py", "__init__.py"):
        (project / name).write_bytes(b"")
    (project / "a.ipynb").write_text('{"cells": []}')
    ran = run(project)
    assert (errors(ran), ran.returncode) == ([], 1)


def test_the_size_limit_can_be_raised(project: Path) -> None:
    (project / "big.py").write_bytes(b"flag_me()\n#" + b"x" * 2_000_000)
    (project / "memlint.toml").write_text("max-file-size = 4000000\n")
    ran = run(project)
    assert b"big.py:1:1:" in ran.stdout
    assert errors(ran) == []


def test_a_generated_file_under_the_limit_is_linted_in_time(project: Path) -> None:
    (project / "big.py").write_text("flag_me\n" + "x = [1, 2, 3]\n" * 130_000)
    started = time.monotonic()
    assert run(project).returncode == 1
    assert time.monotonic() - started < 40


def test_broken_links_and_loops(project: Path) -> None:
    (project / "broken.py").symlink_to("nowhere")
    (project / "self.py").symlink_to("self.py")
    (project / "around").symlink_to(project)
    ran = run(project)
    assert [e.split(":")[1].strip() for e in errors(ran)] == ["broken.py", "self.py"]
    assert ran.stdout.count(b"good.py") == 1


@pytest.mark.skipif(os.name != "posix", reason="needs permission bits")
def test_unreadable_files_and_folders(project: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("the superuser may read everything")
    (project / "locked.py").write_text(GOOD)
    (project / "locked.py").chmod(0)
    (project / "shut").mkdir(mode=0)
    ran = run(project)
    assert [e.split(":")[1].strip() for e in errors(ran)] == ["locked.py", "shut"]
    assert b"good.py:1:1:" in ran.stdout


def test_a_file_that_cannot_be_read(project: Path) -> None:
    # A socket cannot be opened by anyone, the superuser included.
    script = "import socket, sys; socket.socket(socket.AF_UNIX).bind('x.py')"
    subprocess.run([sys.executable, "-c", script], cwd=project, check=True, timeout=30)
    ran = run(project, ".", "x.py")
    assert errors(ran) == ["error: x.py: not a regular file"]
    assert b"good.py:1:1:" in ran.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that takes any bytes")
@pytest.mark.parametrize("form", ["concise", "full", "json", "sarif", "github"])
def test_names_with_odd_bytes(project: Path, form: str) -> None:
    odd = os.fsencode(project) + b"/odd\xff\n\x1b[31m.py"
    with open(odd, "wb") as file:
        file.write(GOOD.encode())
    bad = os.fsencode(project) + b"/bad\xfe.py"
    with open(bad, "wb") as file:
        file.write(b"flag_me(")
    ran = subprocess.run(
        [MEMLINT, "check", *FLAG, "--output-format", form], cwd=project,
        env=environment(FLAG_PACK), capture_output=True, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 1, ran.stderr
    assert b"Traceback" not in ran.stderr
    assert b"\x1b" not in ran.stdout
    assert b"good.py" in ran.stdout
    assert b"odd" in ran.stdout
    assert b"bad" in ran.stderr
    if form in ("json", "sarif"):
        json.loads(ran.stdout)


def test_paths_that_are_not_there(project: Path) -> None:
    ran = run(project, "gone.py", "good.py", "gone/")
    assert errors(ran) == [
        "error: gone: cannot be read: no such file or directory",
        "error: gone.py: cannot be read: no such file or directory",
    ]
    assert b"good.py:1:1:" in ran.stdout


def test_a_file_that_vanishes(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import memlint
    from memlint.linter import run as running

    (project / "b.py").write_text(GOOD)
    monkeypatch.chdir(project)
    discover = running.discover

    def discover_then_remove(*arguments: object) -> object:
        found = discover(*arguments)  # type: ignore[arg-type]
        (project / "b.py").unlink()
        return found

    monkeypatch.setattr(running, "discover", discover_then_remove)
    report = memlint.check(["."], use_cache=False)
    assert [(e.path, e.message) for e in report.errors] == [
        ("b.py", "cannot be read: no such file or directory")
    ]


def test_a_rule_pack_that_cannot_be_imported(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pack = tmp_path_factory.mktemp("broken_pack")
    shutil.copytree(FLAG_PACK, pack, dirs_exist_ok=True)
    (pack / "flag_rules/broken.py").write_text("raise OSError('no licence')\n")
    ran = subprocess.run(
        [MEMLINT, "check", *FLAG, "--output-format", "concise"], cwd=project,
        env=environment(pack), capture_output=True, timeout=60,
    )  # fmt: skip
    assert b"good.py:1:1:" in ran.stdout
    assert b"flag_rules.broken" in ran.stderr
    assert b"no licence" in ran.stderr
    assert b"Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "broken",
            "import sys; sys.exit(3)",
            "flag_rules.broken: rule could not be loaded: System",
        ),
        ("sub/__init__", "raise ImportError('x')", "flag_rules.sub: rule could not be loaded: Imp"),
        ("sub/__init__", "raise ValueError('x')", "flag_rules.sub: rule could not be loaded: Val"),
        (
            "again",
            "from memlint.rule import Rule\nclass A(Rule):\n    code, name = 'TST101', 'again'",
            "flag_rules.calls: rule could not be loaded: ValueError('TST101 flag-me is already "
            "taken by TST101 again of flag_rules.again')",
        ),
        (
            "init",
            "from memlint.rule import Rule\nclass A(Rule):\n    code, name = 'TST999', 'init'\n"
            "    def __init__(self, options): raise OSError('no licence')",
            "flag_rules.init: rule init failed: OSError: no licence",
        ),
        (
            "needs",
            "from memlint.rule import Needs, Rule\nclass A(Rule):\n"
            "    code, name, needs = 'TST999', 'needs', Needs([5])",
            "flag_rules.needs: rule could not be loaded: TypeError('5 is no word",
        ),
    ],
)
def test_a_bad_rule_is_named_and_the_others_go_on(
    project: Path,
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    text: str,
    message: str,
) -> None:
    pack = tmp_path_factory.mktemp("bad_pack")
    shutil.copytree(FLAG_PACK, pack, dirs_exist_ok=True)
    file = pack / "flag_rules" / f"{name}.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text + "\n")
    for _ in range(2):
        ran = subprocess.run(
            [MEMLINT, "check", *FLAG, "--output-format", "concise"], cwd=project,
            env=environment(pack), capture_output=True, timeout=60,
        )  # fmt: skip
        assert f"error: {message}" in ran.stderr.decode(), ran.stderr.decode()
        assert b"internal error" not in ran.stderr
        assert name == "again" or b"good.py:1:1:" in ran.stdout


def test_interruption_ends_the_run_quietly(project: Path) -> None:
    (project / "hang.py").write_text("misbehave_hang\n")
    process = subprocess.Popen(
        [MEMLINT, "check", *FLAG], cwd=project, env=environment(FLAG_PACK),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=heed_interrupts,
    )  # fmt: skip
    try:
        for _ in range(600):
            if (project / "hanging").exists():
                break
            time.sleep(0.05)
        assert process.poll() is None, "the run must still be at work to be interrupted"
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130
    assert b"Traceback" not in stderr
    assert b"KeyboardInterrupt" not in stderr


def test_a_closed_pipe_ends_the_run_quietly(project: Path) -> None:
    (project / "many.py").write_text(GOOD * 3000)
    command = f"{MEMLINT} check --select TST --output-format concise | head -n 1"
    ran = subprocess.run(
        ["/bin/sh", "-c", command], cwd=project, env=environment(FLAG_PACK),
        capture_output=True, timeout=60,
    )  # fmt: skip
    assert len(ran.stdout.splitlines()) == 1
    assert ran.stderr == b""


def test_bad_programs_on_standard_input(project: Path) -> None:
    ran = run(project, "-", "--stdin-filename", "in.py", stdin=b"flag_me(\n")
    assert ran.returncode == 2
    assert errors(ran)[0].startswith("error: in.py:1:8: cannot be parsed")


def test_configuration_in_the_tree_names_no_code(project: Path) -> None:
    (project / "evil.py").write_text("open('touched', 'w').close()\n")
    (project / "memlint.toml").write_text('plugins = ["evil"]\n')
    ran = run(project)
    assert ran.returncode == 2
    assert b"plugins" in ran.stderr
    assert not (project / "touched").exists()


STREAMS = {
    "closed output": (">&-", {"check": 1, "bad": 2, "rules": 0}),
    "closed errors": ("2>&-", {"check": 1, "bad": 2, "rules": 0}),
    "all closed": (">&- 2>&- <&-", {"check": 1, "bad": 2, "rules": 0}),
    "full output": (">/dev/full", {"check": 2, "bad": 2, "rules": 2}),
    "full errors": ("2>/dev/full", {"check": 1, "bad": 2, "rules": 0}),
}
COMMANDS = {
    "check": f"check {' '.join(FLAG)} -j2",
    "bad": f"check {' '.join(FLAG)} gone.py -q",
    "rules": "rules",
}


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("streams", STREAMS)
def test_streams_that_cannot_be_written(project: Path, streams: str, command: str) -> None:
    redirection, statuses = STREAMS[streams]
    ran = subprocess.run(
        ["/bin/sh", "-c", f"{MEMLINT} {COMMANDS[command]} {redirection}"], cwd=project,
        env=environment(FLAG_PACK), capture_output=True, timeout=60, text=True,
    )  # fmt: skip
    assert ran.returncode == statuses[command], ran.stderr
    assert "Traceback" not in ran.stderr
    assert "internal error" not in ran.stderr
    if streams == "full output" and command != "bad":
        assert "error: the output cannot be written: No space left on device" in ran.stderr


def test_a_closed_standard_input(project: Path) -> None:
    ran = subprocess.run(
        ["/bin/sh", "-c", f"{MEMLINT} check - <&-"], cwd=project, capture_output=True, timeout=60
    )
    assert (ran.returncode, ran.stderr) == (2, b"error: standard input is closed\n")


def test_the_module_imports_nothing_from_the_working_directory(project: Path) -> None:
    for name in ("click", "json", "libcst", "memlint_rules", "rich", "pathspec"):
        (project / f"{name}.py").write_text("open('touched', 'w').close()\n")
    ran = subprocess.run(
        [sys.executable, "-m", "memlint", "check", *FLAG, "--no-cache"], cwd=project,
        env=environment(FLAG_PACK), capture_output=True, timeout=60,
    )  # fmt: skip
    assert b"good.py:1:1" in ran.stdout, ran.stderr
    assert not (project / "touched").exists()
