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


def test_a_stream_is_told_with_its_birthplace_and_all_that_takes_it() -> None:
    (program,) = [one for one in programs() if one.name == "transposed_stream"]
    trace = traced(program, replay=False)
    (stream,) = [one for one in trace.findings if one.code == "MEM308"]
    assert stream.evidence is not None
    assert str(stream.evidence["born_at"]).endswith(f"transposed_stream.py:{stream.location.line}")
    # Six blocks of two operations, on 8x196x384 numbers, three times.
    assert stream.evidence["bytes"] == 3 * 6 * 2 * 8 * 196 * 384 * 4
    assert "taken by 12 operations" in stream.message
