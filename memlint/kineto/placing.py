"""Which expressions of a function its calls in a trace are.

A trace has the calls of one run of a function in order, the source their candidates.  A call is
placed where its candidates leave no choice; one that could be either of two lines is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memlint.kineto.frames import Call, Called
from memlint.kineto.functions import Block, Body, Expression


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
            if len({one.block for one in candidates}) == 1:
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
        """The candidates that are evaluated on the way, in order, if they all lie in the same
        straight run; else none.  A single one may lie in a branch or a loop of its own."""
        before, after = self.before, self.after
        if before is None and not self.begins:
            return ()
        low = -1 if before is None else before.number
        high = None if after is None else after.number
        if before is not None and after is not None and before.block == after.block:
            if low < after.number:
                return _straight(_between(candidates, low, high), before.block)
            return _next_turn(candidates, before, after)
        # Outside of loops what is evaluated later stands later.
        if any(one is not None and one.in_loop for one in (before, after)):
            return ()
        return _straight(_between(candidates, low, high), ())


def _between(candidates: Sequence[Expression], low: int, high: int | None) -> list[Expression]:
    return [one for one in candidates if low < one.number and (high is None or one.number < high)]


def _next_turn(
    candidates: Sequence[Expression], before: Expression, after: Expression
) -> Sequence[Expression]:
    """Those on the way into the next turn of a loop: what stands around the loop may have been
    evaluated in between."""
    block = before.block
    left = [one for one in candidates if one.number > before.number or one.block != block]
    left += [one for one in candidates if one.number < after.number and one.block == block]
    return left if all(one.block == block for one in left) else ()


def _straight(candidates: Sequence[Expression], block: Block) -> Sequence[Expression]:
    if len(candidates) == 1 or all(one.block == block for one in candidates):
        return candidates
    return ()
