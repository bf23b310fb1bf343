"""Which functions of a program lead to a word, by their names and as far as the text tells: a
sieve."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

_DEFINITION = late_pattern(r"^([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+(\w+)", re.MULTILINE)
_NO_CODE = late_pattern(
    r"\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|^[ \t]*#[^\n]*|`[^`\n]*`", re.MULTILINE
)
# So long, at most, are the arguments of a call that are looked at.
_LONGEST = 1000
_CALLED = late_pattern(r"\b(\w+)\s*\(")
# Methods that run without being named, by who has an object of their class.
UNNAMED = frozenset({"forward", "__call__", "__init__", "__iter__", "__next__", "__getitem__"})


@dataclass(frozen=True, slots=True)
class Definition:
    """A function by its name and text."""

    name: str
    text: str


@lru_cache(maxsize=4)
def code_of(source: str) -> str:
    """A source without its comments on their own line, its texts of several lines, and what texts
    quote."""
    return _NO_CODE.sub("", source)


@lru_cache(maxsize=16)
def leading_to(source: str, word: re.Pattern[str]) -> frozenset[str]:
    """The names of the functions that hold what ``word`` finds, or call one that does."""
    if word.search(code_of(source)) is None:
        return frozenset()
    found = {one.name for one in definitions(source) if word.search(one.text)}
    return leading_to_names(source, frozenset(found))


@lru_cache(maxsize=16)
def leading_to_names(source: str, names: frozenset[str]) -> frozenset[str]:
    """The functions of these names, and those of a source that lead to them."""
    found, fresh = set(names), names - UNNAMED
    waiting = [(name, called) for name, called in calls_of_functions(source) if name not in found]
    while fresh:
        new = {name for name, called in waiting if not called.isdisjoint(fresh)}
        waiting = [one for one in waiting if one[0] not in new]
        found |= new
        fresh = frozenset(new - UNNAMED)
    return frozenset(found)


@lru_cache(maxsize=4)
def calls_of_functions(source: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """The functions of a source, each with the last names of what it calls."""
    return tuple((one.name, frozenset(_CALLED.findall(one.text))) for one in definitions(source))


@lru_cache(maxsize=4)
def definitions(source: str) -> tuple[Definition, ...]:
    """The functions of a source, each with its text up to the next definition that is no part of
    it."""
    code = code_of(source)
    marks = [(m.start(), len(m[1]), m[2], m[3]) for m in _DEFINITION.finditer(code)]
    found = []
    for number, (start, indent, kind, name) in enumerate(marks):
        if kind == "def":
            end = next((s for s, i, _, _ in marks[number + 1 :] if i <= indent), len(code))
            found.append(Definition(name, code[start:end]))
    return tuple(found)


@lru_cache(maxsize=16)
def called_otherwise(source: str, names: frozenset[str]) -> bool:
    """Whether one of these functions may be called by another name: it runs without being named,
    or is handed on as a value."""
    if not names or names & UNNAMED:
        return bool(names)
    handed = re.compile(
        rf"(?:[=(,\[:]|\breturn\b)\s*(?:\w+\.)*(?:{'|'.join(sorted(names))})\s*(?=[,)\n\]}}])"
    )
    return handed.search(code_of(source)) is not None


def arguments_of_calls(source: str, name: str) -> Iterator[str]:
    """What a source hands to a function of its own, as text."""
    code = code_of(source)
    if code.count(f"{name}(") == code.count(f"def {name}("):
        return
    for call in re.finditer(rf"(?<!def )\b{name}\(", code):
        at, depth = call.end(), 1
        while depth and at < min(len(code), call.end() + _LONGEST):
            depth += (code[at] == "(") - (code[at] == ")")
            at += 1
        yield code[call.end() : at]
