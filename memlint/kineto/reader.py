"""Reads the events of a trace one by one, from a file that may be larger than memory.

A trace is a JSON object with the list ``traceEvents`` among its members, or that list alone;
either may be compressed with gzip.  What is held is the text around the current event.
"""

from __future__ import annotations

import codecs
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

_CHUNK = 1 << 20
_LONGEST = 1 << 26
"""Characters of one event, or of one other member of the file."""
_LONGEST_WORD = 32
_GZIP = b"\x1f\x8b"
_OF_GZIP = zlib.MAX_WBITS | 16
_BLANKS = " \t\r\n"


class TraceFileError(ValueError):
    """A file that is no profiler trace; the text says what is wrong, and with which file."""


class TraceFile:
    """A trace to be read once.

    After :meth:`events` has ended, ``header`` holds the members beside the events, and
    ``cut_short`` tells that the file ends in the middle: whatever wrote it was stopped.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.header: dict[str, Any] = {}
        self.cut_short = False

    def events(self) -> Iterator[Mapping[str, Any]]:
        """The events in the order of the file; raises :class:`TraceFileError`."""
        try:
            with self._opened() as stream:
                yield from self._parsed(_Text(self._pieces(stream)))
        except OSError as error:
            raise TraceFileError(f"{self.path}: {error.strerror or error}") from error

    def _opened(self) -> BufferedReader:
        if self.path.is_dir():
            raise TraceFileError(f"{self.path}: a folder, no profiler trace")
        return self.path.open("rb")

    def _pieces(self, stream: BufferedReader) -> Iterator[str]:
        decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        packed = stream.peek(len(_GZIP))[: len(_GZIP)] == _GZIP
        for data in self._unpacked(stream) if packed else iter(lambda: stream.read(_CHUNK), b""):
            text = decode(data)
            if text:
                yield text
        rest = decode(b"", True)
        if rest:
            yield rest

    def _unpacked(self, stream: IO[bytes]) -> Iterator[bytes]:
        """The content of gzip data; of what breaks off, all that is there."""
        decoder, data = zlib.decompressobj(_OF_GZIP), b""
        while data or (data := stream.read(_CHUNK)):
            try:
                piece = decoder.decompress(data, _CHUNK)
            except zlib.error as error:
                raise TraceFileError(f"{self.path}: damaged gzip data: {error}") from error
            data = decoder.unconsumed_tail
            if piece:
                yield piece
            if decoder.eof:
                data = decoder.unused_data or stream.read(_CHUNK)
                if not data.startswith(_GZIP):
                    return
                decoder = zlib.decompressobj(_OF_GZIP)
        self.cut_short = not decoder.eof

    def _parsed(self, text: _Text) -> Iterator[Mapping[str, Any]]:
        first = text.next_mark()
        if not first:
            raise TraceFileError(f"{self.path}: empty, no profiler trace")
        try:
            if first == "[":
                yield from self._listed(text)
            elif first == "{":
                yield from self._members(text)
            else:
                raise TraceFileError(f"{self.path}: no JSON, so no profiler trace")
        except _EndError:
            self.cut_short = True
        except json.JSONDecodeError as error:
            where = f"at character {text.passed + error.pos:,}"
            raise TraceFileError(f"{self.path}: no JSON {where}: {error.msg}") from error

    def _members(self, text: _Text) -> Iterator[Mapping[str, Any]]:
        found = False
        text.take("{")
        while text.next_mark() == '"':
            name = text.value()
            text.take(":")
            if name == "traceEvents" and text.next_mark() == "[":
                found = True
                yield from self._listed(text)
            else:
                self.header[name] = text.value()
            if text.next_mark() == ",":
                text.take(",")
        if not found:
            if text.next_mark() != "}":
                raise _EndError
            raise TraceFileError(f"{self.path}: no profiler trace: it has no `traceEvents`")
        text.take("}")

    def _listed(self, text: _Text) -> Iterator[Mapping[str, Any]]:
        text.take("[")
        while text.next_mark() != "]":
            event = text.value()
            if not isinstance(event, dict):
                raise TraceFileError(f"{self.path}: no profiler trace: not a list of events")
            yield event
            if text.next_mark() != "]":
                text.take(",")
        text.take("]")


class _EndError(Exception):
    """The text has ended where more has to come."""


class _Text:
    """A text that comes in pieces, read from its start to its end."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._held = ""
        self._at = 0
        self.passed = 0
        # Names of kernels hold control characters at times.
        self._decode: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder(
            strict=False
        ).raw_decode

    def next_mark(self) -> str:
        """The next character that is no blank; empty at the end."""
        while True:
            held, at = self._held, self._at
            while at < len(held) and held[at] in _BLANKS:
                at += 1
            self._at = at
            if at < len(held):
                return held[at]
            if not self._more():
                return ""

    def take(self, mark: str) -> None:
        """Pass over a character that has to come next."""
        found = self.next_mark()
        if not found:
            raise _EndError
        if found != mark:
            raise json.JSONDecodeError(f"`{mark}` expected", self._held, self._at)
        self._at += 1

    def value(self) -> Any:
        """The next value."""
        if not self.next_mark():
            raise _EndError
        while True:
            try:
                value, end = self._decode(self._held, self._at)
            except json.JSONDecodeError as error:
                if not self._may_go_on(error):
                    raise
                if not self._more():
                    raise _EndError from error
            else:
                # A number may go on in the next piece.
                if end < len(self._held) or not self._more():
                    self._at = end
                    return value

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        """Whether what is wrong may be that the text stops here."""
        if len(self._held) - self._at > _LONGEST:
            return False
        # Numbers, words and escapes that are cut are found wrong where they begin.
        unread = len(self._held) - error.pos
        return error.msg.startswith("Unterminated string") or unread < _LONGEST_WORD

    def _more(self) -> bool:
        piece = next(self._pieces, "")
        if not piece:
            return False
        self.passed += self._at
        self._held, self._at = self._held[self._at :] + piece, 0
        return True
