"""The events of a profiled step, with the operations of the tracer that they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memlint.tracer.profiler_events import Allocation, Event
from memlint.tracer.records import BACKWARD, LOADING, OPTIMIZER, Operation

OTHER = "other"
_WAITING = "enumerate(DataLoader)"
# What torch puts around the operations of a phase.
_RANGES = (
    ("autograd::", BACKWARD),
    ("torch::autograd::", BACKWARD),
    (_WAITING, LOADING),
    ("Optimizer.", OPTIMIZER),
)


@dataclass(frozen=True, slots=True)
class Located:
    """An event with the operation that it is, or is a part of; ``depth`` counts from 0, which is
    an operation that no other has called."""

    event: Event
    operation: Operation | None
    phase: str
    depth: int


@dataclass(frozen=True, slots=True)
class Allocated:
    """An allocation with the operation that it was made in, and its name as the profiler has
    it."""

    at: int
    allocation: Allocation
    operation: Operation | None
    name: str


@dataclass(frozen=True, slots=True)
class _Around:
    """What an event stands in."""

    operation: Operation | None = None
    name: str = ""
    phase: str = OTHER
    depth: int = 0


def located(events: Sequence[Event], operations: Sequence[Operation]) -> Iterator[Located]:
    """The events that do something, those that called others first."""
    found = [
        Located(event, around.operation, around.phase, around.depth)
        for event, around in _walk(events, operations, _Around())
        if event.allocation is None
    ]
    waits = [one.event for one in found if _waits(one.event)]
    for one in found:
        inside = any(_lies_in(one.event, wait) for wait in waits)
        yield replace(one, depth=one.depth + 1) if inside else one


def _waits(event: Event) -> bool:
    return event.name.startswith(_WAITING)


def _lies_in(event: Event, wait: Event) -> bool:
    """The wait for a batch is a range that the program opens: the operations in it are not always
    its children."""
    if event is wait or event.thread != wait.thread:
        return False
    return wait.start <= event.start and event.end <= wait.end


def allocated(events: Sequence[Event], operations: Sequence[Operation]) -> list[Allocated]:
    """The allocations, by their time."""
    found = [
        Allocated(event.start, event.allocation, around.operation, around.name)
        for event, around in _walk(events, operations, _Around())
        if event.allocation is not None
    ]
    return sorted(found, key=lambda one: one.at)


def _walk(
    events: Sequence[Event], operations: Sequence[Operation], around: _Around
) -> Iterator[tuple[Event, _Around]]:
    marked = _marked(events)
    for number, event in enumerate(events):
        if event.mark is not None:
            continue
        if event.allocation is not None:
            yield event, around
            continue
        if _waits(event):
            yield event, _Around(None, event.name, LOADING)
            yield from _walk(event.children, operations, replace(around, phase=LOADING))
            continue
        within = around
        if number in marked and around.operation is None:
            mine = operations[marked[number]]
            within = _Around(mine, event.name, mine.phase)
        elif not around.name:
            within = _Around(None, "", _phase_of(event.name) or around.phase)
            if _works(event):
                within = replace(within, name=event.name)
        if within.name:
            yield event, within
            within = replace(within, depth=within.depth + 1)
        yield from _walk(event.children, operations, within)


def _marked(events: Sequence[Event]) -> dict[int, int]:
    """The numbers of marks, by the index of the event that each stands behind."""
    found: dict[int, int] = {}
    last: int | None = None
    for index, event in enumerate(events):
        if event.mark is not None:
            if last is not None:
                found[last] = event.mark
        elif event.allocation is None:
            last = index
    return found


def _works(event: Event) -> bool:
    """Whether it is an operation that holds none of the tracer's: one that does is told by
    these."""
    is_operation = "::" in event.name and _phase_of(event.name) is None
    return is_operation and not event.holds_marks


def _phase_of(name: str) -> str | None:
    return next((phase for start, phase in _RANGES if name.startswith(start)), None)
