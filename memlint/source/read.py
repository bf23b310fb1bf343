"""Bytes to text: encodings, byte order marks, notebooks."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from memlint.findings import FileError, Location
from memlint.late_pattern import late_pattern
from memlint.source.model import Source
from memlint.source.notebook import NOTEBOOK_SUFFIX, NotebookError, read_notebook

# PEP 263, over the first two lines.
_COOKIE = late_pattern(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = late_pattern(rb"^[ \t\f]*(?:#.*)?$")
_FOREIGN_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


class SourceError(Exception):
    """A file whose bytes are not a program's text."""

    def __init__(
        self, message: str, cell: int | None = None, location: Location | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.cell = cell
        self.location = location

    def entry(self, path: str) -> FileError:
        """The entry of the report."""
        return FileError(path, self.message, self.cell, self.location)


def read_source(path: str | Path) -> Source:
    """Read a file; raises :class:`SourceError` or ``OSError``."""
    try:
        data = Path(path).read_bytes()
    except ValueError as error:  # a path with a NUL character, which no file has
        raise SourceError(f"no path: {error}") from error
    return decode_source(data, str(path))


def decode_source(data: bytes, path: str) -> Source:
    """The program in a file's bytes; raises :class:`SourceError`."""
    if path.endswith(NOTEBOOK_SUFFIX):
        try:
            text, cells = read_notebook(data)
        except NotebookError as error:
            raise SourceError(str(error)) from error
        return Source(path, text, cells)
    text = decode(data)
    if "\0" in text:
        raise SourceError("contains NUL bytes", None, _location_of(text, text.index("\0")))
    return Source(path, text)


def decode(data: bytes) -> str:
    """A program's bytes as text, in the encoding that Python would take; without the mark."""
    for mark, encoding in _FOREIGN_MARKS:
        if data.startswith(mark):
            raise SourceError(f"is encoded in {encoding}, which Python cannot read")
    has_mark = data.startswith(codecs.BOM_UTF8)
    if has_mark:
        data = data[len(codecs.BOM_UTF8) :]
    declared = _declared_encoding(data)
    if declared is None or declared.lower().replace("_", "-") in ("utf-8", "utf8"):
        return _decode_utf8(data, declared)
    if has_mark:
        raise SourceError(f"has a UTF-8 byte order mark but declares the encoding {declared!r}")
    return _decode_declared(data, declared)


def _decode_utf8(data: bytes, declared: str | None) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        hint = "" if declared else " and declares no other encoding"
        raise SourceError(
            f"is not valid UTF-8{hint} (byte 0x{data[error.start]:02x})",
            None,
            _location_of(before, len(before)),
        ) from error


def _decode_declared(data: bytes, declared: str) -> str:
    try:
        codec = codecs.lookup(declared)
    except LookupError as error:
        raise SourceError(f"declares the unknown encoding {declared!r}") from error
    # Codecs such as "hex" or "zip" turn bytes into bytes; Python takes no such source either.
    if not getattr(codec, "_is_text_encoding", True):
        raise SourceError(f"declares {declared!r}, which is not a text encoding")
    try:
        return data.decode(declared)
    except (UnicodeError, ValueError) as error:
        raise SourceError(f"is not valid {declared}: {error}") from error


def _declared_encoding(data: bytes) -> str | None:
    for line in re.split(rb"\r\n|\r|\n", data[:4096], maxsplit=2)[:2]:
        match = _COOKIE.match(line)
        if match is not None:
            return match[1].decode("ascii", "replace")
        if not _BLANK.match(line):
            return None
    return None


def _location_of(text: str, index: int) -> Location:
    before = text[:index].replace("\r\n", "\n").replace("\r", "\n")
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    return Location(line, column, line, column + 1)
