"""Goes through the events of each thread as they lie within each other.

An operator of the trace becomes a :class:`Run` where a dispatch mode would see it: those that
the dispatcher takes apart are passed over, and what runs inside of a kernel belongs to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from memlint.kineto.arguments import Given
from memlint.kineto.composite import COMPOSITE
from memlint.kineto.frames import Call, Called, Function, PythonEvents
from memlint.kineto.timeline import Kind, Thread, Timeline
from memlint.tracer.records import BACKWARD, FORWARD, LOADING, OPTIMIZER, Site

_NODE = "autograd::engine::evaluate_function: "
_PHASES = {"Optimizer.step#": OPTIMIZER, "enumerate(DataLoader)#": LOADING}
_TELLING = frozenset({"aten::as_strided", "aten::copy_"})
"""What tells, inside of an operator, how its result lies in memory."""
_WAITING = ("StreamSynchronize", "DeviceSynchronize", "EventSynchronize", "MemcpyWithStream")
MOST_CALLS = 8192
"""So many calls of one run of a function are held before they are placed."""


@dataclass(slots=True)
class Spot:
    """A call in a run of a function of the program; ``place`` is filled in by whoever places
    it.  ``function`` is set of one that is known by itself, with the line that it stands on."""

    call: Call
    place: Site | None = None
    function: Function | None = None


@dataclass(slots=True)
class Activation:
    """A run of a function of the program, and what it has called; ``whole`` tells that its first
    call is among ``spots``."""

    function: Function
    spots: list[Spot] = field(default_factory=list)
    whole: bool = True


@dataclass(slots=True)
class Inner:
    """An operator that ran inside of another one; times in seconds, of host and device."""

    name: str
    given: Given
    host: float
    device: float = 0.0


@dataclass(slots=True)
class Run:
    """One run of an operator.

    ``began`` is in microseconds, ``host`` and ``device`` are seconds; ``given`` are its arguments,
    ``inner`` those operators in it that tell how its result lies in memory.  ``mark`` is the
    innermost range around it that the program has named, ``node`` the node of autograd that it
    belongs to and ``sequence`` that node's number.  ``waits`` tells that the host waited for the
    device in it, ``correlations`` are its calls of the driver."""

    name: str
    began: float
    host: float
    given: Given
    phase: str
    spot: Spot | None
    mark: str
    node: str
    sequence: int
    inner: list[Inner] = field(default_factory=list)
    correlations: list[int] = field(default_factory=list)
    waits: bool = False
    kernels: int = 0
    device: float = 0.0
    hidden: bool = False


@dataclass(slots=True)
class _Open:
    """An event that others may lie in, and what holds for those."""

    end: float
    activation: Activation | None = None
    spot: Spot | None = None
    run: Run | None = None
    part: Inner | None = None
    node: str = ""
    sequence: int = -1
    closes: Activation | None = None


class Walk:
    """The runs of all operators of a timeline.

    ``activations`` are given out when they have ended, or have grown too long, to be placed;
    ``forward`` tells, of each number of a node of autograd, the operator that made it; ``alone``
    are calls that are known without the run of their function."""

    def __init__(self, timeline: Timeline, events: PythonEvents) -> None:
        self._timeline, self._events = timeline, events
        self.forward: dict[int, Run] = {}
        self.runs: list[Run] = []
        self.by_correlation: dict[int, Run] = {}
        self.alone: list[Spot] = []

    def activations(self) -> Iterator[Activation]:
        """Go through all threads."""
        for thread in self._timeline.threads.values():
            yield from self._thread(thread)

    def _thread(self, thread: Thread) -> Iterator[Activation]:
        names, kinds = self._timeline.names, thread.kinds
        stack = [_Open(float("inf"))]
        # They begin and end within Python calls, ``__enter__`` and ``__exit__``.
        marks = _Marks()
        for index in thread.order():
            begin = thread.begins[index]
            while stack[-1].end <= begin:
                done = stack.pop().closes
                if done is not None:
                    yield done
            top = stack[-1]
            kind, name = kinds[index], names[thread.names[index]]
            if kind == Kind.DRIVER:
                self._driver(top, name, thread.extras[index])
                continue
            if kind == Kind.MARK:
                marks.add(name, begin + thread.lasts[index])
                continue
            end = min(begin + thread.lasts[index], top.end)
            inner = _Open(end, top.activation, top.spot, top.run, top.part, top.node, top.sequence)
            if kind == Kind.OPERATOR:
                marks.leave(begin)
                self._operator(top, inner, thread, index, marks)
            else:
                self._python(top, inner, name)
            stack.append(inner)
            full = inner.activation
            if full is not None and len(full.spots) >= MOST_CALLS and top.activation is full:
                # The call that goes on stays where it will be placed.
                held = full.spots.pop() if full.spots[-1] is inner.spot else None
                yield Activation(full.function, full.spots, full.whole)
                full.spots, full.whole = [held] if held is not None else [], False
        for one in reversed(stack):
            if one.closes is not None:
                yield one.closes

    def _python(self, top: _Open, inner: _Open, name: str) -> None:
        event = self._events.get(name)
        if inner.spot is None and top.activation is not None:
            inner.spot = _spot(top.activation, event.call)
        if event.function is not None:
            inner.activation = inner.closes = Activation(event.function)
            inner.spot = None

    def _operator(
        self, top: _Open, inner: _Open, thread: Thread, index: int, marks: _Marks
    ) -> None:
        name = self._timeline.names[thread.names[index]]
        given = self._timeline.givens[thread.givens[index]]
        sequence = thread.extras[index]
        if name.startswith(_NODE):
            inner.sequence, inner.node = sequence, name[len(_NODE) :]
            # What called ``backward`` is not where its operators come from.
            inner.activation = inner.spot = None
            return
        if top.run is not None:
            if given.shaped and name in _TELLING:
                inner.part = Inner(name, given, thread.lasts[index] * 1e-6)
                top.run.inner.append(inner.part)
            return
        library, _, short = name.partition("::")
        if not short or library in ("torch", "profiler"):
            return
        if inner.spot is None and top.activation is not None:
            inner.spot = _spot(top.activation, Call(Called.OPERATOR, short))
        if library == "aten" and short in COMPOSITE:
            return
        if inner.spot is None and index in thread.stacks and not inner.node:
            inner.spot = self._alone(self._timeline.names[thread.stacks[index]], short)
        run = Run(name, thread.begins[index], thread.lasts[index] * 1e-6, given,
                  BACKWARD if inner.node else marks.phase(),
                  inner.spot, marks.name(), inner.node, inner.sequence)  # fmt: skip
        inner.run = run
        self.runs.append(run)
        if sequence >= 0 and not inner.node:
            # The last one with a number is the one that has used it up.
            self.forward[sequence] = run

    def _alone(self, stack: str, short: str) -> Spot | None:
        function = self._events.innermost_own(stack.split(";"))
        if function is None:
            return None
        spot = Spot(Call(Called.OPERATOR, short), function=function)
        self.alone.append(spot)
        return spot

    def _driver(self, top: _Open, name: str, correlation: int) -> None:
        run = top.run
        if run is None:
            return
        if any(part in name for part in _WAITING):
            run.waits = True
        work = self._timeline.work.get(correlation)
        if work is not None and correlation >= 0:
            run.device += work.seconds
            if top.part is not None:
                top.part.device += work.seconds
            run.kernels += work.kernels
            run.correlations.append(correlation)
            self.by_correlation[correlation] = run


def _spot(activation: Activation, call: Call) -> Spot:
    spot = Spot(call)
    activation.spots.append(spot)
    return spot


class _Marks:
    """The ranges that the program, or torch itself, has named, as far as they are open."""

    def __init__(self) -> None:
        self._open: list[tuple[float, str, str | None]] = []

    def add(self, name: str, end: float) -> None:
        """A range begins."""
        if not name.startswith("ProfilerStep#"):
            phase = next((one for start, one in _PHASES.items() if name.startswith(start)), None)
            self._open.append((end, name, phase))

    def leave(self, now: float) -> None:
        """Forget those that have ended."""
        if any(end <= now for end, _, _ in self._open):
            self._open = [one for one in self._open if one[0] > now]

    def phase(self) -> str:
        """The phase of a step, by the innermost range that tells one."""
        told = (phase for _, _, phase in reversed(self._open) if phase is not None)
        return next(told, FORWARD)

    def name(self) -> str:
        """The innermost range."""
        return self._open[-1][1] if self._open else ""
