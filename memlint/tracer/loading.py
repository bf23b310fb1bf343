"""How long a program waits for its next batch."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from memlint.tracer.callsite import CallSites, SpotKey
from memlint.tracer.records import Waiting

_ASKING = "__next__"


class _Settings(NamedTuple):
    workers: int
    pins: bool


class _Place:
    __slots__ = ("began", "count", "ended", "operations", "paused", "settings", "waited")

    def __init__(self, settings: _Settings, now: float) -> None:
        self.settings = settings
        self.began = self.ended = now
        self.count, self.operations, self.waited = 0, 0, 0.0
        self.paused = 0.0


class Loading:
    """The loaders of a run, by the places where their batches are asked for."""

    def __init__(self, sites: CallSites, clock: Callable[[], float] = time.perf_counter) -> None:
        self._sites = sites
        self._clock = clock
        self._places: dict[SpotKey, _Place] = {}
        self._open: tuple[_Place, float, int] | None = None
        self._paused_at: float | None = None

    def begins(self, seen: int = 0) -> None:
        """The next batch is asked for, when ``seen`` operations have run."""
        if self._paused_at is not None:
            return
        spot, now = self._sites.here(2), self._clock()
        place = self._places.get(spot)
        if place is None:
            place = self._places[spot] = _Place(_settings_of_asking(), now)
        self._open = place, now, seen

    def ends(self, seen: int = 0) -> None:
        """It has come, if one was asked for; ``seen`` operations have run by now."""
        if self._open is not None:
            place, began, before = self._open
            place.operations += seen - before
            place.count += 1
            place.ended = self._clock()
            place.began += place.paused
            place.paused = 0.0
            place.waited += place.ended - began
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

    def records(self) -> Iterator[Waiting]:
        """The places where the program waited."""
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


def _settings_of_asking() -> _Settings:
    """The settings of the loader whose iterator is being asked."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == _ASKING:
            iterator = frame.f_locals.get("self")
            workers = getattr(iterator, "_num_workers", None)
            if isinstance(workers, int):
                return _Settings(workers, bool(getattr(iterator, "_pin_memory", False)))
        frame = frame.f_back  # type: ignore[assignment]
    return _Settings(0, False)
