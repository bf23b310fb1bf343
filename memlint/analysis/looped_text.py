"""Whether a text holds a word in a loop, as far as its indentation tells: a sieve."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

# How far from the `for` of a comprehension its result and its conditions may stand.
_BEFORE, _AFTER = 600, 300


def in_loops(text: str, words: Iterable[str]) -> bool:
    """Whether a loop, or a function that a loop calls by its name, may hold one of the words."""
    found = [word for word in words if word in text]
    if not found:
        return False
    loops = _loops(text)
    if any(_holds(text, loop, found) for loop in loops):
        return True
    names = [f"{name}(" for name in _functions_around(text, found)]
    return bool(names) and any(_holds(text, loop, names) for loop in loops)


def called_in_loops(text: str, name: str) -> bool:
    """Whether a loop may call something by this name, other than through ``super()``."""
    calls = [*_calls(text, name)]
    return bool(calls) and any(
        first <= at and at + len(name) < last for first, last in _loops(text) for at in calls
    )


def _calls(text: str, name: str) -> Iterator[int]:
    """Where something by this name may be called, other than through ``super()``."""
    called = f"{name}("
    at = text.find(called)
    while at >= 0:
        before = text[at - 1 : at]
        if not (
            before.isalnum()
            or before == "_"
            or text.endswith(("def ", "super()."), max(at - 8, 0), at)
        ):
            yield at
        at = text.find(called, at + 1)


def _holds(text: str, loop: tuple[int, int], words: Sequence[str]) -> bool:
    return any(text.find(word, *loop) >= 0 for word in words)


@lru_cache(maxsize=4)
def _loops(text: str) -> tuple[tuple[int, int], ...]:
    """Where loops begin and end; of a comprehension, what is near it."""
    return tuple(_found_loops(text))


def _found_loops(text: str) -> Iterator[tuple[int, int]]:
    yield from loop_blocks(text)
    at = text.find("for ")
    while at >= 0:
        # The `for` of a comprehension may stand at the beginning of a line, too.
        if _indent_of(text, at) is None or not _closes_head(text, at):
            yield max(at - _BEFORE, 0), at + _AFTER
        at = text.find("for ", at + 1)


def loop_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Where loops that are statements begin and end."""
    for head in ("for ", "while "):
        at = text.find(head)
        while at >= 0:
            indent = _indent_of(text, at)
            if indent is not None:
                yield at, _end(text, at, indent)
            at = text.find(head, at + 1)


def _indent_of(text: str, at: int) -> int | None:
    """How far a line is indented, if a place is at its beginning."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    if before.strip() not in ("", "async"):
        return None
    return len(before) - len(before.lstrip())


def _closes_head(text: str, at: int) -> bool:
    return text[at : at + _BEFORE].partition("\n")[0].rstrip().endswith(":")


def _end(text: str, at: int, indent: int) -> int:
    """The end of the block that a line at ``indent`` opens."""
    start = at
    while (found := _dedented(indent).search(text, start)) is not None:
        start = found.end()
        # A text of several lines does not end a block.
        if not (text.count('"""', at, start) % 2 or text.count("'''", at, start) % 2):
            return start
    return len(text)


@lru_cache(maxsize=64)
def _dedented(indent: int) -> re.Pattern[str]:
    return re.compile(rf"\n[ \t]{{0,{indent}}}[^\s#)\]}}]")


def _functions_around(text: str, words: Iterable[str]) -> set[str]:
    """The names of the functions that hold one of the words."""
    names: set[str] = set()
    for word in words:
        at = text.find(word)
        while at >= 0:
            line = text.rfind("\n", 0, at) + 1
            indent = len(text[line:at]) - len(text[line:at].lstrip())
            name = _function_above(text, line, indent)
            if name:
                names.add(name)
            at = text.find(word, at + 1)
    return names


def _function_above(text: str, at: int, indent: int) -> str:
    while (at := text.rfind("def ", 0, at)) >= 0:
        before = text[text.rfind("\n", 0, at) + 1 : at]
        if (not before.strip() or before.strip() == "async") and (
            len(before) - len(before.lstrip()) < indent
        ):
            return text[at + 4 : at + 4 + text[at + 4 : at + 204].find("(")].strip()
    return ""
