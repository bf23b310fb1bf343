"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tracer.command import Command

TESTS = """\
import pytest

torch = pytest.importorskip("torch")
images = torch.ones(4, 16, 8, 8)


@pytest.mark.memlint(no_layout_copies=True)
def test_copies():
    images.permute(0, 2, 3, 1).reshape(-1, 16)


@pytest.mark.memlint(no_layout_copies=True)
def test_views():
    images.flatten(1)


@pytest.mark.memlint(no_sync=True)
def test_reads():
    images.sum().item()


@pytest.mark.memlint(max_copy_bytes=16383)
def test_too_much():
    images.clone()


@pytest.mark.memlint(max_copy_bytes=16384)
def test_enough():
    images.clone()


@pytest.mark.memlint(no_sync=True)
def test_within(memlint_trace):
    images.sum().item()
    with memlint_trace:
        images.sum()


@pytest.mark.memlint(no_sync=True)
def test_within_too(memlint_trace):
    with memlint_trace:
        images.sum().item()


@pytest.mark.memlint(no_sync=True)
def test_never_entered(memlint_trace):
    pass


def test_findings(memlint_trace):
    big = torch.ones(4, 16, 64, 32)
    with memlint_trace:
        for _ in range(2):
            big.permute(0, 2, 3, 1).reshape(-1, 16)
            memlint_trace.step()
    memlint_trace.assert_clean()


@pytest.mark.memlint(no_sync=True)
def test_fails_by_itself():
    assert images.sum().item() < 0


def test_unmarked():
    images.sum().item()
"""
BROKEN = {
    "test_copies": "test_it.py:9: layout copy: clone, once, 16,384 bytes",
    "test_reads": "test_it.py:19: synchronisation: local_scalar_dense, once",
    "test_too_much": "16,384 bytes copied, of 16,383 that may be",
    "test_within_too": "test_it.py:42: synchronisation: local_scalar_dense, once",
    "test_never_entered": "never entered",
    "test_findings": "MEM312 hidden-layout-copy",
}


@pytest.fixture
def command(tmp_path: Path) -> Command:
    made = Command(tmp_path)
    # The plugin is named, whether or not an installed distribution names it as well.
    made.environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    made.write("pytest.ini", "[pytest]\naddopts = --strict-markers -p no:cacheprovider\n")
    return made


def run(command: Command, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command.python("-m", "pytest", "-p", "memlint.pytest_plugin", "-q", "-rA", *arguments)


def outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Test names to outcomes, from the short summary."""
    rows = (line.split(" - ")[0].split() for line in done.stdout.splitlines())
    return {
        row[1].rpartition("::")[2]: row[0]
        for row in rows
        if len(row) == 2 and row[0] in ("PASSED", "FAILED", "SKIPPED", "ERROR")
    }


def test_marked_tests_are_held_to_their_limits(command: Command) -> None:
    pytest.importorskip("torch")
    command.write("test_it.py", TESTS)
    done = run(command, "--memlint")
    found = outcomes(done)
    failed = {name for name, outcome in found.items() if outcome == "FAILED"}
    assert failed == {*BROKEN, "test_fails_by_itself"}, done.stdout
    assert len(found) == 11
    for text in BROKEN.values():
        assert text in done.stdout
    own = done.stdout.partition("test_fails_by_itself ___")[2].partition("=====")[0]
    assert "assert images.sum().item() < 0" in own
    assert "limits broken" not in own


def test_without_the_option_nothing_is_traced(command: Command) -> None:
    pytest.importorskip("torch")
    command.write("test_it.py", TESTS)
    found = outcomes(run(command))
    assert [name for name, outcome in found.items() if outcome == "FAILED"] == [
        "test_fails_by_itself"
    ]
    assert len(found) == 11


INERT = """\
import sys

import pytest


@pytest.mark.memlint(no_sync=True)
def test_inert(memlint_trace):
    with memlint_trace:
        memlint_trace.step()
    memlint_trace.assert_clean()
    assert not memlint_trace.findings
    assert "torch" not in sys.modules
    assert not [name for name in sys.modules if name.startswith("memlint.tracer")]
"""


def test_nothing_is_imported_without_the_option(command: Command) -> None:
    command.write("test_it.py", INERT)
    assert outcomes(run(command)) == {"test_inert": "PASSED"}


def test_without_torch_the_option_does_nothing(command: Command) -> None:
    command.write("test_it.py", INERT)
    command.write(
        "conftest.py",
        "import importlib.util\n\nfind = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'torch' else find(name)\n",
    )
    done = run(command, "--memlint")
    assert outcomes(done) == {"test_inert": "PASSED"}


def test_a_marker_that_says_something_else_is_an_error(command: Command) -> None:
    pytest.importorskip("torch")
    command.write(
        "test_it.py",
        "import pytest\n\n\n@pytest.mark.memlint(no_copies=True)\ndef test_it():\n    pass\n",
    )
    done = run(command, "--memlint")
    assert done.returncode != 0
    told = "marker memlint: there is no limit no_copies: it takes max_copy_bytes, no_layout_copies"
    assert told in done.stdout
    assert "Traceback" not in done.stdout
    assert "pytest_plugin.py" not in done.stdout


def test_the_plugin_alone_is_cheap(command: Command) -> None:
    program = (
        "import sys, memlint.pytest_plugin\n"
        "print(sorted(name for name in sys.modules if name.startswith('memlint')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=command.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "['memlint', 'memlint.pytest_plugin']"
