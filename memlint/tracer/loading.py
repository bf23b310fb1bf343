"""How long a program waits for its next batch."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from memlint.tracer.callsite import CallSites, SpotKey
from memlint.tracer.records import Waiting, WorkerMemory
from memlint.tracer.worker_memory import WorkersMemory

_ASKING = "__next__"


class _Asked(NamedTuple):
    """The iterator that is asked: its settings, how many batches it has given so far (``None``
    if it does not tell), and, each time that these have doubled, its worker processes."""

    workers: int
    pins: bool
    given: int | None
    processes: tuple[int, ...] = ()


class _Wait(NamedTuple):
    """One wait, from ``began`` to ``ended``, of an iterator that had given ``given`` batches;
    ``operations`` is how many were traced meanwhile, ``paused`` how long nothing counted before."""

    began: float
    ended: float
    given: int | None
    operations: int
    paused: float


class _Place:
    __slots__ = ("began", "count", "ended", "last", "operations", "paused", "settings", "waited")

    def __init__(self, settings: _Asked, now: float) -> None:
        self.settings = settings
        self.began = self.ended = now
        self.count, self.operations, self.waited = 0, 0, 0.0
        self.paused = 0.0
        # It counts once the next batch is asked for: the last one of a loop brings no batch, but
        # the end of the workers.
        self.last: _Wait | None = None

    def add(self, given: int | None) -> None:
        """Count the last wait, if an iterator that has given so many batches gave one then."""
        last, self.last = self.last, None
        if last is None or (given is not None and last.given is not None
                            and given != last.given + 1):  # fmt: skip
            return
        self.count += 1
        self.operations += last.operations
        self.waited += last.ended - last.began
        self.began += last.paused
        self.ended = last.ended


class Loading:
    """The loaders of a run, by the places where their batches are asked for."""

    def __init__(self, sites: CallSites, clock: Callable[[], float] = time.perf_counter) -> None:
        self._sites = sites
        self._clock = clock
        self._memory = WorkersMemory(sites)
        self._places: dict[SpotKey, _Place] = {}
        self._open: tuple[_Place, float, int | None, int] | None = None
        self._paused_at: float | None = None

    def begins(self, seen: int = 0) -> None:
        """The next batch is asked for, when ``seen`` operations have run."""
        spot, asked = self._sites.here(2), _asked()
        place = self._places.get(spot)
        if place is not None:
            place.add(asked.given)
        if asked.processes and asked.given is not None:
            self._memory.note(spot, asked.given, asked.processes)
        if self._paused_at is not None:
            return
        now = self._clock()
        if place is None:
            place = self._places[spot] = _Place(asked, now)
        self._open = place, now, asked.given, seen

    def ends(self, seen: int = 0) -> None:
        """It has come, if one was asked for; ``seen`` operations have run by now."""
        if self._open is not None:
            place, began, given, before = self._open
            place.last = _Wait(began, self._clock(), given, seen - before, place.paused)
            place.paused = 0.0
            self._open = None

    def pauses(self) -> None:
        """What is waited for from now on, and the time that passes, does not count."""
        self._paused_at, self._open = self._clock(), None

    def resumes(self) -> None:
        """It counts again."""
        if self._paused_at is None:
            return
        paused, self._paused_at = self._clock() - self._paused_at, None
        for place in self._places.values():
            place.paused += paused

    def records(self) -> Iterator[Waiting | WorkerMemory]:
        """The places where the program waited, and what the workers that it waited for hold."""
        yield from self._memory.records()
        for spot, place in self._places.items():
            yield Waiting(
                self._sites.site(spot),
                place.count,
                place.waited,
                place.ended - place.began,
                place.settings.workers,
                place.settings.pins,
                place.operations,
            )


def _asked() -> _Asked:
    """What is known of the iterator that is being asked."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == _ASKING:
            iterator = frame.f_locals.get("self")
            workers = getattr(iterator, "_num_workers", None)
            if isinstance(workers, int):
                pins = bool(getattr(iterator, "_pin_memory", False))
                given = getattr(iterator, "_num_yielded", None)
                return _Asked(workers, pins, given, _processes(iterator, given))
        frame = frame.f_back  # type: ignore[assignment]
    return _Asked(0, False, None)


def _processes(iterator: object, given: int | None) -> tuple[int, ...]:
    """The worker processes of an iterator that has given 1, 2, 4, ... batches."""
    if not given or given & (given - 1):
        return ()
    return tuple(one.pid for one in getattr(iterator, "_workers", ()))
