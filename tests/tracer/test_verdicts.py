"""What is concluded from what was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch")

from memlint.findings import Severity
from memlint.layout import Strided
from memlint.measure import Comparison
from memlint.report.evidence_text import long_text
from memlint.rule import Rule
from memlint.tracer.evidence import evidence_of, judged
from memlint.tracer.records import Operand, Operation, Site
from memlint.tracer.replay import Measured
from memlint.tracer.sightings import Claim, Sighting

BORN, SITE = Site("/p/a.py", "make", 2), Site("/p/a.py", "work", 7)


def operand(strides: tuple[int, ...]) -> Operand:
    return Operand(Strided((8, 4), strides, 4), "float32", "cpu")


OPERATION = Operation(
    SITE,
    "aten.sum.dim_IntList",
    "forward",
    (operand((1, 8)),),
    (),
    count=6,
    steps=3,
    births={0: BORN},
)


def sighting(*, settled: bool = True, measurable: bool = True) -> Sighting:
    claims = (Claim(OPERATION, (0,), 2.0),) if measurable else ()
    return Sighting(
        Rule(), SITE, "slow", "", Severity.INFO, 6, 3, 768, claims=claims, settled=settled
    )


def measured(ratio: float, low: float, high: float, conversion: float = 0.0) -> Measured:
    """As-is takes ``ratio`` milliseconds, the alternative one; the conversion has two uses."""
    share = 1 / (1 + conversion / 2)
    comparison = Comparison(
        ratio / 1e3, 1e-3, conversion / 1e3, ratio, low, high,
        ratio * share, low * share, high * share, 0.95, 1.05, 21,
    )  # fmt: skip
    return Measured(comparison, 2.0, True)


def shown(path: str) -> str:
    return path.removeprefix("/p/")


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (measured(3.0, 2.8, 3.2), "confirmed"),
        (measured(3.0, 2.8, 3.2, conversion=8.0), "refuted"),  # not worth the copy
        (measured(1.05, 1.02, 1.08), "refuted"),
        (measured(0.8, 0.7, 0.9), "refuted"),
        (measured(3.0, 0.9, 20.0), "inconclusive"),  # anything is possible
        (measured(1.0, 0.2, 5.0), "inconclusive"),
        (measured(1.3, 1.05, 1.6), "inconclusive"),  # perhaps no difference
    ],
)
def test_the_verdict_follows_the_net_ratio(found: Measured, verdict: str) -> None:
    evidence = evidence_of(sighting(), found, [0.02, 0.01, 0.03], [], shown)
    assert evidence["verdict"] == verdict
    text = long_text(evidence)
    assert ("leave it" in text) is (verdict == "refuted")
    assert ("to be saved" in text) is (verdict == "confirmed")
    assert ("too uncertain" in text) is (verdict == "inconclusive")


def test_the_numbers() -> None:
    evidence = evidence_of(sighting(), measured(3.0, 2.8, 3.2, 1.0), [0.02, 0.01, 0.03], [], shown)
    assert evidence["as_is_ms"] == pytest.approx(3.0)
    assert evidence["net_ratio"] == pytest.approx(2.0)  # 3 ms, for 1 ms and half of a copy
    assert evidence["ms_per_step"] == pytest.approx(3.0)  # twice a step
    assert evidence["share_of_step"] == pytest.approx(0.15)
    assert evidence["born_at"] == "a.py:2"


def test_one_run_may_stand_for_several_events() -> None:
    found = replace(measured(3.0, 2.8, 3.2, 1.0), events=10)
    evidence = evidence_of(sighting(), found, [0.02, 0.01, 0.03], [], shown)
    assert evidence["as_is_ms"] == pytest.approx(0.3)
    assert evidence["ratio"] == pytest.approx(3.0)
    assert evidence["ms_per_step"] == pytest.approx(0.3)


def test_a_conversion_is_told_where_there_is_one() -> None:
    for conversion, told in ((1.0, True), (0.0, False)):
        found = measured(3.0, 2.8, 3.2, conversion)
        text = long_text(evidence_of(sighting(), found, [0.02], [], shown))
        assert ("converting takes" in text) is told


def test_other_numbers_are_a_matter_of_correctness() -> None:
    found = replace(measured(0.5, 0.4, 0.6), same=False)
    assert evidence_of(sighting(), found, [0.01], [], shown)["verdict"] == "confirmed"
    told = judged(sighting(), found)
    assert told.severity is Severity.ERROR
    assert told.message.startswith("what is advised here gives other numbers")
    for same in (measured(3.0, 2.8, 3.2), None):
        one = sighting()
        assert judged(one, same) is one


def test_another_device_settles_nothing() -> None:
    for found in (measured(3.0, 2.8, 3.2), measured(1.0, 0.98, 1.02)):
        evidence = evidence_of(sighting(settled=False), found, [0.01], [], shown)
        assert evidence["verdict"] == "inconclusive"


def test_what_was_not_measured_is_null() -> None:
    evidence = evidence_of(sighting(measurable=False), None, [0.01], [], shown)
    assert evidence["verdict"] == "observed"
    assert evidence["ratio"] is evidence["ms_per_step"] is evidence["numerics"] is None
    assert long_text(evidence) == "observed: 2 times a step; 256 bytes a step"


def test_layouts_are_those_of_the_operation_it_speaks_of() -> None:
    dense = Operation(SITE, "aten.mul.Tensor", "forward", (operand((4, 1)),), (), count=1)
    evidence = evidence_of(sighting(measurable=False), None, [], [dense, OPERATION, dense], shown)
    assert [one["strides"] for one in evidence["layouts"]] == [[1, 8]]
