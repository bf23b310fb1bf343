"""Patterns as written in .gitignore files, compiled for a walk that prunes folders.

Every entry that a walk meets is asked about once, by its own name, and an ignored folder
is never entered.  That is how git itself reads the patterns, and it allows all patterns
of a file to be joined into two regular expressions: the cost per entry does not grow with
the number of patterns by more than the regular expression engine needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

_POSIX_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_STAR = "[^/]*"
_DEEP = "(?:.*/)?"
# Stands in group names for the pattern's number; in a literal it would be escaped.
_OWN = "~own~"
_BRACKET = late_pattern(r"\[([!^]?)(\]?(?:\[:\w+:\]|\\.|[^\]\\])*)\]")
_BRACKET_ITEM = late_pattern(r"\[:(\w+):\]|\\(.)|(.)", re.DOTALL)


class _Pattern(NamedTuple):
    regex: str
    ignores: bool
    folders_only: bool
    by_name: bool


class _Joined:
    """Patterns in one regular expression; the last one that matches is the one that counts."""

    __slots__ = ("_order", "_regex")

    def __init__(self, patterns: Iterable[tuple[int, str]]) -> None:
        backwards = sorted(patterns, reverse=True)
        parts = [f"(?P<p{i}>{regex.replace(_OWN, f'p{i}_')})\\Z" for i, regex in backwards]
        self._regex = re.compile("|".join(parts), re.DOTALL)
        self._order = {self._regex.groupindex[f"p{i}"]: i for i, _ in backwards}

    def last_match(self, text: str) -> int:
        """The index of the last matching pattern, or -1."""
        match = self._regex.match(text)
        return -1 if match is None else self._order[match.lastindex or 1]


@dataclass(frozen=True, slots=True)
class _Matcher:
    names: _Joined | None
    paths: _Joined | None

    def last_match(self, path: str, name: str) -> int:
        found = self.names.last_match(name) if self.names is not None else -1
        if self.paths is not None:
            found = max(found, self.paths.last_match(path))
        return found


class IgnorePatterns:
    """The patterns of one .gitignore file, or of a list of such patterns."""

    __slots__ = ("_files", "_folders", "_ignores")

    def __init__(self, lines: Iterable[str]) -> None:
        patterns = [pattern for line in lines if (pattern := _parse(line)) is not None]
        self._ignores = [pattern.ignores for pattern in patterns]
        numbered = list(enumerate(patterns))
        self._folders = _matcher(numbered)
        self._files = _matcher([item for item in numbered if not item[1].folders_only])

    def __bool__(self) -> bool:
        return bool(self._ignores)

    def ignores(self, path: str, name: str, is_folder: bool) -> bool | None:
        """Whether an entry is ignored; ``None`` if no pattern speaks of it.

        ``path`` is relative to the folder that the patterns belong to, ``name`` its last part.
        """
        matcher = self._folders if is_folder else self._files
        found = matcher.last_match(path, name)
        return None if found < 0 else self._ignores[found]

    def cover(self, path: str) -> bool:
        """Whether a file, or a folder that it lies in, is ignored."""
        parts = path.split("/")
        return any(
            self.ignores("/".join(parts[:end]), parts[end - 1], end < len(parts)) is True
            for end in range(1, len(parts) + 1)
        )


def _matcher(patterns: list[tuple[int, _Pattern]]) -> _Matcher:
    names = [(index, pattern.regex) for index, pattern in patterns if pattern.by_name]
    paths = [(index, pattern.regex) for index, pattern in patterns if not pattern.by_name]
    return _Matcher(_Joined(names) if names else None, _Joined(paths) if paths else None)


def _parse(line: str) -> _Pattern | None:
    text = _without_trailing_spaces(line.rstrip("\r\n"))
    if not text or text.startswith("#"):
        return None
    ignores = not text.startswith("!")
    if not ignores:
        text = text[1:]
    folders_only = text.endswith("/")
    if folders_only:
        text = text[:-1]
    by_name = "/" not in text
    if text.startswith("/"):
        text = text[1:]
    if not text:
        return None
    regex = _translate(text)
    return None if regex is None else _Pattern(regex, ignores, folders_only, by_name)


def _without_trailing_spaces(text: str) -> str:
    stripped = text.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if backslashes % 2 and len(stripped) < len(text) else stripped


def _translate(glob: str) -> str | None:
    """The regular expression of a glob; ``None`` if git would never match it."""
    groups: list[list[str]] = [[""]]
    position = 0
    while position < len(glob):
        character = glob[position]
        if character == "*":
            star, position = _stars(glob, position)
            if star == _DEEP:
                groups.append([""])
            elif star == _STAR:
                groups[-1].append("")
            else:
                groups[-1][-1] += star
            continue
        if character == "?":
            regex, position = "[^/]", position + 1
        elif character == "[":
            match = _BRACKET.match(glob, position)
            if match is None:
                return None
            regex, position = _bracket(match), match.end()
        elif character == "\\":
            if position + 1 == len(glob):
                return None
            regex, position = re.escape(glob[position + 1]), position + 2
        else:
            regex, position = re.escape(character), position + 1
        groups[-1][-1] += regex
    return _joined(groups)


def _joined(groups: list[list[str]]) -> str:
    """The groups between ``**/``, each a list of what stands between its ``*``.

    Where several stars could share a text in many ways, only the first way is tried, as any
    later one leaves less to the rest: patterns may come from a repository that nobody
    trusts, and the ways to share a text are as many as its length to the power of the stars.
    """
    number = count()
    first, *deep = (_between_slashes(group, number) for group in groups)
    if not deep:
        return first
    middle = [_only_first_way(f"(?:.*?/)??{group}", number) for group in deep[:-1]]
    return "".join([first, *middle, _DEEP, deep[-1]])


def _between_slashes(parts: list[str], number: Iterator[int]) -> str:
    first, *starred = parts
    if not starred:
        return first
    middle = [_only_first_way(f"[^/]*?{part}", number) for part in starred[:-1]]
    return "".join([first, *middle, _STAR, starred[-1]])


def _only_first_way(regex: str, number: Iterator[int]) -> str:
    """An atomic group, in words that Python 3.10 understands."""
    name = f"{_OWN}{next(number)}"
    return f"(?=(?P<{name}>{regex}))(?P={name})"


def _stars(glob: str, start: int) -> tuple[str, int]:
    end = start
    while end < len(glob) and glob[end] == "*":
        end += 1
    opens = start == 0 or glob[start - 1] == "/"
    if end - start >= 2 and opens:
        if end == len(glob):
            return ".+", end
        if glob[end] == "/":
            return _DEEP, end + 1
    return _STAR, end


def _bracket(match: re.Match[str]) -> str:
    negated, body = match.groups()
    items: list[str] = []
    for posix, escaped, plain in _BRACKET_ITEM.findall(body):
        if posix:
            items.append(_POSIX_CLASSES.get(posix, ""))
        elif plain == "-":
            items.append("-")
        else:
            items.append(re.escape(escaped or plain))
    allowed = "".join(items)
    if not allowed:
        return "(?!)"
    try:
        re.compile(f"[{allowed}]")
    except re.error:  # a range that runs backwards: git matches nothing with it
        return "(?!)"
    return f"(?!/)[{'^' if negated else ''}{allowed}]"
