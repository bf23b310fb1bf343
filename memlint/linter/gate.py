"""Which rules can have anything to say about a file, decided on its bytes alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memlint.rule import Rule, Word


class Gate:
    """A sieve for the rules of one configuration.  Each word is looked for once per file."""

    __slots__ = ("_rules",)

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = [
            (rule, sorted(map(_cheapest_first, rule.needs.groups), key=_patterns)) for rule in rules
        ]

    def pass_through(self, data: bytes) -> list[Rule]:
        """The rules whose needs the bytes meet."""
        seen: dict[bytes | re.Pattern[bytes], bool] = {}

        def holds(word: bytes | re.Pattern[bytes]) -> bool:
            if (known := seen.get(word)) is None:
                found = word in data if isinstance(word, bytes) else word.search(data)
                known = seen[word] = bool(found)
            return known

        return [
            rule for rule, groups in self._rules if all(any(map(holds, group)) for group in groups)
        ]


def _in_bytes(word: Word) -> bytes | re.Pattern[bytes]:
    return word.encode() if isinstance(word, str) else re.compile(word.pattern.encode())


def _cheapest_first(group: frozenset[Word]) -> list[bytes | re.Pattern[bytes]]:
    return sorted(map(_in_bytes, group), key=lambda word: not isinstance(word, bytes))


def _patterns(group: list[bytes | re.Pattern[bytes]]) -> int:
    return sum(not isinstance(word, bytes) for word in group)
