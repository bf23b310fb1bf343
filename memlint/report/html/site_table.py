"""The lines that operations ran at, the busiest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memlint.report.html.recorded import Line, SiteRow

MOST_ROWS = 300
_MOST_OPERATIONS = 6


@dataclass(frozen=True, slots=True)
class BusyLine:
    """A line, how many operations ran at it, and the most frequent of them."""

    line: Line
    source: str | None
    count: int
    operations: tuple[SiteRow, ...]
    operations_left_out: int


@dataclass(frozen=True, slots=True)
class SiteTable:
    """``left_out`` are the lines that are not among ``rows``."""

    rows: tuple[BusyLine, ...]
    left_out: int


def site_table(sites: Sequence[SiteRow]) -> SiteTable:
    """The sites by line."""
    at_line: dict[Line, list[SiteRow]] = {}
    for one in sites:
        at_line.setdefault(one.line, []).append(one)
    rows = sorted((_row(line, found) for line, found in at_line.items()), key=lambda r: -r.count)
    return SiteTable(tuple(rows[:MOST_ROWS]), max(len(rows) - MOST_ROWS, 0))


def _row(line: Line, found: Sequence[SiteRow]) -> BusyLine:
    ordered = sorted(found, key=lambda one: -one.count)
    return BusyLine(
        line,
        next((one.source for one in found if one.source is not None), None),
        sum(one.count for one in found),
        tuple(ordered[:_MOST_OPERATIONS]),
        max(len(ordered) - _MOST_OPERATIONS, 0),
    )
