"""A notebook as the JSON text that it is, so that a cell can change and nothing else does.

Reading the document and writing it anew would touch what other tools have written in their
own way: indentation, escapes, numbers, the order of keys, the last line end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NamedTuple

from memlint.findings import TextEdit
from memlint.linter.rewrite import Change, Document, Text, UnfitError, common, replaced
from memlint.source.notebook import python_lines

_SPACE = re.compile(r"[ \t\r\n]*")
# Control characters are always escaped; they do not tell how others are written.
_ESCAPED = re.compile(r"(?<!\\)\\u(?!00[0-7])")
_DECODER = json.JSONDecoder()


class _Span(NamedTuple):
    """Where a value stands in the JSON text."""

    start: int
    end: int


class NotebookFile(Document):
    """The code of a notebook's cells, and where it stands."""

    def __init__(self, data: bytes) -> None:
        self._encoding = json.detect_encoding(data)
        self._json = data.decode(self._encoding, "surrogatepass")
        if self._json.encode(self._encoding, "surrogatepass") != data:
            raise UnfitError(f"JSON in the encoding {self._encoding} cannot be written unchanged")
        self._spans: dict[int, _Span] = {}
        texts: dict[int | None, Text] = {}
        for number, cell in enumerate(_cells(self._json), start=1):
            span = cell.get("source") or cell.get("input")
            value = None if span is None else _value(self._json, span)
            if span is not None and value is not None:
                self._spans[number] = span
                texts[number] = Text(value)
        self.texts = texts

    def change(self, edit: TextEdit) -> Change:
        """What an edit changes in its cell; not if it covers lines that are not Python."""
        raw = self.text(edit.cell).raw
        written = super().lines(edit.cell, raw)
        covered = slice(edit.location.line - 1, edit.location.end_line)
        if written[covered] != python_lines(raw)[covered]:
            raise UnfitError("it covers a line that only IPython understands")
        return super().change(edit)

    def lines(self, cell: int | None, raw: str) -> list[str]:
        """The lines of Python in a cell's text."""
        return python_lines(raw)

    def after(self, changes: Mapping[int | None, Sequence[Change]]) -> bytes:
        """The file's bytes after changes of its cells."""
        swaps: list[Change] = []
        for cell, edits in changes.items():
            assert cell is not None
            span = self._spans[cell]
            text = replaced(self.text(cell).raw, edits)
            swaps.append(Change(span.start, span.end, self._written(span, text)))
        return replaced(self._json, swaps).encode(self._encoding, "surrogatepass")

    def _written(self, span: _Span, text: str) -> str:
        """A cell's text as JSON, in the manner in which it stands there now."""
        if self._json[span.start] == '"':
            return self._string(text, span)
        old = list(_elements(self._json, span.start))
        new = text.splitlines(keepends=True)
        values = [_string_at(self._json, element) for element in old]
        head = common(values, new)
        tail = common(values[head:][::-1], new[head:][::-1])
        written = [self._json[e.start : e.end] for e in old]
        middle = [self._string(line, span) for line in new[head : len(new) - tail]]
        lines = [*written[:head], *middle, *written[len(old) - tail :]]
        return self._framed(span, old, lines)

    def _framed(self, span: _Span, old: Sequence[_Span], lines: Sequence[str]) -> str:
        if not old:
            return f"[{', '.join(lines)}]"
        opening = self._json[span.start : old[0].start]
        closing = self._json[old[-1].end : span.end]
        if len(old) > 1:
            between = self._json[old[0].end : old[1].start]
        else:
            between = "," + (opening[1:] or " ")
        return opening + between.join(lines) + closing

    def _string(self, text: str, span: _Span) -> str:
        now = self._json[span.start : span.end]
        # Where it holds nothing to tell by, the rest of the document does.
        sample = now if not now.isascii() or _ESCAPED.search(now) else self._json
        escapes = sample.isascii() and _ESCAPED.search(sample) is not None
        return json.dumps(text, ensure_ascii=escapes)


def _cells(text: str) -> Iterator[Mapping[str, _Span]]:
    """The members of each cell, as the cells are numbered."""
    top = _members(text, _skip(text, 0))
    if "cells" in top:
        groups = [top["cells"]]
    else:
        sheets = [_members(text, sheet.start) for sheet in _elements(text, top["worksheets"].start)]
        groups = [sheet["cells"] for sheet in sheets if "cells" in sheet]
    for group in groups:
        for cell in _elements(text, group.start):
            yield _members(text, cell.start)


def _value(text: str, span: _Span) -> str | None:
    value = json.loads(text[span.start : span.end])
    return "".join(value) if isinstance(value, list) else value


def _string_at(text: str, span: _Span) -> str:
    value: str = json.loads(text[span.start : span.end])
    return value


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    assert match is not None
    return match.end()


def _members(text: str, position: int) -> dict[str, _Span]:
    """Where the values of the object at a position stand; of equal keys the last one counts."""
    found: dict[str, _Span] = {}
    position = _skip(text, position + 1)
    while text[position] != "}":
        key, position = scanstring(text, position + 1)
        start = _skip(text, _skip(text, position) + 1)
        _, end = _DECODER.raw_decode(text, start)
        found[key] = _Span(start, end)
        position = _next(text, end)
    return found


def _elements(text: str, position: int) -> Iterator[_Span]:
    """Where the elements of the array at a position stand."""
    position = _skip(text, position + 1)
    while text[position] != "]":
        _, end = _DECODER.raw_decode(text, position)
        yield _Span(position, end)
        position = _next(text, end)


def _next(text: str, end: int) -> int:
    position = _skip(text, end)
    return _skip(text, position + 1) if text[position] == "," else position
