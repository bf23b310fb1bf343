"""TOML files whose keys know their lines, so that an error can say where it stands."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlint.late_pattern import late_pattern


class ConfigError(Exception):
    """A configuration file, or a setting given on the command line, that cannot be used."""

    def __init__(self, path: Path | None, line: int | None, message: str) -> None:
        super().__init__(path, line, message)
        self.path = path
        self.line = line
        self.message = message

    def __str__(self) -> str:
        if self.path is None:
            return self.message
        place = str(self.path) if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.message}"


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A parsed file together with its text."""

    path: Path
    text: str
    data: Mapping[str, Any]

    def line_of(self, keys: Sequence[str], value: str | None = None) -> int | None:
        """The line of a key, or of a string within the key's value, as far as it can be found.

        A key written inside an inline table is found by its own spelling after its table.
        """
        lines = self.text.splitlines()
        line, found = self._deepest(keys, lines)
        if line is None:
            return None
        for key in keys[found:]:
            line = _line_holding(lines, line, (key,)) or line
        if value is not None:
            line = _line_holding(lines, line, (f'"{value}"', f"'{value}'")) or line
        return line

    def _deepest(self, keys: Sequence[str], lines: Sequence[str]) -> tuple[int | None, int]:
        best: tuple[int | None, int] = (None, 0)
        for number, path in _key_lines(lines):
            depth = len(path)
            if depth > best[1] and tuple(keys[:depth]) == path:
                best = (number, depth)
            elif best[0] is None and path[: len(keys)] == tuple(keys):
                best = (number, len(keys))
        return best


def read_toml(path: Path) -> TomlFile:
    """Parse a file; what is wrong with it is a :class:`ConfigError` with its line."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise ConfigError(path, None, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(path, line, "is not valid UTF-8") from error
    try:
        return TomlFile(path, text, tomllib.loads(text))
    except RecursionError as error:
        raise ConfigError(path, None, "invalid TOML: nested too deeply") from error
    except ValueError as error:  # a TOMLDecodeError, or a number of too many digits
        message, found = _without_place(str(error))
        raise ConfigError(
            path, found or text.count("\n") + 1, f"invalid TOML: {message}"
        ) from error


_PLACE = late_pattern(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def _without_place(message: str) -> tuple[str, int | None]:
    match = _PLACE.search(message)
    if match is None:
        return message, None
    return message[: match.start()], int(match[1]) if match[1] else None


_KEY_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DOTTED = rf"{_KEY_PART}(?:\s*\.\s*{_KEY_PART})*"
_TABLE = late_pattern(rf"\s*\[\[?\s*({_DOTTED})\s*\]")
_ASSIGNMENT = late_pattern(rf"\s*({_DOTTED})\s*=")
_PART = late_pattern(_KEY_PART)


def _key_lines(lines: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    table: tuple[str, ...] = ()
    for number, line in enumerate(lines, 1):
        if match := _TABLE.match(line):
            table = _parts(match[1])
            yield number, table
        elif match := _ASSIGNMENT.match(line):
            yield number, table + _parts(match[1])


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))


def _line_holding(lines: Sequence[str], start: int, spellings: Sequence[str]) -> int | None:
    for number in range(start, len(lines) + 1):
        if any(spelling in lines[number - 1] for spelling in spellings):
            return number
    return None
