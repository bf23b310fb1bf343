"""Measures what benches state: forms in turns, in several sittings."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from memlint.bench.agreement import agree, bytes_in
from memlint.bench.pair import Comparable, Pair, Weighed
from memlint.bench.plan import SITTINGS, Plan
from memlint.bench.results import Point, Row, Unit, Verdict
from memlint.caches import count_of_sets
from memlint.measure import LEAST_CLAIM, Comparison, Run, compare, time_one, weigh

_PATIENCE = 3.0


class NotTheSame(Exception):  # noqa: N818 - it is the bench that is at fault, not the program
    """The two forms of a bench gave different results."""


class OutOfTime(Exception):  # noqa: N818 - it is no error
    """The budget of the run is spent."""


@dataclass(frozen=True, slots=True)
class Forms:
    """What is compared and how its two forms are called, for the report."""

    bench: str
    as_is: str
    alternative: str
    variant: str = ""
    size: int = 0
    dtype: str = ""


class Lab:
    """Measures within the budget of a plan.  ``clock`` gives seconds.

    ``device`` is where that is done, for the rows; ``rows`` are those since :meth:`begin`."""

    def __init__(self, plan: Plan, clock: Callable[[], float] = time.perf_counter) -> None:
        self.plan = plan
        self.device = plan.device
        self.threads = plan.threads
        self.rows: list[Row] = []
        self._clock = clock
        self._end = None if plan.budget is None else clock() + plan.budget
        self._left = 1

    def begin(self, left: int) -> None:
        """Another bench begins; what is left of the budget is for so many comparisons."""
        self._left = max(left, 1)
        self.rows = []

    def require_time(self) -> None:
        """Raise :class:`OutOfTime` where the budget is spent: before operands are made."""
        if self._end is not None and self._clock() >= self._end:
            raise OutOfTime

    @property
    def seconds(self) -> float:
        """What may be spent on the next comparison; raises :class:`OutOfTime` if nothing."""
        if self._end is None:
            return self.plan.seconds
        self.require_time()
        left = max(self._end - self._clock(), 0.0)
        return min(self.plan.seconds, left / self._left)

    def compare(self, stated: Comparable, forms: Forms, sittings: int = SITTINGS) -> Row:
        """Measure two forms; one sitting is for what takes long, and has many operands.

        Raises :class:`NotTheSame` where their results differ, :class:`OutOfTime`, and what the
        forms raise."""
        if not isinstance(stated, Pair | Weighed):  # what a third party's bench returns
            raise TypeError(f"a bench returns a Pair or a Weighed, not {stated!r}")
        seconds = self.seconds / SITTINGS
        try:
            if isinstance(stated, Weighed):
                row = self._weighed(stated, forms, seconds)
            else:
                row = self._timed(stated, forms, seconds, sittings)
        finally:
            stated.close()
        self.rows.append(row)
        return row

    def point(
        self,
        x: float,
        run: Callable[[], object],
        *,
        seconds: float,
        parts: int = 1,
        settle: Callable[[], object] = lambda: None,
    ) -> Point:
        """Seconds of one of the ``parts`` that each run of what is prepared consists of, as the
        ``y`` of a point at ``x``.

        It is measured for so many seconds, in one sitting: for curves of many points. Raises
        :class:`OutOfTime`."""
        found = time_one(lambda number: run(), budget=min(seconds, self.seconds), settle=settle)
        return Point(x, found.middle / parts, found.low / parts, found.high / parts)

    def _timed(self, pair: Pair, forms: Forms, seconds: float, sittings: int) -> Row:
        if self.plan.control:
            pair = replace(pair, as_is=pair.alternative, comparable=False)
        if pair.comparable:
            _check(pair)
        found = self._sittings(pair, seconds, sittings)
        row = self._row(found, pair.what, Unit.SECONDS, forms)
        if pair.conversion is not None:
            row = replace(
                row,
                conversion=median(one.conversion for one in found),
                net_ratio=median(one.net_ratio for one in found),
            )
        return replace(row, verdict=_verdict_of_time(row), nbytes=pair.nbytes)

    def _sittings(self, pair: Pair, seconds: float, sittings: int) -> list[Comparison]:
        """One sitting at least; no further ones where they take far longer than they should, on
        a machine that is slow or busy with other things."""
        late = self._clock() + _PATIENCE * sittings * seconds
        found = [_sitting(pair, seconds, 0)]
        while len(found) < sittings and self._clock() < late:
            found.append(_sitting(pair, seconds, len(found)))
        return found

    def _weighed(self, stated: Weighed, forms: Forms, seconds: float) -> Row:
        as_is = stated.alternative if self.plan.control else stated.as_is
        limit = _PATIENCE * SITTINGS * seconds
        found = weigh(
            as_is,
            stated.alternative,
            rounds=SITTINGS,
            grain=stated.grain,
            limit=limit,
            clock=self._clock,
        )
        row = self._row([found], f"{stated.what}: {stated.of}", Unit.BYTES, forms)
        return replace(row, verdict=_verdict_of_bytes(row))

    def _row(self, found: list[Comparison], what: str, unit: Unit, forms: Forms) -> Row:
        return Row(
            bench=forms.bench,
            variant=forms.variant,
            what=what,
            as_is_form=forms.as_is,
            alternative_form=forms.alternative,
            unit=unit,
            size=forms.size,
            dtype=forms.dtype,
            device=self.device,
            threads=self.threads,
            as_is=median(one.as_is for one in found),
            alternative=median(one.alternative for one in found),
            ratio=median(one.ratio for one in found),
            low=min(one.low for one in found),
            high=max(one.high for one in found),
            control_low=min(one.control_low for one in found),
            control_high=max(one.control_high for one in found),
            rounds=sum(one.rounds for one in found),
            verdict=Verdict.NO_DIFFERENCE,
        )


def _verdict_of_time(row: Row) -> Verdict:
    if row.low > max(LEAST_CLAIM, row.control_high):
        return Verdict.SLOWER
    if row.high < min(1 / LEAST_CLAIM, row.control_low):
        return Verdict.FASTER
    return Verdict.NO_DIFFERENCE


def _verdict_of_bytes(row: Row) -> Verdict:
    if row.low > max(LEAST_CLAIM, row.control_high):
        return Verdict.MORE
    if row.high < min(1 / LEAST_CLAIM, row.control_low):
        return Verdict.LESS
    return Verdict.NO_DIFFERENCE


def _check(pair: Pair) -> None:
    # Compiled forms are compiled by this, too.
    if not agree(_result(pair.as_is, pair.operands()), _result(pair.alternative, pair.operands())):
        raise NotTheSame(f"both forms should give the same: {pair.what}")


def _result(form: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    result = form(*operands)
    return operands if result is None else result


def _sitting(pair: Pair, seconds: float, seed: int) -> Comparison:
    first = pair.operands()
    count = count_of_sets(bytes_in(first)) if pair.rotate else 1
    sets = [first, *(pair.operands() for _ in range(count - 1))]
    conversion = None if pair.conversion is None else _on(pair.conversion, sets)
    # A collection in the middle would be charged to whichever form it falls into.
    gc.collect()
    gc.disable()
    try:
        return compare(
            _on(pair.as_is, sets),
            _on(pair.alternative, sets),
            budget=seconds,
            conversion=conversion,
            uses=pair.uses,
            settle=pair.settle,
            seed=seed,
        )
    finally:
        gc.enable()


def _on(form: Callable[..., Any], sets: list[tuple[Any, ...]]) -> Run:
    if len(sets) == 1:
        (only,) = sets
        return lambda number: form(*only)
    count = len(sets)
    return lambda number: form(*sets[number % count])
