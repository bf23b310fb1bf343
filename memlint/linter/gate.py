"""Which rules can have anything to say about a file, decided on its bytes alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TypeAlias

from memlint.late_pattern import is_pattern, late_pattern
from memlint.rule import Needs, Rule, Word

_Sign: TypeAlias = bytes | Callable[[bytes], object]


class Gate:
    """A sieve for the rules of one configuration.  Each word is looked for once per file."""

    __slots__ = ("_rules",)

    def __init__(self, rules: Sequence[Rule]) -> None:
        # The same word of several rules is one sign, which is looked for once.
        in_bytes = cache(_in_bytes)
        self._rules = [
            (rule, sorted(([*map(in_bytes, group)] for group in _groups(rule.needs)), key=_cost))
            for rule in rules
        ]

    def pass_through(self, data: bytes) -> list[Rule]:
        """The rules whose needs the bytes meet."""
        seen: dict[_Sign, bool] = {}

        def holds(sign: _Sign) -> bool:
            if (known := seen.get(sign)) is None:
                found = sign in data if isinstance(sign, bytes) else sign(data)
                known = seen[sign] = bool(found)
            return known

        return [
            rule for rule, groups in self._rules if all(any(map(holds, group)) for group in groups)
        ]


def _groups(needs: Needs) -> Iterable[Iterable[Word]]:
    """What a file must hold: as well what one of its functions must, where that may not be met
    by other files and holds for all functions."""
    if needs.across or needs.whole:
        return needs.groups
    return dict.fromkeys((*needs.groups, *needs.units, *needs.values))


def _in_bytes(word: Word) -> _Sign:
    if isinstance(word, str):
        return word.encode()
    if is_pattern(word):
        pattern = late_pattern(word.pattern.encode(), word.flags & ~re.UNICODE)
        return lambda data: pattern.search(data)
    return lambda data: word(data.decode("latin-1"))  # type: ignore[operator]


def _cost(group: list[_Sign]) -> int:
    return sum(not isinstance(sign, bytes) for sign in group)
