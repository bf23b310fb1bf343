"""A child process runs a function of a module, and nothing of its parent weighs on it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from memlint.bench.child import ChildFailed, in_child, peak_bytes, resident_bytes

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")


def own_number() -> int:
    return os.getpid()


def length_of(text: str, times: int) -> int:
    print("something else")
    return len(text) * times


def fails() -> float:
    raise OSError("no such thing")


def ends() -> float:
    os._exit(3)


def waits() -> float:
    import time

    time.sleep(60)
    return 0.0


def peak_after(mebibytes: int) -> int:
    """Where a buffer was filled and given back."""
    before = resident_bytes()
    buffer = bytearray(b"x") * (mebibytes << 20)
    del buffer
    return peak_bytes() - before


def peak_at_once() -> int:
    return peak_bytes()


def test_a_function_runs_in_another_process_and_answers() -> None:
    assert in_child(own_number) not in (os.getpid(), in_child(own_number))
    assert in_child(length_of, "ab\n'", 3) == 12


def test_the_child_finds_the_modules_of_its_parent_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(5)")
    monkeypatch.chdir(tmp_path)
    assert in_child(length_of, "ab", 1) == 2


def test_what_the_child_raises_is_told() -> None:
    with pytest.raises(ChildFailed, match="OSError: no such thing"):
        in_child(fails)
    with pytest.raises(ChildFailed, match="ended with status 3"):
        in_child(ends)
    with pytest.raises(ChildFailed, match=r"no answer within 0\.5 seconds"):
        in_child(waits, seconds=0.5)


@LINUX
def test_a_peak_is_told_after_it_is_over() -> None:
    # The kernel counts pages in batches: some hundred KiB may be missing.
    assert 60 << 20 <= in_child(peak_after, 64) < 128 << 20
    assert in_child(peak_after, 0) < 16 << 20


@LINUX
def test_the_peak_of_a_child_is_not_that_of_its_parent() -> None:
    held = bytearray(b"x") * (256 << 20)
    assert in_child(peak_at_once) < len(held)
