"""The traced block: what is entered, what is told, and what it leaves behind."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType

import torch

from memlint.tracer.apart import Apart
from memlint.tracer.callsite import CallSites
from memlint.tracer.groups import spare_the_default_group
from memlint.tracer.modes import Asking, Watching
from memlint.tracer.profiling import TOO_LONG, StepProfiler
from memlint.tracer.recorder import Recorder
from memlint.tracer.records import FORWARD, LOADING, OPTIMIZER

NO_STEP = "there was no further step"
NOT_ASKED = "it was not asked for"
_MOST_TRIES = 3


class Session:
    """One traced block of one thread.

    A step ends where :meth:`step` is called; in programs that never do, where an optimizer has
    stepped, or where the next batch is asked for if none has since the last one. What lies between
    two loops over loaders belongs to the step that follows. ``warmup`` steps pass before anything
    is noted, and nothing is noted after ``steps`` more. Where no step is noted so, the block was
    too short: what came before the end of its first step counts then.

    With ``profile_step`` one step runs under torch's profiler: the one after those that are noted
    or, where all are, the second of them, whose duration is not told then.
    """

    def __init__(
        self,
        *,
        steps: int | None = None,
        warmup: int = 1,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        profile_step: bool = False,
    ) -> None:
        libraries = [os.path.dirname(os.path.abspath(str(torch.__file__)))]
        sites = CallSites(libraries, include, exclude)
        self._sites = sites
        self.durations: list[float] = []
        self.steps = 0
        """How many steps were noted."""
        self.profiled: StepProfiler | None = None
        """The step that was profiled, if one was."""
        self.not_profiled = NO_STEP if profile_step else NOT_ASKED
        self._profiler: StepProfiler | None = None
        self._process = os.getpid()
        self._tries = _MOST_TRIES if profile_step else 0
        self._steps, self._warmup = steps, warmup
        self._main = Recorder(sites)
        self._early: Recorder | None = Recorder(sites) if warmup else None
        self._first_took = 0.0
        self._stack = ExitStack()
        self._watching = Watching(self)
        self._current: Recorder | None = None
        self._explicit = self._stepped = self._batch_seen = False
        # What was being handled when the last batch was asked for.
        self._handled: BaseException | None = None
        self._optimizing = 0
        self._passed = 0
        self._began = 0.0

    @property
    def recorder(self) -> Recorder:
        """What was noted."""
        if self._early is None or self._passed > self._warmup:
            return self._main
        return self._early

    @property
    def warmup(self) -> Recorder | None:
        """What was noted before the first step had ended; ``None`` without a warm-up."""
        return self._early

    def __enter__(self) -> Session:
        spare_the_default_group()
        self._choose()
        with ExitStack() as stack:
            for recorder in (self._main, self._early):
                if recorder is not None:
                    stack.callback(recorder.listen())
            stack.enter_context(Asking(self))
            stack.enter_context(Apart(self._watching))
            stack.enter_context(self._watching)
            self._stack = stack.pop_all()
        self._began = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._profiler is not None:
            self._profiler.give_up()
        self._stack.close()
        self._watching.note = None
        if not self._passed:
            # The whole block was one step.
            self._first_took = time.perf_counter() - self._began
        if not self.steps:
            self.steps = 1
            self.durations.append(self._first_took)

    def step(self) -> None:
        """A step ends here; from the first call on no other sign is heeded.

        Where another sign has ended the step already, the first call ends no further one."""
        told, self._explicit = self._explicit, True
        if told or not self._passed:
            self._end_step()

    def _end_step(self) -> None:
        now = time.perf_counter()
        profiled = self._end_profile()
        if self._current is not None:
            self._current.end_step()
        if not self._passed:
            self._first_took = now - self._began
        if self._is_noting():
            self.steps += 1
            if not profiled:
                self.durations.append(now - self._began)
        self._passed += 1
        self._choose()
        # Starting and stopping a profiler is no part of any step.
        self._began = time.perf_counter()

    def _is_noting(self) -> bool:
        noted = self._passed - self._warmup
        return noted >= 0 and (self._steps is None or noted < self._steps)

    def _choose(self) -> None:
        """Where what happens from now on is noted."""
        if self._is_noting():
            self._current = self._main
        else:
            self._current = None if self._passed else self._early
        if self._is_to_profile() and self._begin_profile():
            return
        self._watching.note = None if self._current is None else self._current.operation

    def _is_to_profile(self) -> bool:
        after = 1 if self._steps is None else self._steps
        if self._passed - self._warmup < after:
            return False
        return self._tries > 0 and os.getpid() == self._process

    def _begin_profile(self) -> bool:
        self._tries -= 1
        profiler = StepProfiler(self._current or Recorder(self._sites))
        if not profiler.begin():
            self.not_profiled = profiler.hindrance
            return False
        self._profiler, self._current = profiler, profiler.recorder
        self._watching.note = profiler.note
        return True

    def _end_profile(self) -> bool:
        """Whether a profile was being made of the step that ends."""
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return False
        if profiler.end():
            self.profiled, self._tries = profiler, 0
        else:
            self.not_profiled = profiler.hindrance
            if profiler.hindrance == TOO_LONG:
                self._tries = 0
        return True

    # What the modes tell

    def marker(self, name: str) -> None:
        """A range begins that torch itself marks."""
        kind, _, _ = name.partition("#")
        if kind == "Optimizer.step":
            self._stepped = True
            self._optimizing += 1
            self._enter(OPTIMIZER)
        elif kind == "enumerate(DataLoader)":
            if self._batch_seen and not self._stepped and not self._explicit:
                self._end_step()
            self._batch_seen, self._stepped = True, False
            self._handled = sys.exc_info()[1]
            self._enter(LOADING)
            if self._current is not None:
                self._current.loading.begins(self._current.seen)

    def marker_ends(self, name: str) -> None:
        """A range that torch itself marks has ended."""
        kind, _, _ = name.partition("#")
        if kind not in ("Optimizer.step", "enumerate(DataLoader)"):
            return
        if self._current is not None:
            self._current.loading.ends(self._current.seen)
        if kind == "enumerate(DataLoader)" and self._no_batch_came():
            # What follows the last batch of a loader is no step, but belongs to the next one.
            self._batch_seen = False
        if kind == "Optimizer.step":
            self._optimizing -= 1
        self._enter(OPTIMIZER if self._optimizing else FORWARD)
        # An optimizer may be built around another one.
        if kind == "Optimizer.step" and not self._optimizing and not self._explicit:
            self._end_step()

    def _no_batch_came(self) -> bool:
        """Whether the loader is being left with ``StopIteration``, another one than a program that
        begins anew may be handling."""
        error, before = sys.exc_info()[1], self._handled
        self._handled = None
        return isinstance(error, StopIteration) and error is not before

    def _enter(self, phase: str) -> None:
        if self._current is not None:
            self._current.phase = phase

    def asked(self, name: str, tensor: torch.Tensor, *, idle: bool) -> None:
        """A method of a tensor was called that may do nothing."""
        if self._current is not None:
            self._current.asked(name, tensor, idle=idle)
