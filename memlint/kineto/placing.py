"""Which expressions of a function its calls in a trace are.

A trace has the calls of one run of a function in order, the source their candidates.  A call is
placed where its candidates leave no choice; one that could be either of two lines is not.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memlint.kineto.frames import Call, Called
from memlint.kineto.functions import Block, Body, Expression, is_cut, is_loop


class Placer:
    """Places calls in one function."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self._candidates: dict[Call, tuple[Expression, ...]] = {}

    def candidates(self, call: Call) -> tuple[Expression, ...]:
        """The expressions that may be a call, whenever it happens."""
        known = self._candidates.get(call)
        if known is None:
            known = self._candidates[call] = self.body.candidates(call)
        return known

    def place(self, calls: Sequence[Call], *, whole: bool) -> list[Expression | None]:
        """The expressions of the calls of one run of the function, in their order.

        ``whole`` tells that the calls begin with the first one of the run."""
        found: list[Expression | None] = [None] * len(calls)
        for index, call in enumerate(calls):
            candidates = self.candidates(call)
            if len(candidates) == 1:
                found[index] = candidates[0]  # there is no other place
        if whole:
            self._take_turns(calls, found)
        while self._fill_gaps(calls, found, whole=whole):
            pass
        return found

    def _take_turns(self, calls: Sequence[Call], found: list[Expression | None]) -> None:
        """Calls whose candidates are evaluated one after the other, always all of them."""
        counts: Counter[Call] = Counter()
        for index, call in enumerate(calls):
            # Operators of numbers stand among those of tensors, and a trace has none of them.
            if found[index] is not None or call.kind is not Called.NAMED:
                continue
            candidates = self.candidates(call)
            if not candidates or any(one.guarded for one in candidates):
                continue
            blocks = {one.block for one in candidates}
            if len(blocks) == 1 and not any(map(is_cut, *blocks)):
                found[index] = candidates[counts[call] % len(candidates)]
                counts[call] += 1

    def _fill_gaps(
        self, calls: Sequence[Call], found: list[Expression | None], *, whole: bool
    ) -> bool:
        """Place calls by those before and after them; whether that placed any."""
        placed = False
        start = 0
        while start < len(calls):
            if found[start] is not None:
                start += 1
                continue
            end = start
            while end < len(calls) and found[end] is None:
                end += 1
            gap = _Gap(
                found[start - 1] if start else None,
                found[end] if end < len(calls) else None,
                begins=whole and not start,
            )
            placed |= self._fill(gap, calls, range(start, end), found)
            start = end
        return placed

    def _fill(
        self, gap: _Gap, calls: Sequence[Call], among: range, found: list[Expression | None]
    ) -> bool:
        """Place the calls of a gap that are as many as their candidates in it."""
        by_call: dict[Call, list[int]] = {}
        for index in among:
            by_call.setdefault(calls[index], []).append(index)
        placed = False
        for call, indices in by_call.items():
            candidates = gap.within(self.candidates(call))
            if len(candidates) not in (1, len(indices)):
                continue
            for turn, index in enumerate(indices):
                found[index] = candidates[turn % len(candidates)]
            placed = True
        return placed


@dataclass(frozen=True, slots=True)
class _Gap:
    """Calls between two that have been placed; at the ends of a run there is none.

    ``begins`` tells that nothing of the run has come before."""

    before: Expression | None
    after: Expression | None
    begins: bool

    def within(self, candidates: Sequence[Expression]) -> Sequence[Expression]:
        """The candidates that are evaluated on the way, in order, if they all lie in the straight
        run that leads from one end to the other; else none.  A single one may lie anywhere."""
        if self.before is None and not self.begins:
            return ()
        start, end = _End.of(self.before, -1), _End.of(self.after, sys.maxsize)
        if start.number >= end.number:
            again = self.before is not None and self.after is not None
            return _next_turn(candidates, start, end) if again and start.block == end.block else ()
        run = _shared(start.block, end.block)
        # Else the loop around both may have begun anew in between.
        if run not in (start.block, end.block) and _loops(run):
            return ()
        # Without an end the last turn of a loop need not have come to its end either.
        ways = [_Way.to(start, run, sure=self.after is not None), _Way.to(end, run, sure=True)]
        found = [
            one
            for one in candidates
            if start.number < one.number < end.number or any(way.repeats(one) for way in ways)
        ]
        straight = {run}.union(*(way.straight for way in ways))
        return found if len(found) == 1 or all(one.block in straight for one in found) else ()


@dataclass(frozen=True, slots=True)
class _End:
    """Where a gap begins or ends, in the order of evaluation."""

    number: int
    block: Block

    @classmethod
    def of(cls, expression: Expression | None, number: int) -> _End:
        """An expression, or the end of the function itself."""
        if expression is None:
            return cls(number, ())
        return cls(expression.number, expression.block)


def _shared(one: Block, other: Block) -> Block:
    """The innermost run that both lie in."""
    pairs = zip(one, other, strict=False)
    return tuple(a for a, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _loops(block: Block) -> bool:
    return any(map(is_loop, block))


@dataclass(frozen=True, slots=True)
class _Way:
    """From a run into the branches and loops that an end of a gap lies in: those that are gone
    through once, and the outermost loop that may have begun anew on the way, or none."""

    straight: tuple[Block, ...]
    loop: Block

    @classmethod
    def to(cls, end: _End, run: Block, *, sure: bool) -> _Way:
        """What lies directly in a loop is evaluated in each turn, so that there was but one: if
        it is ``sure`` that the turn was ended."""
        straight: list[Block] = []
        for length in range(len(run) + 1, len(end.block) + 1):
            block = end.block[:length]
            always = block == end.block and sure and not is_cut(block[-1])
            if is_loop(block[-1]) and not always:
                return cls(tuple(straight), block)
            straight.append(block)
        return cls(tuple(straight), ())

    def repeats(self, one: Expression) -> bool:
        """Whether an expression lies in the loop that may have begun anew."""
        return bool(self.loop) and one.block[: len(self.loop)] == self.loop


def _next_turn(candidates: Sequence[Expression], before: _End, after: _End) -> Sequence[Expression]:
    """Those on the way into the next turn of a loop; what else stands in it, and in loops around
    it, may have been evaluated in between."""
    block = before.block
    outermost = next((n for n, number in enumerate(block) if is_loop(number)), None)
    if outermost is None:
        return ()
    around = block[: outermost + 1]
    inside = [one for one in candidates if one.block[: len(around)] == around]
    left = [one for one in inside if one.number > before.number or one.block != block]
    left += [one for one in inside if one.number < after.number and one.block == block]
    always = all(one.block == block for one in left) and not any(map(is_cut, block))
    return left if always or len(left) == 1 else ()
