"""The programs of the benchmark of replay: what is found in each, and where; nothing is timed."""

from __future__ import annotations

import pytest

from tests.benchmarks.traced_programs import Program, programs, traced

SOUND = {
    "axes_of_size_one", "dense_before_attention", "sound_resnet", "sound_resnet_channels_last",
    "sound_transformer",
}  # fmt: skip


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.name)
def test_what_is_wrong_is_found_at_its_line_and_nothing_else(program: Program) -> None:
    trace = traced(program, replay=False)
    found = {(one.location.line, one.code) for one in trace.findings}
    assert program.expected <= found <= program.expected | program.allowed


def test_all_programs_but_the_sound_ones_have_a_fault() -> None:
    assert {one.name for one in programs() if not one.expected} == SOUND
