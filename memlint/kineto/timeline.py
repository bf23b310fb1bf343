"""The events of a trace in columns: what has to be held until the last one has been read.

Kineto writes events in no order that would do: the kernel of a launch may stand before the
launch, and the Python calls of a thread after all of its operators.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from memlint.kineto.arguments import NOTHING, Given, given
from memlint.kineto.kernels import conversion


class Kind(IntEnum):
    """What an event of a thread is."""

    OPERATOR = 0
    PYTHON = 1
    MARK = 2
    DRIVER = 3


_KINDS = {
    "cpu_op": Kind.OPERATOR,
    "python_function": Kind.PYTHON,
    "user_annotation": Kind.MARK,
    "cuda_runtime": Kind.DRIVER,
    "cuda_driver": Kind.DRIVER,
    "hip_runtime": Kind.DRIVER,
    "xpu_runtime": Kind.DRIVER,
}
_ALIASES = {
    "Operator": "cpu_op",
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "Runtime": "cuda_runtime",
    "Python": "python_function",
}
"""Names of categories as older versions wrote them."""


class Thread:
    """The events of one thread, by columns; times in microseconds.

    ``stacks`` are the Python calls around operators, by their numbers in ``Timeline.names``, of
    traces that have them so (``Call stack``)."""

    __slots__ = ("begins", "extras", "givens", "kinds", "lasts", "names", "stacks")

    def __init__(self) -> None:
        self.begins = array("d")
        self.lasts = array("d")
        self.kinds = array("b")
        self.names = array("i")
        self.givens = array("i")
        self.extras = array("q")
        self.stacks: dict[int, int] = {}

    def order(self) -> list[int]:
        """The events by time, what is around others first."""
        begins, lasts = self.begins, self.lasts
        return sorted(range(len(begins)), key=lambda n: (begins[n], -lasts[n]))


@dataclass(slots=True)
class Work:
    """What a device did for one call of its driver: seconds in kernels and other work."""

    seconds: float = 0.0
    kernels: int = 0


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy as the device did it; ``nbytes`` is ``None`` where the trace does not tell."""

    name: str
    began: float
    seconds: float
    nbytes: int | None
    correlation: int


@dataclass(frozen=True, slots=True)
class Converted:
    """A kernel that only converted a layout."""

    name: str
    formats: str
    seconds: float
    correlation: int


@dataclass(slots=True)
class Timeline:
    """What is known of a run when its trace has been read.

    ``steps`` are the marks ``ProfilerStep#N``, from and to, in microseconds; where there are none,
    a step ends with each step of an optimizer, and ``unfinished`` tells that what comes after the
    last one belongs to another.
    """

    threads: dict[tuple[str, str], Thread] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    givens: list[Given] = field(default_factory=lambda: [NOTHING])
    work: dict[int, Work] = field(default_factory=dict)
    copies: list[Copy] = field(default_factory=list)
    converted: list[Converted] = field(default_factory=list)
    steps: list[tuple[float, float]] = field(default_factory=list)
    unfinished: bool = False
    events: int = 0
    operators: int = 0
    shaped: int = 0
    strided: int = 0
    python: int = 0
    stacked: int = 0
    kernels: int = 0
    unread: Counter[str] = field(default_factory=Counter)


