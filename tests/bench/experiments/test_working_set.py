"""Latencies and streams: what numbers make of the claims."""

from __future__ import annotations

from memlint.bench.curves import Plateau
from memlint.bench.experiments.working_set import (
    Stream,
    described,
    latency_answers,
    pages_note,
    streaming_answer,
)
from memlint.bench.results import Standing
from tests.bench.samples import point

INF = float("inf")
MIB = 1 << 20


def levels(*heights: float) -> list[Plateau]:
    ends = [48 << 10, 2 * MIB, 32 * MIB, INF][-len(heights) :]
    return [
        Plateau(height, 4096, 1e6, end) for height, end in zip(heights, ends, strict=True)
    ]  # fmt: skip


def standings(*heights: float, most: float = 256 * MIB) -> list[Standing]:
    return [one.standing for one in latency_answers(levels(*heights), most, 32 * MIB)]


def test_memory_as_it_is_claimed_to_be() -> None:
    assert standings(1.2e-9, 4e-9, 12e-9, 75e-9) == [Standing.HOLDS, Standing.HOLDS]


def test_slow_memory_and_a_fast_cache() -> None:
    assert standings(1.2e-9, 4e-9, 130e-9) == [Standing.DOES_NOT_HOLD, Standing.PARTLY]
    assert standings(12e-9, 40e-9, 130e-9) == [Standing.DOES_NOT_HOLD, Standing.DOES_NOT_HOLD]


def test_memory_begins_beyond_the_last_cache() -> None:
    found = [
        Plateau(1.2e-9, 4096, 1e4, 48 << 10),
        Plateau(75e-9, 40 * MIB, 200 * MIB, 220 * MIB),
        Plateau(140e-9, 300 * MIB, 900 * MIB, INF),
    ]
    memory, _ = latency_answers(found, 1024 * MIB, 32 * MIB)
    assert memory.standing is Standing.HOLDS
    assert memory.measured == "75 ns an access from 40 MiB on"


def test_a_curve_without_caches_says_nothing() -> None:
    assert standings(75e-9) == [Standing.UNMEASURED] * 2


def test_what_fits_the_caches_says_nothing_of_memory() -> None:
    assert standings(1.2e-9, 4e-9, 20e-9, most=16 * MIB) == [Standing.UNMEASURED] * 2


def stream(nbytes: int, gain: float) -> Stream:
    return Stream(nbytes, point(nbytes, 1e-10), point(nbytes, gain * 1e-10))


def test_what_is_larger_than_the_cache_streams() -> None:
    inside, last = stream(MIB, 4.0), 32 * MIB
    assert streaming_answer([inside, stream(64 * MIB, 1.02)], last).standing is Standing.HOLDS
    kept = streaming_answer([inside, stream(64 * MIB, 1.5)], last)
    assert kept.standing is Standing.DOES_NOT_HOLD
    assert "4.00 times at 1 MiB, 1.50 times at 64 MiB" in kept.measured


def test_streams_need_a_control_and_room() -> None:
    last = 32 * MIB
    assert streaming_answer([stream(MIB, 4.0)], last).standing is Standing.UNMEASURED
    blind = [stream(MIB, 1.0), stream(64 * MIB, 1.0)]
    assert streaming_answer(blind, last).standing is Standing.UNMEASURED


def test_plateaus_in_words() -> None:
    said = described(levels(1.2e-9, 4e-9, 75e-9))
    assert said == "an access takes 1.2 ns up to 2 MiB, 4 ns up to 32 MiB, 75 ns beyond"
    assert described([]) == "the curve has no plateau"


def test_the_pages_are_told() -> None:
    assert pages_note(MIB, MIB) == "all memory lay in huge pages"
    assert pages_note(0, MIB).startswith("0 B of 1 MiB lay in huge pages")
