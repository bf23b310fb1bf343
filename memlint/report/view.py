"""What a format may know besides the report: the terminal, the sources, the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from memlint.findings import Location
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern
from memlint.rule import RuleSet
from memlint.source.model import Source

PLAIN_WIDTH = 100


def _no_source(path: str) -> Source | None:
    return None


@dataclass(frozen=True, slots=True)
class View:
    """How and with what a report is rendered.

    ``read`` returns the source of a path as findings spell it, or ``None`` if it cannot be
    had any more; ``rules`` loads the rules, for formats that describe them.
    """

    width: int = PLAIN_WIDTH
    color: bool = False
    read: Callable[[str], Source | None] = _no_source
    rules: Callable[[], RuleSet] = field(default=lambda: RuleSet({}))


STYLES: Mapping[str, str] = {
    "error": "1;31",
    "warning": "1;33",
    "info": "1;36",
    "gutter": "1;34",
    "strong": "1",
    "faint": "2",
    "good": "1;32",
}


def paint(text: str, style: str, color: bool) -> str:
    """The text in a style of :data:`STYLES`, where colour is wanted."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if color and text else text


# Control characters, and those that turn the direction of writing, could make a terminal
# show something else than what the file holds.
_UNPRINTABLE = late_pattern("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with characters that would disturb a terminal written as escapes."""
    return _UNPRINTABLE.sub(lambda match: ascii(match[0])[1:-1], text)


def replaced(text: str) -> str:
    """The text with such characters replaced one for one, so that columns stay."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def shown_place(path: str, cell: int | None, location: Location | None) -> str:
    """``path:line:column``, with the cell between for notebooks."""
    parts = [printable(path).replace("\n", "\\n")]
    if cell is not None:
        parts.append(f"cell {cell}")
    if location is not None:
        parts += [str(location.line), str(location.column)]
    return ":".join(parts)