class Collector:
    """Makes a timeline of events."""

    def __init__(self) -> None:
        self.timeline = Timeline()
        self._names: dict[str, int] = {}
        self._givens: dict[tuple[str, ...], int] = {}
        self._sizes: dict[int, int] = {}
        self._updates: list[float] = []
        self._first = math.inf

    def collect(self, events: Iterable[Mapping[str, Any]]) -> Timeline:
        """Take all events; those that are malformed are counted, and left out."""
        for event in events:
            self.timeline.events += 1
            if event.get("ph") != "X":
                continue
            category = str(event.get("cat", ""))
            category = _ALIASES.get(category, category)
            kind = _KINDS.get(category)
            args = event.get("args")
            args = args if isinstance(args, Mapping) else {}
            try:
                if kind is not None:
                    self._thread_event(kind, event, args)
                elif category in ("kernel", "gpu_memset", "gpu_memcpy"):
                    self._device_event(category, event, args)
            except (KeyError, TypeError, ValueError, OverflowError):
                self.timeline.unread[category] += 1
        self.timeline.steps = self._steps()
        return self.timeline

    def _steps(self) -> list[tuple[float, float]]:
        if self.timeline.steps or not self._updates:
            return sorted(self.timeline.steps)
        self.timeline.unfinished = True
        begin, steps = self._first, []
        for end in sorted(self._updates):
            steps.append((begin, end))
            begin = end
        return steps

    def _thread_event(self, kind: Kind, event: Mapping[str, Any], args: Mapping[str, Any]) -> None:
        name, begin, duration = str(event["name"]), _time(event["ts"]), _time(event["dur"])
        detail, extra = 0, -1
        line = self.timeline
        if kind is Kind.OPERATOR:
            detail = self._given(args)
            extra = _whole(args.get("Sequence number"))
            line.operators += 1
            known = line.givens[detail]
            line.shaped += known.shaped
            line.strided += any(one is not None and one.array.strides for one in known.tensors)
        elif kind is Kind.DRIVER:
            extra = _whole(args.get("correlation"))
            if "size" in args and extra >= 0:
                self._sizes[extra] = int(args["size"])
        elif kind is Kind.PYTHON:
            line.python += 1
        elif name.startswith("ProfilerStep#"):
            line.steps.append((begin, begin + duration))
        elif name.startswith("Optimizer.step#"):
            self._updates.append(begin + duration)
        self._first = min(self._first, begin)
        key = (str(event.get("pid")), str(event.get("tid")))
        thread = line.threads.get(key)
        if thread is None:
            thread = line.threads[key] = Thread()
        stack = args.get("Call stack")
        if kind is Kind.OPERATOR and stack:
            thread.stacks[len(thread.begins)] = self._name(str(stack))
            line.stacked += 1
        thread.begins.append(begin)
        thread.lasts.append(duration)
        thread.kinds.append(kind)
        thread.names.append(self._name(name))
        thread.givens.append(detail)
        thread.extras.append(extra)

    def _device_event(
        self, category: str, event: Mapping[str, Any], args: Mapping[str, Any]
    ) -> None:
        name, begin, seconds = str(event["name"]), _time(event["ts"]), _time(event["dur"]) * 1e-6
        correlation = _whole(args.get("correlation"))
        line = self.timeline
        work = line.work.get(correlation)
        if work is None:
            work = line.work[correlation] = Work()
        work.seconds += seconds
        if category == "gpu_memcpy":
            nbytes = args.get("bytes")
            size = int(nbytes) if nbytes is not None else None
            line.copies.append(Copy(name, begin, seconds, size, correlation))
            return
        work.kernels += 1
        line.kernels += 1
        formats = conversion(name)
        if formats is not None:
            line.converted.append(Converted(name, formats, seconds, correlation))

    def sizes(self) -> Mapping[int, int]:
        """Bytes of copies as the calls of the driver tell them, by correlation."""
        return self._sizes

    def _name(self, name: str) -> int:
        if name.startswith("<"):
            # "<built-in method add of Tensor object at 0x7f...>": the object does not matter.
            name = _ADDRESS.sub("", name)
        known = self._names.get(name)
        if known is None:
            known = self._names[name] = len(self.timeline.names)
            self.timeline.names.append(name)
        return known

    def _given(self, args: Mapping[str, Any]) -> int:
        if "Input Dims" not in args:
            return 0
        key = tuple(str(args.get(one)) for one in _GIVEN)
        known = self._givens.get(key)
        if known is None:
            known = self._givens[key] = len(self.timeline.givens)
            self.timeline.givens.append(given(args))
        return known


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_GIVEN = ("Input Dims", "Input Strides", "Input type", "Concrete Inputs")


def _time(value: Any) -> float:
    """Microseconds; raises ``ValueError`` where they are none, as NaN is."""
    time = float(value)
    if not math.isfinite(time):
        raise ValueError(value)
    return time


def _whole(value: Any) -> int:
    number = -1 if value is None else int(value)
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError(number)  # no column holds it
    return number
