"""What the evidence file says of the profiled step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memlint.tracer.located import OTHER, Located, allocated, located
from memlint.tracer.memory_curve import memory_of
from memlint.tracer.profiler_events import Event, Kernel
from memlint.tracer.records import BACKWARD, FORWARD, LOADING, OPTIMIZER, Operation, Site

MOST_EVENTS = 5_000
_PHASES = (LOADING, FORWARD, BACKWARD, OPTIMIZER, OTHER)

Shown = Callable[[str], str]
"""Spells a path as findings do."""


def profile_of(
    events: Sequence[Event],
    kernels: Sequence[Kernel],
    operations: Sequence[Operation],
    *,
    began: int,
    seconds: float,
    shown: Shown,
) -> Mapping[str, Any]:
    """The profile as plain data; ``began`` is in nanoseconds, as the times of events are.

    Of more than :data:`MOST_EVENTS` events the longest are kept."""
    placed = list(located(events, operations))
    starts = [one.event.start for one in placed]
    zero = min([began, *starts])
    threads = _threads(placed)
    rows = [_event_row(one, zero, threads, shown) for one in placed]
    rows += _kernel_rows(kernels, placed, zero, shown)
    kept = sorted(rows, key=lambda row: -row["us"])[:MOST_EVENTS]
    return {
        "step_ms": seconds * 1e3,
        "events": sorted(kept, key=lambda row: (row["start_us"], -row["us"])),
        "events_left_out": len(rows) - len(kept),
        "phases": _phases(placed),
        "memory": memory_of(allocated(events, operations), zero, lambda one: line_of(one, shown)),
    }


def line_of(site: Site | None, shown: Shown) -> Mapping[str, Any] | None:
    """A place as its line; ``None`` where it lies in no file."""
    if site is None or site.path.startswith("<") or site.line < 1:
        return None
    return {"path": shown(site.path), "function": site.function, "line": site.line}


def _threads(placed: Sequence[Located]) -> Mapping[int, int]:
    """Threads by their number: the one that most of the program's operations ran on is 0."""
    first = next((one.event.thread for one in placed if one.operation is not None), None)
    every = dict.fromkeys(one.event.thread for one in placed)
    ordered = sorted(every, key=lambda thread: thread != first)
    return {thread: number for number, thread in enumerate(ordered)}


def _event_row(
    one: Located, zero: int, threads: Mapping[int, int], shown: Shown
) -> Mapping[str, Any]:
    event = one.event
    return {
        "name": event.name,
        "site": _site_of(one, shown),
        "phase": one.phase,
        "start_us": (event.start - zero) / 1e3,
        "us": (event.end - event.start) / 1e3,
        "thread": threads[event.thread],
        "device": "cpu",
    }


def _kernel_rows(
    kernels: Sequence[Kernel], placed: Sequence[Located], zero: int, shown: Shown
) -> list[Mapping[str, Any]]:
    launched = {one.event.correlation: one for one in placed}
    return [
        {
            "name": kernel.name,
            "site": _site_of(launched.get(kernel.correlation), shown),
            "phase": launched[kernel.correlation].phase
            if kernel.correlation in launched
            else OTHER,
            "start_us": max(kernel.start - zero, 0) / 1e3,
            "us": (kernel.end - kernel.start) / 1e3,
            "thread": kernel.stream,
            "device": kernel.device,
        }
        for kernel in kernels
    ]


def _site_of(one: Located | None, shown: Shown) -> Mapping[str, Any] | None:
    if one is None or one.operation is None:
        return None
    return line_of(one.operation.site, shown)


def _phases(placed: Sequence[Located]) -> list[Mapping[str, Any]]:
    """The time in operations that no other one called, by phases."""
    rows: list[Mapping[str, Any]] = []
    for phase in _PHASES:
        mine = [one.event for one in placed if one.phase == phase and one.depth == 0]
        if mine:
            ms = sum(event.end - event.start for event in mine) / 1e6
            rows.append({"phase": phase, "ms": ms, "operations": len(mine)})
    return rows
