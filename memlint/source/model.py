"""A source file as the analysis sees it."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import field

from memlint.findings import Location
from memlint.late_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell of a notebook: its number (over all cells, from 1) and its first program line."""

    number: int
    first_line: int
    lines: int


@dataclass(slots=True)
class Source:
    """One program: the text of a file, or of a notebook's code cells joined in order.

    ``path`` is what the user is shown.  ``text`` is what is parsed; a notebook's cells
    follow each other in it, each starting on its own line, magics blanked out.
    """

    path: str
    text: str
    cells: Sequence[Cell] = ()
    _lines: list[str] = field(default_factory=list)
    _held: dict[str | re.Pattern[str], bool] = field(
        default_factory=dict, repr=False, compare=False
    )

    def holds(self, word: str | re.Pattern[str]) -> bool:
        """Whether the text holds a word or a pattern; each is looked for once."""
        found = self._held.get(word)
        if found is None:
            found = word in self.text if isinstance(word, str) else bool(word.search(self.text))
            self._held[word] = found
        return found

    @property
    def lines(self) -> list[str]:
        """The text's lines as Python's tokenizer counts them, without their ends."""
        if not self._lines:
            self._lines = with_newlines(self.text).split("\n")
        return self._lines

    def place(self, node: ast.AST) -> tuple[int | None, Location]:
        """The cell and the location of a node of the parsed text."""
        line, end_line = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        start = self._column(line, node.col_offset)  # type: ignore[attr-defined]
        end = self._column(end_line, node.end_col_offset)  # type: ignore[attr-defined]
        cell, shift = self._cell(line)
        return cell, Location(line - shift, start, end_line - shift, end)

    def place_of(self, line: int, column: int) -> tuple[int | None, Location]:
        """The cell and the location of one character of the text."""
        cell, shift = self._cell(line)
        return cell, Location(line - shift, column, line - shift, column + 1)

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """The text that a node spans, with its own line ends."""
        first, last = node.lineno, node.end_lineno or node.lineno
        if self.holds("\r") or self.holds("\f"):
            return ast.get_source_segment(self.text, node) or ""
        lines = self.lines[first - 1 : last]
        end = node.end_col_offset or 0
        lines[-1] = lines[-1].encode()[:end].decode()
        lines[0] = lines[0].encode()[node.col_offset :].decode()
        return "\n".join(lines)

    def _column(self, line: int, offset: int) -> int:
        text = self.lines[line - 1]
        if text.isascii():
            return offset + 1
        return len(text.encode("utf-8")[:offset].decode("utf-8", "replace")) + 1

    def _cell(self, line: int) -> tuple[int | None, int]:
        for cell in self.cells:
            if cell.first_line <= line < cell.first_line + cell.lines:
                return cell.number, cell.first_line - 1
        return None, 0


def with_newlines(text: str) -> str:
    """A text with the line ends of Unix, as patterns expect them; its lines stay where they are."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
