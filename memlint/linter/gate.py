"""Which rules can have anything to say about a file, decided on its bytes alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias

from memlint.late_pattern import is_name_pattern, is_pattern, late_pattern
from memlint.rule import Needs, Rule, Word
from memlint.source.model import with_newlines

_NAME = late_pattern(rb"\.?\w+\(?")
_IS_PART_OF_NAME = late_pattern(r"\.?\w+\(?", re.ASCII)
# The names of a larger file, listed before they become a set, would take much memory.
_LARGE = 1_000_000


class Passed(NamedTuple):
    """The rules that may have something to say about a file by itself, and those that may
    have it together with what the file imports."""

    speaking: list[Rule]
    open: list[Rule]


class _Text:
    """The bytes of a file, and what is made of them once for all that ask."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    @cached_property
    def characters(self) -> str:
        """The bytes as characters, whatever the encoding, with one kind of line ends."""
        return with_newlines(self.data.decode("latin-1"))

    @cached_property
    def names(self) -> bytes:
        """Each name that occurs, once, with a dot before and a parenthesis behind it: what can
        only be part of one of these is found sooner here than in the bytes."""
        if len(self.data) > _LARGE:
            return self.data
        return b"\n".join(set(_NAME.findall(self.data)))


_Test: TypeAlias = Callable[[_Text], bool]


def _is_in_names(part: bytes, text: _Text) -> bool:
    return part in text.names


def _is_in_bytes(part: bytes, text: _Text) -> bool:
    return part in text.data


def _is_found_in_names(pattern: re.Pattern[bytes], text: _Text) -> bool:
    return pattern.search(text.names) is not None


def _is_found_in_bytes(pattern: re.Pattern[bytes], text: _Text) -> bool:
    return pattern.search(text.data) is not None


def _is_true_of(test: Callable[[str], bool], text: _Text) -> bool:
    return bool(test(text.characters))


# A word's number, which is the same for all rules that declare it, and what looks for it.
_Sign: TypeAlias = tuple[int, _Test]
_Groups: TypeAlias = list[list[_Sign]]


class Gate:
    """A sieve for the rules of one configuration.  Each word is looked for once per file."""

    __slots__ = ("_count", "_open", "_rules")

    def __init__(self, rules: Sequence[Rule]) -> None:
        numbers: dict[Word, int] = {}

        def signs(groups: Iterable[Iterable[Word]]) -> _Groups:
            return [
                [(numbers.setdefault(word, len(numbers)), _test(word)) for word in group]
                for group in sorted(groups, key=_cost)
            ]

        self._rules = [(rule, signs(_groups(rule.needs))) for rule in rules]
        self._open = [(rule, signs(_own_groups(rule.needs))) for rule in rules if rule.needs.across]
        self._count = len(numbers)

    def pass_through(self, data: bytes) -> Passed:
        """The rules whose needs the bytes meet, or may meet with what is imported."""
        text = _Text(data)
        known: list[bool | None] = [None] * self._count

        def holds(sign: _Sign) -> bool:
            number, test = sign
            held = known[number]
            if held is None:
                held = known[number] = test(text)
            return held

        def meets(groups: _Groups) -> bool:
            return all(any(map(holds, group)) for group in groups)

        return Passed(
            [rule for rule, groups in self._rules if meets(groups)],
            [rule for rule, groups in self._open if meets(groups)] if b"import" in data else [],
        )


def _groups(needs: Needs) -> Iterable[Iterable[Word]]:
    """What a file must hold: as well what one of its functions must, where that may not be met
    by other files and holds for all functions."""
    if needs.across or needs.whole:
        return needs.groups
    return dict.fromkeys((*needs.groups, *needs.units, *needs.values))


def _own_groups(needs: Needs) -> Iterable[Iterable[Word]]:
    """What a file must hold that may not be met by what it imports."""
    across = frozenset(needs.across)
    return (group for group in needs.groups if across.isdisjoint(group))


def _test(word: Word) -> _Test:
    """What looks for a word; it can be handed to processes that are spawned, as a function in a
    function cannot."""
    if isinstance(word, str):
        is_part = _IS_PART_OF_NAME.fullmatch(word)
        return partial(_is_in_names if is_part else _is_in_bytes, word.encode())
    if is_pattern(word):
        pattern = late_pattern(word.pattern.encode(), word.flags & ~re.UNICODE)
        return partial(_is_found_in_names if is_name_pattern(word) else _is_found_in_bytes, pattern)
    assert callable(word)
    return partial(_is_true_of, word)


def _cost(group: Iterable[Word]) -> int:
    return sum(not isinstance(word, str) for word in group)
