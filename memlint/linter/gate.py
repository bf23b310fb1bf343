"""Which rules can have anything to say about a file, decided on its bytes alone."""

from __future__ import annotations

from collections.abc import Sequence

from memlint.rule import Rule


class Gate:
    """A sieve for the rules of one configuration.  Each word is looked for once per file."""

    __slots__ = ("_rules",)

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = [
            (rule, [[word.encode() for word in sorted(group)] for group in rule.needs.groups])
            for rule in rules
        ]

    def pass_through(self, data: bytes) -> list[Rule]:
        """The rules whose needs the bytes meet."""
        seen: dict[bytes, bool] = {}

        def holds(word: bytes) -> bool:
            if (known := seen.get(word)) is None:
                known = seen[word] = word in data
            return known

        return [
            rule for rule, groups in self._rules if all(any(map(holds, group)) for group in groups)
        ]
