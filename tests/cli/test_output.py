"""What ``memlint check`` writes, where, and how it ends when it is cut short."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from tests.cli.conftest import Shell
from tests.conftest import heed_interrupts

FULL = """\
warning[TOY101] flagged-call: this call is flagged, limit 3
 --> all.py:2:1
  |
1 | origin = 3
  | ---------- born here
2 | flag_me(origin)
  | ^^^^^^^^^^^^^^^
  |
  = help: call spare_me instead
  = fix: call spare_me (safe)
  = see: https://memlint.readthedocs.io/rules/flagged-call/

1 finding (1 warning) in 1 file.
1 fixable with --fix.
"""
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
needs_terminal = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


def test_full_and_colours(everything: Shell) -> None:
    command = ("check", "--select", "TOY101")
    assert everything.memlint(*command).stdout == FULL
    assert everything.memlint(*command, "--quiet").stdout == FULL[: FULL.rindex("1 finding")]
    coloured = everything.memlint(*command, "--color", "always").stdout
    assert coloured != FULL
    assert ESCAPE.sub("", coloured) == FULL
    assert everything.memlint(*command, FORCE_COLOR="1").stdout == coloured
    assert everything.memlint(*command, FORCE_COLOR="1", NO_COLOR="1").stdout == FULL
    assert everything.memlint(*command, "--color", "never", FORCE_COLOR="1").stdout == FULL


def test_concise_and_github(everything: Shell) -> None:
    concise = everything.memlint("check", "--output-format", "concise", "-q").stdout
    assert concise.splitlines() == [
        "all.py:2:1: warning[TOY101] flagged-call: this call is flagged, limit 3",
        "all.py:3:1: error[TOY102] grave-call: this call is grave",
        "all.py:4:1: info[TOY103] light-call: this call is light",
        "all.py:7:1: warning[TOY202] likely-call: this call is likely bad",
    ]
    github = everything.memlint("check", "--output-format", "github").stdout.splitlines()
    assert [line.partition(" ")[0] for line in github] == [
        "::warning",
        "::error",
        "::notice",
        "::warning",
    ]


def test_json_follows_its_schema(everything: Shell) -> None:
    everything.write("broken.py", "flag_me(\n")
    schema = resources.files("memlint").joinpath("schemas/check.schema.json").read_text("utf-8")
    document = everything.json(status=1)
    jsonschema.validate(document, json.loads(schema))
    assert document["version"] == 1
    first = document["findings"][0]
    assert first["fingerprint"]
    assert first["location"] == {"line": 2, "column": 1, "end_line": 2, "end_column": 16}
    assert first["fix"]["edits"][0]["content"] == "spare_me"
    assert first["related"][0]["message"] == "born here"
    assert document["errors"][0]["path"] == "broken.py"
    assert document["summary"]["by_rule"]["TOY202"] == 1


def test_sarif_knows_rules_and_failures(everything: Shell) -> None:
    everything.write("broken.py", "flag_me(\n")
    done = everything.memlint("check", "--output-format", "sarif", status=1)
    (run,) = json.loads(done.stdout)["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert all(result["partialFingerprints"].values())
    assert len(run["results"]) == 4
    assert run["results"][0]["fixes"]
    assert run["invocations"][0]["executionSuccessful"] is False


def test_the_report_can_go_to_a_file(everything: Shell) -> None:
    done = everything.memlint(
        "check", "--select", "TOY101", "--output-file", "report.txt", FORCE_COLOR="1", status=1
    )
    assert done.stdout == ""
    assert (everything.folder / "report.txt").read_text("utf-8") == FULL
    failed = everything.memlint("check", "-o", "no/such/folder.txt", status=2)
    assert failed.stderr.startswith("error: no/such/folder.txt: ")


def test_statistics(everything: Shell) -> None:
    everything.write("more.py", "flag_me()\nflag_me()\n")
    text = everything.memlint("check", "--statistics", status=1).stdout
    assert text == (
        "3  TOY101  flagged-call\n"
        "1  TOY102  grave-call\n"
        "1  TOY103  light-call\n"
        "1  TOY202  likely-call\n"
        "6 findings (1 error, 4 warnings, 1 info) in 2 files.\n"
        "3 fixable with --fix.\n"
    )
    with_json = everything.memlint("check", "--statistics", "--output-format", "json")
    assert len(json.loads(with_json.stdout)["findings"]) == 6
    assert "3  TOY101  flagged-call\n" in with_json.stderr


def test_timings_and_verbosity_go_to_standard_error(everything: Shell) -> None:
    plain = everything.memlint("check", "--no-cache")
    timed = everything.memlint("check", "--no-cache", "--timings", "--verbose")
    assert timed.stdout == plain.stdout
    assert plain.stderr == ""
    assert "configuration: none" in timed.stderr
    assert "in all, 1 file (0 from the cache)" in timed.stderr
    assert re.search(r"^ +\d+\.\d{3} s  parse$", timed.stderr, re.MULTILINE)
    assert re.search(r"^ +\d+\.\d{3} s  discover$", timed.stderr, re.MULTILINE)


def test_notebooks_name_the_cell(shell: Shell) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# flag_me()"], "metadata": {}},
        {"cell_type": "code", "source": ["origin = 3\n"], "metadata": {}, "outputs": []},
        {"cell_type": "code", "source": ["%matplotlib\n", "flag_me(origin)"], "metadata": {}},
    ]
    book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    shell.write("book.ipynb", json.dumps(book))
    (finding,) = shell.json(status=1)["findings"]
    assert (finding["cell"], finding["location"]["line"]) == (3, 2)
    assert (finding["related"][0]["cell"], finding["related"][0]["location"]["line"]) == (2, 1)
    text = shell.memlint("check", status=1).stdout
    assert " --> book.ipynb:cell 3:2:1\n  |\n2 | flag_me(origin)\n" in text
    assert " ::: book.ipynb:cell 2:1:1\n  |\n1 | origin = 3\n" in text


def test_a_closed_pipe_is_no_error(shell: Shell) -> None:
    shell.write("many.py", "flag_me('some text that fills the pipe')\n" * 2000)
    for command in (["check", "--no-cache"], ["explain", "flagged-call"]):
        process = subprocess.Popen(
            shell.command(*command),
            cwd=shell.folder,
            env=shell.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(30) == (1 if command[0] == "check" else 0)


def wait_for_worker(shell: Shell, started: Path) -> None:
    deadline = time.monotonic() + 20
    while not started.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
def test_an_interrupt_ends_the_run_without_a_word(shell: Shell) -> None:
    shell.write("slow.py", f"dawdle(30, {str(shell.folder / 'started')!r})\n")
    process = subprocess.Popen(
        shell.command("check", "--no-cache"),
        cwd=shell.folder,
        env=shell.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )
    wait_for_worker(shell, shell.folder / "started")
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, b"", b"")


@needs_terminal
def test_a_terminal_gets_colours_its_own_width_and_a_progress_bar(shell: Shell) -> None:
    shell.write("a.py", f"dawdle(1.1, {str(shell.folder / 'started')!r})\n")
    shell.write("b.py", "flag_me()\n")
    arguments = ("check", "--no-cache", "--jobs", "1")
    out, err = on_terminal(shell, *arguments)
    assert "\x1b[1;33mwarning[TOY101]\x1b[0m" in out
    assert max(len(ESCAPE.sub("", line)) for line in out.splitlines()) <= 70
    assert "Checking" in err
    assert "2/2" in err
    out, err = on_terminal(shell, *arguments, "--quiet")
    assert err == ""


def on_terminal(shell: Shell, *arguments: str) -> tuple[str, str]:
    """Run the command with a terminal of 70 columns as both of its outputs."""
    import fcntl
    import pty
    import struct
    import termios

    ends = []
    for _ in range(2):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 70, 0, 0))
        ends.append((ours, theirs))
    process = subprocess.Popen(
        shell.command(*arguments),
        cwd=shell.folder,
        env={**shell.environment, "TERM": "xterm-256color"},
        stdout=ends[0][1],
        stderr=ends[1][1],
    )
    process.wait(30)
    texts = []
    for ours, theirs in ends:
        os.set_blocking(ours, False)
        texts.append(drain(ours))
        os.close(theirs)
        os.close(ours)
    return texts[0], texts[1]


def drain(descriptor: int) -> str:
    data = b""
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except BlockingIOError:
            return data.decode()
        data += chunk
