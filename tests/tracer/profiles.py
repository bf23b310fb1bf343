"""Profiles of steps that no test machine can run, written by hand."""

from __future__ import annotations

from memlint.layout import Strided
from memlint.tracer.profiler_events import MARK, Allocation, Event
from memlint.tracer.profiler_events import event as make
from memlint.tracer.records import Operand, Operation, Site


def event(name: str, start: float, end: float, *children: Event, **fields: int) -> Event:
    """An event; times in microseconds."""
    return make(name, int(start * 1e3), int(end * 1e3), children=children, **fields)


def mark(number: int, at: float) -> Event:
    return event(f"{MARK}{number}", at, at)


def memory(at: float, address: int, nbytes: int, total: int = 0, device: str = "cpu") -> Event:
    moment = int(at * 1e3)
    return make("[memory]", moment, moment, allocation=Allocation(address, nbytes, total, device))


def tensor(*shape: int, strides: tuple[int, ...], dtype: str = "float32") -> Operand:
    return Operand(Strided(shape, strides, 4), dtype, "cuda:0")


def operation(
    name: str, line: int, *operands: Operand, phase: str = "forward", path: str = "train.py"
) -> Operation:
    return Operation(Site(path, "step", line), name, phase, operands, (), count=1, steps=1)
