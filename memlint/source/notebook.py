"""Jupyter notebooks as one program: code cells in order, IPython's own syntax blanked out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from memlint.late_pattern import late_pattern
from memlint.source.model import Cell

NOTEBOOK_SUFFIX = ".ipynb"
# Cell magics that run their body as Python in the notebook's own namespace.
_PYTHON_MAGICS = frozenset(
    {
        "capture",
        "debug",
        "memit",
        "memray_flamegraph",
        "prun",
        "scalene",
        "snakeviz",
        "time",
        "timeit",
    }
)
_CELL_MAGIC = late_pattern(r"\s*%%\s*(\w+)")
_LINE_MAGIC = late_pattern(r"(\s*)(?:%|!|\?|[,;/](?=\w)|\w[\w.]*\?\??\s*$)")
_ASSIGNED_MAGIC = late_pattern(r"([\w.,\[\]\s]*=\s*)[%!](?=\S)")
_LEXEME = late_pattern(
    r"""(?P<triple>[\"]{3}|'{3})
    |(?P<string>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)
    |(?P<comment>\#.*)
    |(?P<open>[\[({])
    |(?P<close>[\])}])""",
    re.VERBOSE | re.DOTALL,
)


class NotebookError(Exception):
    """A file that is not a notebook."""


def read_notebook(data: bytes) -> tuple[str, tuple[Cell, ...]]:
    """The program of a notebook (format 3 or 4), and where its code cells lie in it."""
    content = _load(data)
    if _language(content) not in ("python", "ipython"):
        return "", ()
    texts: list[str] = []
    cells: list[Cell] = []
    first_line = 1
    for number, cell in enumerate(_cells(content), start=1):
        if cell.get("cell_type") != "code" or cell.get("language", "python") != "python":
            continue
        lines = python_lines(_cell_text(cell, number))
        cells.append(Cell(number, first_line, len(lines)))
        first_line += len(lines)
        texts.extend(line + "\n" for line in lines)
    return "".join(texts), tuple(cells)


def _load(data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotebookError(f"is not a valid notebook: {error}") from error
    if not isinstance(content, dict):
        raise NotebookError("is not a valid notebook: not a JSON object")
    return content


def _language(content: dict[str, Any]) -> str:
    metadata = content.get("metadata")
    if not isinstance(metadata, dict):
        return "python"
    for table, key in (("language_info", "name"), ("kernelspec", "language")):
        info = metadata.get(table)
        if isinstance(info, dict) and isinstance(info.get(key), str):
            return str(info[key]).lower()
    return "python"


def _cells(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "cells" in content:
        groups = [content["cells"]]
    else:
        sheets = content.get("worksheets")
        if not isinstance(sheets, list) or not all(isinstance(s, dict) for s in sheets):
            raise NotebookError("is not a valid notebook: it has no cells")
        groups = [sheet.get("cells", []) for sheet in sheets]
    for cells in groups:
        if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
            raise NotebookError("is not a valid notebook: its cells are not a list of objects")
        yield from cells


def _cell_text(cell: dict[str, Any], number: int) -> str:
    text = cell.get("source", cell.get("input", ""))
    if isinstance(text, list) and all(isinstance(line, str) for line in text):
        text = "".join(text)
    if not isinstance(text, str):
        raise NotebookError(f"is not a valid notebook: cell {number} has no text")
    if "\0" in text:
        raise NotebookError(f"contains NUL characters in cell {number}")
    return text


def python_lines(text: str) -> list[str]:
    """A cell's lines, with what only IPython understands made neutral, line by line."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    first = next((index for index, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return lines
    if (magic := _CELL_MAGIC.match(lines[first])) is not None:
        if magic[1] not in _PYTHON_MAGICS:
            return [""] * len(lines)
        lines[first] = ""
    return _without_line_magics(lines)


def _without_line_magics(lines: list[str]) -> list[str]:
    result: list[str] = []
    scanner = _Scanner()
    magic_goes_on = False
    for line in lines:
        at_start = scanner.at_statement_start
        if magic_goes_on:
            neutral: str | None = ""
        elif at_start:
            neutral = _neutral(line)
        else:
            neutral = None
        if neutral is None:
            scanner.feed(line)
            result.append(line)
        else:
            magic_goes_on = line.rstrip().endswith("\\")
            result.append(neutral)
    return result


def _neutral(line: str) -> str | None:
    """What stands in for a line that is not Python; ``None`` if it is."""
    if (match := _LINE_MAGIC.match(line)) is not None:
        return f"{match[1]}pass"
    match = _ASSIGNED_MAGIC.match(line)
    if match is not None and not match[1].lstrip().startswith("="):
        return f"{match[1]}get_ipython()"
    return None


class _Scanner:
    """Follows brackets, strings and continued lines far enough to know where statements start."""

    def __init__(self) -> None:
        self._depth = 0
        self._quote: str | None = None
        self._continued = False

    @property
    def at_statement_start(self) -> bool:
        return self._depth == 0 and self._quote is None and not self._continued

    def feed(self, line: str) -> None:
        position = 0
        while position < len(line):
            if self._quote is not None:
                position = self._skip_string(line, position)
                continue
            match = _LEXEME.search(line, position)
            if match is None or match["comment"] is not None:
                break
            position = match.end()
            if match["triple"] is not None:
                self._quote = match["triple"]
            elif match["open"] is not None:
                self._depth += 1
            elif match["close"] is not None:
                self._depth = max(0, self._depth - 1)
        in_comment = self._quote is None and "#" in line[position:]
        self._continued = line.endswith("\\") and not in_comment

    def _skip_string(self, line: str, position: int) -> int:
        assert self._quote is not None
        while (end := line.find(self._quote, position)) > 0 and line[end - 1] == "\\":
            position = end + 1
        if end < 0:
            return len(line)
        self._quote = None
        return end + 3
