"""Where a function may call the blocks of a stack, as far as its syntax tells: a help of sieves.

Such a call is that of the variable of a loop, or that of a sequence of as many modules as a list
has.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from memlint.analysis.definitions_text import definitions, names_for, texts_set
from memlint.analysis.walking import kinds_in, walk
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

_SEQUENCE = late_pattern(r"\bSequential\b(\s*\()?")
# What names a class without making anything of it.
_NAMED = late_pattern(
    r"(?:(?::|->|\||\[)\s*(?:\w+\.)*|\bclass\s[^\n]*|\bisinstance\([^\n]*|\bimport\b[^\n]*)$"
)
# What sets attributes by names that are computed.
_BY_NAME = late_pattern(r"\b(?:setattr|add_module|register_module)\(|__dict__|__getattr__")
_STAR = late_pattern(r"[(,]\s*\*")
# So long, at most, are the arguments that are looked at.
_LONGEST = 4000


def may_run_stack(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function may call a block of a stack, with an argument."""
    kinds = kinds_in(function)
    names = {
        part.id
        for loop in (*kinds[ast.For], *kinds[ast.AsyncFor])
        for part in walk(loop.target)
        if isinstance(part, ast.Name)
    }
    sequences = _sequences(source)
    if not names and sequences is None:
        return False
    return any(one.args and _may_be(one.func, names, sequences) for one in kinds[ast.Call])


def _may_be(func: ast.expr, names: set[str], sequences: _Sequences | None) -> bool:
    if isinstance(func, ast.Name):
        return func.id in names
    if sequences is None:
        return False
    return not isinstance(func, ast.Attribute) or sequences.may_hold(func.attr)


@dataclass(frozen=True, slots=True)
class _Sequences:
    """The names in a program that may hold a ``Sequential`` of as many modules as a list has."""

    names: frozenset[str]
    source: str

    def may_hold(self, name: str) -> bool:
        """Whether an attribute may hold one, whatever sets it."""
        return name in self.names or (
            name not in texts_set(self.source) and _sets_by_name(self.source)
        )


@lru_cache(maxsize=8)
def _sets_by_name(source: str) -> bool:
    return _BY_NAME.search(source) is not None


@lru_cache(maxsize=8)
def _sequences(source: str) -> _Sequences | None:
    if not _makes_sequences_of_lists(source):
        return None
    makers = {one.name for one in definitions(source).functions if "Sequential" in one.text}
    names = frozenset({"Sequential"} | makers)
    return _Sequences(names.union(*(names_for(one, source) for one in names)), source)


def _makes_sequences_of_lists(source: str) -> bool:
    """Whether a program may make a ``Sequential`` of as many modules as a list has."""
    if "Sequential" not in source:
        return False
    for found in _SEQUENCE.finditer(source):
        if found[1] is None:
            line = source[source.rfind("\n", 0, found.start()) + 1 : found.start()]
            if source[found.end() : found.end() + 3] == " as" or _NAMED.search(line) is None:
                return True
        elif _has_star(source, found.end() - 1):
            return True
    return False


def _has_star(source: str, start: int) -> bool:
    """Whether the arguments that a bracket opens may hold a starred one."""
    depth = 0
    for at in range(start, min(start + _LONGEST, len(source))):
        one = source[at]
        if one in "([{":
            depth += 1
        elif one in ")]}":
            depth -= 1
            if not depth:
                return False
        if depth == 1 and one in "(," and _STAR.match(source, at):
            return True
    return True
