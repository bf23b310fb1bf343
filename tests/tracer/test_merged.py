"""What is told of a place where a rule has seen several things."""

from __future__ import annotations

from memlint.findings import Severity
from memlint.rule import Rule
from memlint.tracer.findings import merged
from memlint.tracer.records import Site
from memlint.tracer.sightings import Sighting

HERE = Site("/p/a.py", "work", 7)


class Copies(Rule):
    code = "MEM999"
    name = "copies"


def sighting(
    array: str, count: int, nbytes: int, totals: str = ": {nbytes} in {count} copies"
) -> Sighting:
    return Sighting(
        Copies(), HERE, f"{array} is copied", "", Severity.INFO, count, 2, nbytes, totals=totals
    )


def test_totals_are_those_of_the_evidence() -> None:
    (one,) = merged([sighting("float32[8]", 4, 3_000_000)])
    assert one.message == "float32[8] is copied: 3.0 MB in 4 copies"


def test_totals_count_all_that_was_seen_at_the_place() -> None:
    (one,) = merged([sighting("float32[8]", 4, 1_000_000), sighting("float32[9]", 6, 2_000_000)])
    assert one.message == (
        "float32[9] is copied: 3.0 MB in 10 copies, with other arrays at this place"
    )
    assert (one.count, one.nbytes) == (10, 3_000_000)


def test_totals_by_the_step() -> None:
    equal = sighting("float32[8]", 4, 1_000_000, totals=", {nbytes_a_step} a step")
    (one,) = merged([equal, equal])
    assert one.message == "float32[8] is copied, 1.0 MB a step"
