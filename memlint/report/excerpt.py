"""Source lines with marks under them, cut to a width."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence

from memlint.findings import Location
from memlint.late_dataclass import dataclass
from memlint.report.view import paint, replaced

_TAB = 4
_LONGEST = 6
"""Ranges of more lines than this show their head and their last line."""
_HEAD = 3
_NARROWEST = 20


@dataclass(frozen=True, slots=True)
class Mark:
    """A range to point at: the finding's own is underlined with ``^``, the others with ``-``."""

    location: Location
    sign: str
    style: str
    label: str = ""

    @property
    def last_line(self) -> int:
        """The last line of which a character belongs to the range."""
        ends_before = self.location.end_column == 1 and self.location.end_line > self.location.line
        return self.location.end_line - ends_before


@dataclass(frozen=True, slots=True)
class Gutter:
    """The numbered margin left of the source lines."""

    digits: int
    color: bool

    def numbered(self, number: int, text: str) -> str:
        """A source line with its number."""
        return self._row(f"{number:>{self.digits}} |", text)

    def blank(self, text: str = "") -> str:
        """A line that is not of the source."""
        return self._row(f"{'':>{self.digits}} |", text)

    def skip(self, bar: str = "") -> str:
        """The sign for lines left out."""
        return (paint("...", "gutter", self.color) + " " * self.digits + bar).rstrip() + "\n"

    def arrow(self, sign: str, text: str) -> str:
        """The line that names a place."""
        return f"{'':>{self.digits}}{paint(sign, 'gutter', self.color)} {text}\n"

    def note(self, text: str) -> str:
        """A line of the block under the source."""
        return f"{'':>{self.digits}} {text}".rstrip() + "\n"

    def _row(self, margin: str, text: str) -> str:
        text = text.rstrip()
        return paint(margin, "gutter", self.color) + (f" {text}\n" if text else "\n")


def excerpt(
    lines: Sequence[str], marks: Sequence[Mark], gutter: Gutter, width: int
) -> Iterator[str]:
    """The marked lines, in order, each followed by its marks; the first mark is the main one."""
    return _Excerpt(lines, marks, gutter, width).rows()


class _Excerpt:
    def __init__(
        self, lines: Sequence[str], marks: Sequence[Mark], gutter: Gutter, width: int
    ) -> None:
        self._lines = lines
        self._marks = [mark for mark in marks if mark.location.line <= len(lines)]
        self._gutter = gutter
        main = self._marks[0] if self._marks else None
        self._span = main if main is not None and main.last_line > main.location.line else None
        self._room = max(_NARROWEST, width - gutter.digits - 3 - (2 if self._span else 0))

    def rows(self) -> Iterator[str]:
        if not self._marks:
            return
        yield self._gutter.blank()
        previous = 0
        for number in self._shown_lines():
            if previous and number > previous + 1:
                yield self._gutter.skip(self._bar_below(number - 1))
            yield from self._line(number)
            previous = number
        yield self._gutter.blank()

    def _shown_lines(self) -> list[int]:
        shown = {mark.location.line for mark in self._marks}
        if self._span is not None:
            first, last = self._span.location.line, min(self._span.last_line, len(self._lines))
            if last - first < _LONGEST:
                shown.update(range(first, last + 1))
            else:
                shown.update((*range(first, first + _HEAD), last))
        # A lone line between two shown ones takes no more room than the sign for skipping it.
        shown.update(number + 1 for number in tuple(shown) if number + 2 in shown)
        return sorted(shown)

    def _line(self, number: int) -> Iterator[str]:
        here = [mark for mark in self._marks if mark.location.line == number]
        text = self._lines[number - 1]
        window = _Window(text, here[0].location.column if here else 1, self._room)
        yield self._gutter.numbered(number, self._bar(number, text) + window.text)
        for mark in here:
            if mark is not self._span:
                yield from self._underline(mark, window, self._bar_below(number))
            elif not _starts_line(mark, text):
                start = window.column(mark.location.column)
                yield self._gutter.blank(self._painted(" " + "_" * (start + 1) + mark.sign, mark))
        if self._span is not None and number == self._span.last_line:
            yield from self._close(self._span, window)

    def _bar(self, number: int, text: str) -> str:
        if self._span is None:
            return ""
        if number == self._span.location.line:
            return self._painted("/ ", self._span) if _starts_line(self._span, text) else "  "
        return self._bar_below(number - 1)

    def _bar_below(self, number: int) -> str:
        if self._span is None:
            return ""
        inside = self._span.location.line <= number < self._span.last_line
        return self._painted("| ", self._span) if inside else "  "

    def _close(self, mark: Mark, window: _Window) -> Iterator[str]:
        length = len(self._lines[mark.last_line - 1])
        ended = mark.last_line == mark.location.end_line
        end = window.column(mark.location.end_column if ended else length + 1)
        yield self._gutter.blank(self._painted("|" + "_" * max(end, 1) + mark.sign, mark))

    def _underline(self, mark: Mark, window: _Window, bar: str) -> Iterator[str]:
        start = window.column(mark.location.column)
        if mark.last_line > mark.location.line:
            end = window.width
        else:
            end = window.column(mark.location.end_column)
        signs = mark.sign * max(end - start, 1)
        if start + len(signs) + 1 + len(mark.label) <= self._room:
            label = f" {mark.label}" if mark.label else ""
            yield self._gutter.blank(bar + " " * start + self._painted(signs + label, mark))
            return
        yield self._gutter.blank(bar + " " * start + self._painted(signs, mark))
        indent = min(start, self._room // 2)
        for row in textwrap.wrap(mark.label, self._room - indent):
            yield self._gutter.blank(bar + " " * indent + self._painted(row, mark))

    def _painted(self, text: str, mark: Mark) -> str:
        return paint(text, mark.style, self._gutter.color)


def _starts_line(mark: Mark, text: str) -> bool:
    return not text[: mark.location.column - 1].strip()


class _Window:
    """The part of a line that fits, and where its characters stand on the screen."""

    def __init__(self, text: str, focus: int, room: int) -> None:
        text = replaced(text.rstrip()).replace("\x0c", " ")
        self._stops = _stops(text)
        self._offset = 0
        self._lead = 0
        full = self._stops[-1]
        if full <= room:
            self.text = text.replace("\t", " " * _TAB)
            self.width = full
            return
        first = self._first_shown(focus, room)
        self._lead = 1 if first else 0
        self._offset = self._stops[first]
        last = first
        limit = room - self._lead - 1
        while last < len(text) and self._stops[last + 1] - self._offset <= limit:
            last += 1
        cut = text[first:last].replace("\t", " " * _TAB)
        self.text = ("…" if first else "") + cut + ("…" if last < len(text) else "")
        self.width = self._lead + self._stops[last] - self._offset

    def _first_shown(self, focus: int, room: int) -> int:
        start = self._stops[min(focus - 1, len(self._stops) - 1)]
        if start < room * 2 // 3:
            return 0
        wanted = min(start - room // 4, self._stops[-1] - room + 2)
        return next(index for index, stop in enumerate(self._stops) if stop >= wanted)

    def column(self, column: int) -> int:
        """Cells left of a column (from 1), clipped to what is shown."""
        stop = self._stops[min(column - 1, len(self._stops) - 1)]
        return max(self._lead, min(stop - self._offset + self._lead, self.width))


def _stops(text: str) -> Sequence[int]:
    if text.isascii() and "\t" not in text:
        return range(len(text) + 1)
    stops = [0]
    for character in text:
        stops.append(stops[-1] + _cells(character))
    return stops


def _cells(character: str) -> int:
    if character == "\t":
        return _TAB
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
