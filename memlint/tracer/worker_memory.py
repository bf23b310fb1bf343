"""How much memory the workers of a loader come to have of their own.

What forked workers share with their parent is copied to them page by page as they write to it, be
it only the reference counts of what they read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from memlint.tracer.callsite import CallSites, SpotKey
from memlint.tracer.records import WorkerMemory

_KIB = 1024


def own_bytes(process: int) -> int | None:
    """The bytes that a process shares with no other; ``None`` where the system does not tell."""
    try:
        with open(f"/proc/{process}/smaps_rollup", encoding="ascii") as file:
            lines = file.read().splitlines()
    except OSError:  # no such system, or no such process any more
        return None
    sizes = [line.split() for line in lines if line.startswith("Private_")]
    return _KIB * sum(int(size) for _, size, *_ in sizes)


class _Workers:
    """The workers of one iterator: after how many batches they had how many bytes in all."""

    __slots__ = ("processes", "samples")

    def __init__(self, processes: Sequence[int]) -> None:
        self.processes = tuple(processes)
        self.samples: list[tuple[int, int]] = []

    @property
    def growth(self) -> int:
        """From when each worker had sent a batch until now, in bytes."""
        return self.samples[-1][1] - self.first[1] if self.samples else 0

    @property
    def first(self) -> tuple[int, int]:
        """The first sample after each worker had sent a batch; else the last one there is."""
        settled = (one for one in self.samples if one[0] >= len(self.processes))
        return next(settled, self.samples[-1])


class WorkersMemory:
    """The workers of a run's loaders, by the places where their batches are asked for."""

    def __init__(self, sites: CallSites, measured: Callable[[int], int | None] = own_bytes) -> None:
        self._sites, self._measured = sites, measured
        self._now: dict[SpotKey, _Workers] = {}
        self._most: dict[SpotKey, _Workers] = {}

    def note(self, spot: SpotKey, given: int, processes: Sequence[int]) -> None:
        """A loader with these worker processes has given so many batches."""
        workers = self._now.get(spot)
        if workers is None or workers.processes != tuple(processes):
            workers = self._now[spot] = _Workers(processes)
        sizes = [self._measured(one) for one in processes]
        known = [one for one in sizes if one is not None]
        if len(known) < len(sizes):
            return
        workers.samples.append((given, sum(known)))
        most = self._most.get(spot)
        if most is None or workers.growth > most.growth:
            self._most[spot] = workers

    def records(self) -> Iterator[WorkerMemory]:
        """The iterators whose workers grew most, one for each place."""
        for spot, workers in self._most.items():
            (begun, first), (ended, last) = workers.first, workers.samples[-1]
            yield WorkerMemory(
                self._sites.site(spot), len(workers.processes), ended - begun, first, last
            )
