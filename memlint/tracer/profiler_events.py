"""What torch's profiler has seen, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memlint.layout import Strided
from memlint.tracer.records import Operand

MARK = "memlint#"
"""Begins the names of the ranges that tell, each right behind an operation, what it was."""

# The tag of what Kineto has seen itself: calls of a device's runtime, and kernels.
_DEVICE = "Kineto"
COPY, ALLOCATES = "aten::copy_", "[memory]"


@dataclass(frozen=True, slots=True)
class Allocation:
    """Memory that was taken (``nbytes`` above 0) or given back; ``total`` is what the allocator
    has given out then, by its own account."""

    address: int
    nbytes: int
    total: int
    device: str


@dataclass(frozen=True, slots=True)
class Event:
    """A range or an allocation, times in nanoseconds; made by :func:`event`.

    ``inputs`` are the tensors of a copy.  ``mark`` is the number that a mark tells, ``None`` for
    all other events; ``holds_marks`` is true of those that have some among what is within."""

    name: str
    start: int
    end: int
    thread: int
    correlation: int
    children: tuple[Event, ...]
    inputs: tuple[Operand, ...]
    allocation: Allocation | None
    mark: int | None
    holds_marks: bool


@dataclass(frozen=True, slots=True)
class Kernel:
    """What ran on a device; ``correlation`` is that of the event that launched it."""

    name: str
    start: int
    end: int
    device: str
    stream: int
    correlation: int


def event(
    name: str,
    start: int,
    end: int,
    *,
    thread: int = 0,
    correlation: int = 0,
    children: tuple[Event, ...] = (),
    inputs: tuple[Operand, ...] = (),
    allocation: Allocation | None = None,
) -> Event:
    """An event with what is said of its marks."""
    mark = int(name[len(MARK) :]) if name.startswith(MARK) else None
    holds = any(child.mark is not None or child.holds_marks for child in children)
    return Event(name, start, end, thread, correlation, children, inputs, allocation, mark, holds)


def events_of(results: Any) -> tuple[Event, ...]:
    """The events of a profile (``kineto_results``), each with those within it."""
    nodes = results.experimental_event_tree()
    return tuple(_event(node) for node in nodes if node.tag.name != _DEVICE)


def kernels_of(results: Any) -> tuple[Kernel, ...]:
    """What a profile has seen on devices."""
    return tuple(_kernels(results.events()))


def _event(node: Any) -> Event:
    name, start = str(node.name), int(node.start_time_ns)
    allocation = _allocation(node.extra_fields) if name == ALLOCATES else None
    return event(
        name,
        start,
        max(start, int(node.end_time_ns)),
        thread=int(node.start_tid),
        correlation=int(node.correlation_id),
        children=tuple([_event(child) for child in node.children if child.tag.name != _DEVICE]),
        # Reading them takes longer than all the rest.
        inputs=tuple(_operands(node.extra_fields.inputs)) if name == COPY else (),
        allocation=allocation,
    )


def _allocation(fields: Any) -> Allocation:
    return Allocation(
        int(fields.ptr), int(fields.alloc_size), int(fields.total_allocated), str(fields.device)
    )


def _operands(inputs: Iterable[Any]) -> Iterator[Operand]:
    for one in inputs:
        sizes, strides = getattr(one, "sizes", None), getattr(one, "strides", None)
        if sizes is None or strides is None or len(sizes) != len(strides):
            continue
        dtype = one.dtype
        array = Strided(tuple(sizes), tuple(strides), dtype.itemsize)
        yield Operand(array, str(dtype).removeprefix("torch."), str(one.device))


def _kernels(events: Iterable[Any]) -> Iterator[Kernel]:
    for one in events:
        kind = _DEVICES.get(str(one.device_type()).rpartition(".")[2])
        if kind is None:
            continue
        start = int(one.start_ns())
        yield Kernel(
            str(one.name()),
            start,
            start + int(one.duration_ns()),
            f"{kind}:{one.device_index()}",
            int(one.device_resource_id()),
            int(one.linked_correlation_id()),
        )


_DEVICES: Mapping[str, str] = {"CUDA": "cuda", "HIP": "cuda", "XPU": "xpu"}
