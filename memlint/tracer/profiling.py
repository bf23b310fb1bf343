"""One step of the program under torch's own profiler.

The dispatch mode stays active meanwhile: right behind each operation it puts a range into the
profile whose name says which of its records the operation is.  So the events of the profiler
have the places that the tracer has worked out.
"""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.autograd import profiler as torch_profiler
from torch.profiler import ProfilerAction, profile

from memlint.tracer.notices import withheld
from memlint.tracer.profiler_events import MARK, Event, Kernel, events_of, kernels_of
from memlint.tracer.recorder import Noted, Recorder
from memlint.tracer.records import Operation

NO_PROFILER = "this torch has no profiler"
OTHER_PROFILER = "the program runs torch's profiler itself"
FORKED = "the program forked in each step that was tried"
BUSY = "memlint.trace() profiles a step on another thread: trace with profile_step=False"
MOST_OPERATIONS = 20_000
_PATIENCE = 10.0
TOO_LONG = f"a step has more than {MOST_OPERATIONS:,} operations"
_STARTERS = ("_prepare_profiler", "_enable_profiler")


class StepProfiler:
    """Profiles what runs between :meth:`begin` and :meth:`end`, on the thread that calls them.

    A process that forks meanwhile, or a program that starts torch's profiler itself, ends it:
    then there is nothing to be read.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.hindrance = ""
        self.began = self.seconds = 0.0
        self.begins_at = 0
        self._device = "cuda" if torch.cuda.is_available() else None
        self._noted: list[Noted] = []
        self._numbers: dict[int, int] = {}
        self._marks = 0
        self._range: Any = None
        self._profile: Any = None
        self._results: Any = None
        self._thread = threading.get_ident()
        self._is_in_the_way = False
        self._has_stopped = threading.Event()
        self._stack = ExitStack()

    def begin(self) -> bool:
        """Start; false, with a ``hindrance``, where that cannot be."""
        self._range = getattr(torch._C._profiler, "_RecordFunctionFast", None)
        if self._range is None or not torch._C._autograd.kineto_available():
            self.hindrance = NO_PROFILER
        elif _is_running() or _is_warming_up():
            self.hindrance = OTHER_PROFILER
        if self.hindrance:
            return False
        profiling = torch_profiler.profile(
            use_kineto=True,
            use_device=self._device,
            record_shapes=True,
            profile_memory=True,
        )
        self.recorder.loading.pauses()
        with withheld():
            block = torch.UntypedStorage(1)  # type: ignore[no-untyped-call]
            profiling.__enter__()  # type: ignore[no-untyped-call]
            # The allocator complains of the first block that it has not seen made, not of the
            # thousand that follow.
            del block
        self._profile = profiling
        self._stack.enter_context(_giving_way(self.give_way))
        _ACTIVE.add(self)
        self.begins_at, self.began = time.time_ns(), time.perf_counter()
        return True

    def note(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """Note an operation, and mark it in the profile."""
        self.recorder.operation(func, args, kwargs, result)
        noted = self.recorder.latest
        if noted is None or self._profile is None:
            return
        self._marks += 1
        if self._is_in_the_way or self._marks > MOST_OPERATIONS:
            self.give_up(OTHER_PROFILER if self._is_in_the_way else TOO_LONG)
            return
        number = self._numbers.get(id(noted))
        if number is None:
            number = self._numbers[id(noted)] = len(self._noted)
            self._noted.append(noted)
        with self._range(f"{MARK}{number}"):
            pass

    def end(self) -> bool:
        """Stop, and keep what was seen; false if it had been stopped before."""
        if self._profile is None:
            return False
        self.seconds = time.perf_counter() - self.began
        self._results = self._stop()
        return True

    def give_up(self, hindrance: str = "") -> None:
        """Stop, and keep nothing."""
        if self._profile is not None:
            self.hindrance = hindrance
            self._stop()

    def give_way(self) -> None:
        """Stop for a profiler of the program.

        Only the profiled thread can stop its profiler: any other one waits until it does, at its
        next operation.  Raises ``RuntimeError`` if that does not come, as two profilers at a time
        end the process."""
        if threading.get_ident() == self._thread:
            self.give_up(OTHER_PROFILER)
            return
        self._is_in_the_way = True
        if not self._has_stopped.wait(_PATIENCE):
            raise RuntimeError(BUSY)

    def before_fork(self) -> None:
        """The child has but the thread that forks: if that is profiled, it would go on there."""
        if threading.get_ident() == self._thread:
            self.give_up(FORKED)

    def _stop(self) -> Any:
        profiling, self._profile = self._profile, None
        _ACTIVE.discard(self)
        self._stack.close()
        with withheld():
            profiling.__exit__(None, None, None)
        self.recorder.loading.resumes()
        self._has_stopped.set()
        return profiling.kineto_results

    # What was seen, once it has ended

    def events(self) -> tuple[Event, ...]:
        """The events of the profiler."""
        return events_of(self._results)

    def kernels(self) -> tuple[Kernel, ...]:
        """What ran on devices."""
        return kernels_of(self._results) if self._device is not None else ()

    def operations(self) -> list[Operation]:
        """The operations that the marks stand for, by their numbers."""
        return [self.recorder.operation_of(one) for one in self._noted]


def _is_running() -> bool:
    """Whether a profiler is active."""
    return bool(torch._C._autograd._profiler_enabled() or torch_profiler._is_profiler_enabled)


def _is_warming_up() -> bool:
    """Whether a profiler of the program is prepared and not yet started, as in the warm-up of a
    schedule: one more profiler then would end the process.  torch itself does not tell."""
    return any(
        issubclass(type(one), profile) and one.current_action is ProfilerAction.WARMUP
        for one in gc.get_objects()
    )


_ACTIVE: weakref.WeakSet[StepProfiler] = weakref.WeakSet()


def _before_fork() -> None:
    for one in list(_ACTIVE):
        one.before_fork()


os.register_at_fork(before=_before_fork)


@contextmanager
def _giving_way(give_up: Callable[[], None]) -> Iterator[None]:
    """Where the program starts a profiler of its own, ours ends before: there can be but one."""
    before = {name: getattr(torch_profiler, name) for name in _STARTERS}

    def way(start: Callable[..., Any]) -> Callable[..., Any]:
        def starting(*args: Any, **kwargs: Any) -> Any:
            give_up()
            return start(*args, **kwargs)

        return starting

    for name, start in before.items():
        setattr(torch_profiler, name, way(start))
    try:
        yield
    finally:
        for name, start in before.items():
            setattr(torch_profiler, name, start)
