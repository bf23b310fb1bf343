"""What a trace is asked for, and what is asserted of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import memlint
from memlint.tracer import TraceError

A = torch.ones(1024, 1024)


@pytest.fixture(scope="module")
def mixed() -> memlint.Trace:
    with memlint.trace(quiet=True, replay=False, profile_step=False) as trace:
        A + A.t()
    assert [one.code for one in trace.findings] == ["MEM310"]
    return trace


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"steps": 0}, "steps has to be at least 1, not 0"),
        ({"warmup": -1}, "warmup has to be at least 0"),
        ({"replay_budget": float("nan")}, "replay_budget has to be at least 0"),
        ({"steps": "3"}, "steps has to be a number, not '3'"),
        ({"warmup": True}, "warmup has to be a number"),
    ],
)
def test_options_are_checked_at_once(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises((TypeError, ValueError), match=complaint):
        memlint.trace(**options)


def test_a_folder_that_is_not_there_is_named_before_anything_runs(tmp_path: Path) -> None:
    ran = False
    with (
        pytest.raises(TraceError, match="no such folder"),
        memlint.trace(quiet=True, output=tmp_path / "none" / "trace.json"),
    ):
        ran = True
    assert not ran


def test_one_pattern_is_one_pattern() -> None:
    with memlint.trace(quiet=True, replay=False, profile_step=False, include="none.py") as trace:
        A + A.t()
    assert trace.findings == []


@pytest.mark.parametrize("select", [None, (), "MEM310", "MEM302,MEM310", ["MEM3"], "layout"])
def test_what_was_found_is_asserted(mixed: memlint.Trace, select: Any) -> None:
    with pytest.raises(AssertionError, match="MEM310 mixed-layout-operands"):
        mixed.assert_clean(select)


@pytest.mark.parametrize("select", ["MEM311", ["MEM5", "strided-operand"]])
def test_other_rules_are_not(mixed: memlint.Trace, select: Any) -> None:
    mixed.assert_clean(select)


def test_a_rule_that_is_not_there_asserts_nothing(mixed: memlint.Trace) -> None:
    with pytest.raises(ValueError, match="MEM999"):
        mixed.assert_clean("MEM999")


def test_nothing_is_asserted_before_the_end() -> None:
    trace = memlint.trace(quiet=True, replay=False, profile_step=False)
    with pytest.raises(TraceError, match="has not ended"):
        trace.assert_clean()
    with trace, pytest.raises(TraceError, match="has not ended"):
        trace.assert_clean()
    trace.assert_clean()
