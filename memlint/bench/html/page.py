"""The page itself: one file with all that it shows, which loads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from memlint.bench.claims import CLAIMS
from memlint.bench.html.axes import shown
from memlint.bench.html.plot import Drawn, drawn
from memlint.bench.html.ratio_bar import RatioScale
from memlint.bench.quantities import interval, ratio
from memlint.bench.results import Answer, Outcome, Row, Session, Standing, Verdict
from memlint.bench.standings import standings
from memlint.bench.words import facts, forms, not_measured
from memlint.report.html.prose import prose
from memlint.report.html.template import (
    environment,
    own_file,
    policy,
    shared_script,
    shared_style,
)

_HERE = "memlint.bench.html"
_STANDINGS = {
    Standing.HOLDS: "holds",
    Standing.PARTLY: "partly",
    Standing.DOES_NOT_HOLD: "fails",
    Standing.UNMEASURED: "open",
}
_VERDICTS = {
    Verdict.SLOWER: "worse", Verdict.MORE: "worse",
    Verdict.FASTER: "better", Verdict.LESS: "better",
    Verdict.NO_DIFFERENCE: "even",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that a reader wants before all others."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison as it is shown."""

    forms: str
    what: str
    bar: Markup
    ratio: str
    interval: str
    as_is: str
    alternative: str
    converted: str
    verdict: str
    kind: str


@dataclass(frozen=True, slots=True)
class Bench:
    """A rule or an experiment, with all that was measured of it."""

    outcome: Outcome
    rows: tuple[Compared, ...]
    plots: tuple[Drawn, ...]


@dataclass(frozen=True, slots=True)
class Stand:
    """A claim, and how it fares here."""

    text: str
    standing: str
    kind: str
    measured: str
    note: str
    bench: str


def render_page(session: Session) -> str:
    """The page of a run."""
    style = shared_style() + own_file(_HERE, "bench.css")
    script = shared_script()
    scale = RatioScale(row for outcome in session.outcomes for row in outcome.rows)
    benches = [_bench(one, scale) for one in session.outcomes]
    answers = [_stand(one) for one in standings(session.outcomes)]
    return environment(_HERE, prose=prose).get_template("page.html.jinja").render(
        policy=policy(style, script),
        style=style,
        script=script,
        figures=list(_figures(session, answers)),
        scale=scale.labels(),
        compared=[one for one in benches if one.rows],
        plotted=[one for one in benches if one.plots],
        claims=answers,
        reasons=not_measured(session.outcomes),
        notes=[one.outcome for one in benches if one.outcome.notes],
        facts=list(facts(session)),
        machine=session.machine,
    )  # fmt: skip


def _figures(session: Session, claims: Sequence[Stand]) -> Iterator[Figure]:
    rows = [row for outcome in session.outcomes for row in outcome.rows]
    kinds = [_VERDICTS[row.verdict] for row in rows]
    count = len(session.outcomes)
    of = "of 1 bench" if count == 1 else f"of {count} benches"
    yield Figure("Comparisons", str(len(rows)), of)
    yield Figure("The bad form costs", str(kinds.count("worse")))
    yield Figure("No measurable difference", str(kinds.count("even")))
    if kinds.count("better"):
        yield Figure("The bad form is better", str(kinds.count("better")))
    if claims:
        holding = sum(one.kind == "holds" for one in claims)
        yield Figure("Claims that hold", str(holding), f"of {len(claims)}")


def _bench(outcome: Outcome, scale: RatioScale) -> Bench:
    rows = tuple(_compared(row, scale) for row in outcome.rows)
    return Bench(outcome, rows, tuple(map(drawn, outcome.plots)))


def _compared(row: Row, scale: RatioScale) -> Compared:
    converted = ""
    if row.net_ratio is not None and row.conversion is not None:
        conversion = shown(row.conversion, row.unit.value)
        converted = f"{ratio(row.net_ratio)} with a conversion of {conversion}"
    return Compared(
        forms(row),
        row.what,
        scale.bar(row),
        f"{ratio(row.ratio)}\N{MULTIPLICATION SIGN}",
        interval(row.low, row.high).replace("-", "\N{EN DASH}"),
        shown(row.as_is, row.unit.value),
        shown(row.alternative, row.unit.value),
        converted,
        row.verdict.value,
        _VERDICTS[row.verdict],
    )


def _stand(answer: Answer) -> Stand:
    claim = CLAIMS[answer.claim]
    standing = answer.standing
    return Stand(
        claim.text, standing.value, _STANDINGS[standing], answer.measured, claim.note, claim.bench
    )
