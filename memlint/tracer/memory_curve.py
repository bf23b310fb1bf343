"""Memory over the time of a step, and what the bytes of its peak were allocated for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memlint.tracer.located import Allocated
from memlint.tracer.records import Site

MOST_POINTS = 2_000
MOST_HOLDERS = 20

_Holder = tuple[Site | None, str]
_BEFORE: _Holder = (None, "")
"""Holds what was allocated before the step."""


def memory_of(
    allocations: Sequence[Allocated],
    zero: int,
    line: Callable[[Site | None], Mapping[str, Any] | None],
) -> list[Mapping[str, Any]]:
    """The memory of each device; ``allocations`` by their time, ``zero`` when the step began."""
    devices = dict.fromkeys(one.allocation.device for one in allocations)
    return [
        _memory_on(device, [one for one in allocations if one.allocation.device == device],
                   zero, line)
        for device in sorted(devices)
    ]  # fmt: skip


def _memory_on(
    device: str,
    allocations: Sequence[Allocated],
    zero: int,
    line: Callable[[Site | None], Mapping[str, Any] | None],
) -> Mapping[str, Any]:
    base = _before(device, allocations)
    points = [(0.0, base)]
    for one in allocations:
        us = max(one.at - zero, 0) / 1e3
        points.append((us, max(points[-1][1] + one.allocation.nbytes, 0)))
    peak = max(range(len(points)), key=lambda number: points[number][1])
    held = _held(allocations[:peak], base)
    listed = held.most_common(MOST_HOLDERS)
    return {
        "device": device,
        "points": [list(point) for point in thinned(points, MOST_POINTS)],
        "peak_bytes": points[peak][1],
        "peak_us": points[peak][0],
        "holders": [
            {"site": line(site), "operation": name, "bytes": nbytes}
            for (site, name), nbytes in listed
        ],
        "other_bytes": max(points[peak][1] - sum(nbytes for _, nbytes in listed), 0),
    }


def _before(device: str, allocations: Sequence[Allocated]) -> int:
    """What had been allocated when the step began.  On the host nobody counts that: it is what
    is seen to be given back without having been taken."""
    first = allocations[0].allocation
    if not device.startswith("cpu"):
        return max(first.total - first.nbytes, 0)
    taken: set[int] = set()
    found = 0
    for one in allocations:
        if one.allocation.nbytes > 0:
            taken.add(one.allocation.address)
        elif one.allocation.address in taken:
            taken.discard(one.allocation.address)
        else:
            found -= one.allocation.nbytes
    return found


def _held(allocations: Sequence[Allocated], base: int) -> Counter[_Holder]:
    """The bytes that have not been given back, by what they were allocated for."""
    alive: dict[int, tuple[_Holder, int]] = {}
    held: Counter[_Holder] = Counter()
    held[_BEFORE] = base
    for one in allocations:
        allocation = one.allocation
        if allocation.nbytes > 0:
            holder = _holder(one)
            alive[allocation.address] = holder, allocation.nbytes
            held[holder] += allocation.nbytes
        elif allocation.address in alive:
            holder, nbytes = alive.pop(allocation.address)
            held[holder] -= nbytes
        else:
            held[_BEFORE] += allocation.nbytes
    return +held


def _holder(one: Allocated) -> _Holder:
    site = None if one.operation is None else one.operation.site
    if site is not None:
        site = Site(site.path, site.function, site.line)
    return site, one.name


def thinned(points: Sequence[tuple[float, int]], most: int) -> list[tuple[float, int]]:
    """At most so many points: of each stretch of time its highest and its last one."""
    if len(points) <= most:
        return list(points)
    stretches = most // 2
    kept: list[tuple[float, int]] = []
    for number in range(stretches):
        part = points[len(points) * number // stretches : len(points) * (number + 1) // stretches]
        highest = max(range(len(part)), key=lambda index: part[index][1])
        kept += [part[highest]] if highest == len(part) - 1 else [part[highest], part[-1]]
    return kept
