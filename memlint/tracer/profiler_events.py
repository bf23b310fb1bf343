"""What torch's profiler has seen, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memlint.layout import Strided
from memlint.tracer.records import Operand

MARK = "memlint#"
"""Begins the names of the ranges that tell, each right behind an operation, what it was."""


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
    """A range or an allocation; times in nanoseconds.  ``inputs`` are its tensors."""

    name: str
    start: int
    end: int
    thread: int = 0
    correlation: int = 0
    inputs: tuple[Operand, ...] = ()
    children: tuple[Event, ...] = ()
    allocation: Allocation | None = None

    @property
    def mark(self) -> int | None:
        """The number that a mark tells; ``None`` for all other events."""
        return int(self.name[len(MARK) :]) if self.name.startswith(MARK) else None


@dataclass(frozen=True, slots=True)
class Kernel:
    """What ran on a device; ``correlation`` is that of the event that launched it."""

    name: str
    start: int
    end: int
    device: str
    stream: int
    correlation: int


def events_of(results: Any) -> tuple[Event, ...]:
    """The events of a profile (``kineto_results``), each with those within it."""
    return tuple(_event(node) for node in results.experimental_event_tree())


def kernels_of(results: Any) -> tuple[Kernel, ...]:
    """What a profile has seen on devices."""
    return tuple(_kernels(results.events()))


def _event(node: Any) -> Event:
    fields = node.extra_fields
    start, end = int(node.start_time_ns), int(node.end_time_ns)
    return Event(
        str(node.name),
        start,
        max(start, end),
        int(node.start_tid),
        int(node.correlation_id),
        tuple(_operands(getattr(fields, "inputs", ()))),
        tuple(_event(child) for child in node.children),
        _allocation(fields) if hasattr(fields, "alloc_size") else None,
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
