"""Edits of a program's text, made so that every character they do not speak of stays.

An edit is narrowed to what it changes before it is made: line ends of all kinds, and what
is equal before and after, are left alone.
"""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memlint.findings import Location, TextEdit
from memlint.source.notebook import NOTEBOOK_SUFFIX
from memlint.source.read import decode

_LINE_END = re.compile(r"\r\n|\r|\n")


class UnfitError(Exception):
    """Edits that are not made, and why."""


@dataclass(frozen=True, slots=True)
class Change:
    """Replace the characters from ``start`` up to ``end`` of a text by ``content``."""

    start: int
    end: int
    content: str


class Text:
    """The text of a file or a cell, with the offsets of its lines."""

    def __init__(self, raw: str) -> None:
        self.raw = raw
        ends = list(_LINE_END.finditer(raw))
        self._starts = [0, *(end.end() for end in ends)]
        self._stops = [*(end.start() for end in ends), len(raw)]
        self._ends = [end[0] for end in ends]

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and a column, both counted from 1; raises :class:`UnfitError`."""
        if 1 <= line <= len(self._starts):
            offset = self._starts[line - 1] + column - 1
            if self._starts[line - 1] <= offset <= self._stops[line - 1]:
                return offset
        raise UnfitError(f"it names a place that does not exist ({line}:{column})")

    def span(self, location: Location) -> tuple[int, int]:
        """The offsets of a range; raises :class:`UnfitError`."""
        start = self.offset(location.line, location.column)
        end = self.offset(location.end_line, location.end_column)
        if end < start:
            raise UnfitError("it replaces a range that ends before it starts")
        return start, end

    def change(self, location: Location, content: str) -> Change:
        """What has to change so that ``content`` stands at ``location``, and no more than that."""
        start, end = self.span(location)
        old, new = _plain(self.raw[start:end]), _plain(content)
        head = common(old, new)
        tail = common(old[head:][::-1], new[head:][::-1])
        first = self._after(location, old[:head])
        last = self._after(location, old[: len(old) - tail])
        middle = new[head : len(new) - tail]
        for line_end in (self._line_end_at(first), "\r\n"):
            written = middle.replace("\n", line_end)
            if not self._fuses(first, last, written):
                return Change(first, last, written)
        raise UnfitError("it would make one line end of two")

    def _fuses(self, first: int, last: int, written: str) -> bool:
        """Whether a carriage return would meet a line feed that is none of its own."""
        before, after = self.raw[first - 1 : first], self.raw[last : last + 1]
        return (before == "\r" and (written + after).startswith("\n")) or (
            written.endswith("\r") and after == "\n"
        )

    def _after(self, location: Location, passed: str) -> int:
        lines = passed.count("\n")
        column = len(passed) - (passed.rfind("\n") + 1) + 1
        return self.offset(
            location.line + lines, column if lines else location.column + len(passed)
        )

    def _line_end_at(self, offset: int) -> str:
        """The line end that is used there: that of the line itself, or of the one above."""
        if not self._ends:
            return "\n"
        line = bisect_right(self._starts, offset) - 1
        return self._ends[min(line, len(self._ends) - 1)]


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items are the same at the start of both."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def replaced(raw: str, changes: Iterable[Change]) -> str:
    """The text after changes that do not overlap; those at one place keep their order."""
    pieces: list[str] = []
    position = 0
    for change in sorted(changes, key=lambda change: (change.start, change.end)):
        pieces += raw[position : change.start], change.content
        position = change.end
    return "".join([*pieces, raw[position:]])


def moved(offset: int, changes: Iterable[Change]) -> int:
    """Where the character at an offset stands after the changes."""
    shift = 0
    for change in sorted(changes, key=lambda change: change.start):
        if change.end <= offset:
            shift += len(change.content) - (change.end - change.start)
        elif change.start < offset:
            return change.start + shift
    return offset + shift


def comments_in(lines: Sequence[str]) -> int:
    """How many comments the lines of a program hold."""
    reader = io.StringIO("\n".join(lines))
    count = 0
    try:
        for token in tokenize.generate_tokens(reader.readline):
            count += token.type == tokenize.COMMENT
    except (tokenize.TokenError, SyntaxError):
        # A cell may end within what the next one goes on with; what came before counts.
        return count
    return count


class Document:
    """A file's bytes as texts that can be edited: one, or one for each cell of a notebook."""

    texts: Mapping[int | None, Text]

    def change(self, edit: TextEdit) -> Change:
        """What an edit changes in the text of its cell; raises :class:`UnfitError`."""
        return self.text(edit.cell).change(edit.location, edit.content)

    def text(self, cell: int | None) -> Text:
        """The text of a cell, or of the file; raises :class:`UnfitError`."""
        if cell not in self.texts:
            raise UnfitError("it speaks of a cell that does not exist")
        return self.texts[cell]

    def lines(self, cell: int | None, raw: str) -> list[str]:
        """The lines of Python in a text."""
        return _plain(raw).split("\n")

    def after(self, changes: Mapping[int | None, Sequence[Change]]) -> bytes:
        """The file's bytes after changes of its texts; raises :class:`UnfitError`."""
        raise NotImplementedError


class Program(Document):
    """A Python file, in its own encoding."""

    def __init__(self, data: bytes) -> None:
        text = decode(data)
        try:
            self._encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        except SyntaxError as error:
            raise UnfitError(f"the file's encoding is doubtful: {error}") from error
        self.texts = {None: Text(text)}
        if self._encoded(text) != data:
            raise UnfitError(f"text in the encoding {self._encoding} cannot be written unchanged")

    def after(self, changes: Mapping[int | None, Sequence[Change]]) -> bytes:
        """The file's bytes after changes of its text."""
        text = replaced(self.texts[None].raw, changes.get(None, ()))
        data = self._encoded(text)
        if data is None or decode(data) != text:
            raise UnfitError(f"the result cannot be written in the encoding {self._encoding}")
        return data

    def _encoded(self, text: str) -> bytes | None:
        try:
            return text.encode(self._encoding)
        except UnicodeError:
            return None


def open_document(data: bytes, path: str) -> Document:
    """The texts of a file; raises :class:`UnfitError` if they could not be written back."""
    if path.endswith(NOTEBOOK_SUFFIX):
        from memlint.linter.notebook_file import NotebookFile

        return NotebookFile(data)
    return Program(data)
