"""Source lines around a place, with the place marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memlint.findings import Location
from memlint.report.view import replaced

_CONTEXT = 3
_MOST_MARKED = 10
_LONGEST_LINE = 400


@dataclass(frozen=True, slots=True)
class Row:
    """A line of source: what stands before the marked part, that part, and what comes after."""

    number: int
    before: str
    marked: str = ""
    after: str = ""


def excerpt(lines: Sequence[str], location: Location) -> tuple[Row, ...]:
    """The lines of a location and some around it; none where it lies beyond the lines."""
    if location.line > len(lines):
        return ()
    last = min(location.end_line, location.line + _MOST_MARKED - 1)
    first, end = max(location.line - _CONTEXT, 1), min(last + _CONTEXT, len(lines))
    while first < location.line and not lines[first - 1].strip():
        first += 1
    while end > last and not lines[end - 1].strip():
        end -= 1
    return tuple(_row(number, lines[number - 1], location) for number in range(first, end + 1))


def one_line(lines: Sequence[str], number: int) -> str | None:
    """A line without the blanks around it, ``None`` where there is none of this number."""
    return _cleaned(lines[number - 1]).strip() if 0 < number <= len(lines) else None


def _row(number: int, line: str, location: Location) -> Row:
    shown = _cleaned(line)
    if not location.line <= number <= location.end_line:
        return Row(number, shown)
    indent = len(shown) - len(shown.lstrip())
    start = location.column - 1 if number == location.line else indent
    end = location.end_column - 1 if number == location.end_line else len(shown)
    return Row(number, shown[:start], shown[start:end], shown[max(start, end) :])


def _cleaned(line: str) -> str:
    line = replaced(line).rstrip()
    return line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "…"
