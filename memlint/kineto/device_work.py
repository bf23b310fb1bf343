"""Copies between host and device, and conversions of layouts, as the device did them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memlint.kineto.homes import Homes
from memlint.kineto.kernels import CopyKind, copy_kind
from memlint.kineto.timeline import Copy, Timeline
from memlint.kineto.walk import Run
from memlint.tracer.operands import LEAST_BYTES
from memlint.tracer.records import DeviceCopy, LayoutConversion, Site

_Step = Callable[[float], int | None]
_NOBODY = "no operator"


@dataclass(slots=True)
class _Sum:
    count: int = 0
    nbytes: int = 0
    seconds: float = 0.0
    kernel: str = ""
    steps: set[int] = field(default_factory=set)


class DeviceWork:
    """What the device did for which operator."""

    def __init__(self, timeline: Timeline, sizes: Mapping[int, int],
                 by_correlation: Mapping[int, Run]) -> None:  # fmt: skip
        self._timeline, self._sizes, self._runs = timeline, sizes, by_correlation
        self._copies: defaultdict[int, list[CopyKind]] = defaultdict(list)
        for one in timeline.copies:
            self._copies[one.correlation].append(copy_kind(one.name))

    def kinds(self, run: Run) -> list[CopyKind]:
        """The kinds of the copies that a run made."""
        return [kind for one in run.correlations for kind in self._copies.get(one, ())]

    def nbytes(self, copy: Copy) -> int:
        """The bytes of a copy: as the device tells, or as its call was given."""
        return copy.nbytes if copy.nbytes is not None else self._sizes.get(copy.correlation, 0)

    def copies(self, homes: Homes, step: _Step, every: int, device: str) -> Iterator[DeviceCopy]:
        """Copies between host and device, large ones apart from small ones, by their places."""
        sums: defaultdict[tuple[Site, str, CopyKind, bool], _Sum] = defaultdict(_Sum)
        for one in self._timeline.copies:
            kind = copy_kind(one.name)
            if not (kind.to_device or kind.to_host):
                continue
            nbytes = self.nbytes(one)
            site, name, began = self._home(one.correlation, one.began, homes)
            found = sums[site, name, kind, nbytes >= LEAST_BYTES]
            found.count += 1
            found.nbytes += nbytes
            found.seconds += one.seconds
            found.steps |= _as_set(step(began))
        for (site, name, kind, _), total in sums.items():
            yield DeviceCopy(site, name, device, kind.to_device, kind.pinned, total.count,
                             len(total.steps), every, total.nbytes, total.seconds)  # fmt: skip

    def conversions(self, homes: Homes, step: _Step) -> Iterator[LayoutConversion]:
        """Kernels that only converted layouts, by the operators that they served."""
        sums: defaultdict[tuple[Site, str, str], _Sum] = defaultdict(_Sum)
        for one in self._timeline.converted:
            site, name, began = self._home(one.correlation, 0.0, homes)
            found = sums[site, name, one.formats]
            found.count += 1
            found.seconds += one.seconds
            found.kernel = one.name
            found.steps |= _as_set(step(began))
        for (site, name, formats), total in sums.items():
            yield LayoutConversion(site, name, total.kernel, formats, total.count,
                                   len(total.steps), total.seconds)  # fmt: skip

    def _home(self, correlation: int, began: float, homes: Homes) -> tuple[Site, str, float]:
        run = self._runs.get(correlation)
        if run is None:
            return homes.labelled(_NOBODY, ""), _NOBODY, began
        return homes.of(run), run.name, run.began

    def summary(self) -> dict[str, list[dict[str, Any]]]:
        """All copies by kind and all conversions by kernel, with bytes and milliseconds."""
        copies: defaultdict[str, _Sum] = defaultdict(_Sum)
        for one in self._timeline.copies:
            found = copies[one.name]
            found.count += 1
            found.nbytes += self.nbytes(one)
            found.seconds += one.seconds
        kernels: defaultdict[str, _Sum] = defaultdict(_Sum)
        for kernel in self._timeline.converted:
            total = kernels[kernel.formats]
            total.count += 1
            total.seconds += kernel.seconds
        return {
            "copies": [
                {"kind": name, "count": one.count, "bytes": one.nbytes, "ms": one.seconds * 1e3}
                for name, one in sorted(copies.items())
            ],
            "conversions": [
                {"kind": name, "count": one.count, "ms": one.seconds * 1e3}
                for name, one in sorted(kernels.items())
            ],
        }


def _as_set(step: int | None) -> set[int]:
    return set() if step is None else {step}
