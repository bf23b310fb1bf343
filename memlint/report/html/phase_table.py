"""The profiled step by phase."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from memlint.report.html.quantities import shown_ms, shown_share
from memlint.report.html.recorded import Phase, Profile
from memlint.report.html.svg import element, percent, picture
from memlint.report.html.timeline import phase_class


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """A phase, and its share of the time in operations."""

    phase: Phase
    share: float


@dataclass(frozen=True, slots=True)
class PhaseTable:
    """``ms`` is the time in operations, of all phases."""

    rows: tuple[PhaseRow, ...]
    ms: float
    operations: int
    bar: Markup


def phase_table(profile: Profile) -> PhaseTable:
    """The phases as the profile has them, and a bar of their shares."""
    whole = sum(one.ms for one in profile.phases)
    rows = tuple(PhaseRow(one, one.ms / whole if whole else 0.0) for one in profile.phases)
    return PhaseTable(rows, whole, sum(one.operations for one in profile.phases), _bar(rows))


def _bar(rows: tuple[PhaseRow, ...]) -> Markup:
    drawn, start = [], 0.0
    for row in rows:
        told = f"{row.phase.name}: {shown_ms(row.phase.ms)}, {shown_share(row.share)}"
        drawn.append(
            element(
                "rect",
                element("title", told),
                x=percent(start),
                width=percent(row.share),
                y=0,
                height=18,
                class_=phase_class(row.phase.name),
            )
        )
        start += row.share
    shares = ", ".join(f"{row.phase.name} {shown_share(row.share)}" for row in rows)
    return picture(
        "Time in operations by phase", f"{shares or 'None'}.", *drawn, height=18, class_="stack"
    )
