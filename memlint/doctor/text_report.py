"""Lines as text for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from memlint.doctor.lines import Line, State
from memlint.doctor.unknown import NOT_HERE
from memlint.report.view import paint, printable

_STYLES = {
    State.BAD: "error",
    State.ATTENTION: "warning",
    State.UNKNOWN: "faint",
    State.GOOD: "good",
}
_INDENT = "  "


def text_report(lines: Sequence[Line], width: int, color: bool) -> Iterator[str]:
    """Rows of at most ``width`` columns, what is worst first; commands are never broken."""
    column = max((len(line.topic) for line in lines), default=0) + 2
    for state in State:
        found = [line for line in lines if line.state is state and line.why != NOT_HERE.reason]
        if found:
            yield paint(state.value, _STYLES[state], color)
        for line in found:
            yield from _rows(line, column, width, color)
    elsewhere = [line.topic for line in lines if line.why == NOT_HERE.reason]
    if elsewhere:
        yield from textwrap.wrap(f"{NOT_HERE.reason}: {', '.join(elsewhere)}", width)
    yield ""
    yield ", ".join(
        f"{sum(line.state is state for line in lines)} {state.value}" for state in State
    )


def _rows(line: Line, column: int, width: int, color: bool) -> Iterator[str]:
    margin = _INDENT + " " * column
    room = max(20, width - len(margin))
    why = textwrap.wrap(printable(line.why), room, break_on_hyphens=False) or [""]
    topic = paint(line.topic, "strong", color) + " " * (column - len(line.topic))
    yield f"{_INDENT}{topic}{why[0]}"
    for row in why[1:]:
        yield f"{margin}{row}"
    if line.command is not None:
        yield f"{margin}{paint(f'$ {printable(line.command)}', 'faint', color)}"
