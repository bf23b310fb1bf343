"""What fixes change, as a unified diff."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator

from memlint.report.view import paint, printable

_STYLES = {"+": "good", "-": "error", "@": "gutter"}


def unified_diff(path: str, before: bytes, after: bytes) -> Iterator[bytes]:
    """The lines of a diff that ``patch -p0`` can apply: the file's own bytes, line ends too."""
    name = os.fsencode(printable(path).replace("\n", "\\n"))
    for line in difflib.diff_bytes(difflib.unified_diff, _lines(before), _lines(after), name, name):
        yield line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"


def for_terminal(line: bytes, color: bool) -> str:
    """A line of a diff, such that it can do a terminal no harm."""
    text = printable(line.decode("utf-8", "replace").replace("\r\n", "\n"))
    if text.startswith(("---", "+++")):
        return paint(text.rstrip("\n"), "strong", color) + "\n"
    return paint(text.rstrip("\n"), _STYLES.get(text[:1], ""), color and text[:1] in _STYLES) + "\n"


def _lines(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines
