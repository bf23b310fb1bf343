"""The traced block: what is entered, what is told, and what it leaves behind."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType

import torch

from memlint.tracer.callsite import CallSites
from memlint.tracer.modes import Asking, Watching
from memlint.tracer.recorder import Recorder
from memlint.tracer.records import FORWARD, LOADING, OPTIMIZER


class Session:
    """One traced block of one thread.

    A step ends where :meth:`step` is called; in programs that never do, where an optimizer has
    stepped, or where the next batch is asked for if none has since the last one.  ``warmup`` steps
    pass before anything is noted, and nothing is noted after ``steps`` more.  Where no step is
    noted so, the block was too short: what came before the end of its first step counts then.
    """

    def __init__(
        self,
        *,
        steps: int | None = None,
        warmup: int = 1,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
    ) -> None:
        libraries = [os.path.dirname(os.path.abspath(str(torch.__file__)))]
        sites = CallSites(libraries, include, exclude)
        self.durations: list[float] = []
        self._steps, self._warmup = steps, warmup
        self._main = Recorder(sites)
        self._early: Recorder | None = Recorder(sites) if warmup else None
        self._first_took = 0.0
        self._stack = ExitStack()
        self._watching = Watching(self)
        self._current: Recorder | None = None
        self._explicit = self._stepped = self._batch_seen = False
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

    @property
    def steps(self) -> int:
        """The number of steps that were noted."""
        return len(self.durations)

    def __enter__(self) -> Session:
        self._choose()
        for recorder in (self._main, self._early):
            if recorder is not None:
                self._stack.callback(recorder.listen())
        self._stack.enter_context(Asking(self))
        self._stack.enter_context(self._watching)
        self._began = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()
        self._watching.note = None
        if not self._passed:
            # The whole block was one step.
            self._first_took = time.perf_counter() - self._began
        if not self.durations:
            self.durations.append(self._first_took)

    def step(self) -> None:
        """A step ends here; from the first call on no other sign is heeded."""
        self._explicit = True
        self._end_step()

    def _end_step(self) -> None:
        now = time.perf_counter()
        if self._current is not None:
            self._current.end_step()
        if not self._passed:
            self._first_took = now - self._began
        if self._is_noting():
            self.durations.append(now - self._began)
        self._began = now
        self._passed += 1
        self._choose()

    def _is_noting(self) -> bool:
        noted = self._passed - self._warmup
        return noted >= 0 and (self._steps is None or noted < self._steps)

    def _choose(self) -> None:
        """Where what happens from now on is noted."""
        if self._is_noting():
            self._current = self._main
        else:
            self._current = None if self._passed else self._early
        self._watching.note = None if self._current is None else self._current.operation

    # What the modes tell

    def marker(self, name: str) -> None:
        """A range begins that torch itself marks."""
        kind, _, _ = name.partition("#")
        if kind == "Optimizer.step":
            self._stepped = True
            self._enter(OPTIMIZER)
        elif kind == "enumerate(DataLoader)":
            if self._batch_seen and not self._stepped and not self._explicit:
                self._end_step()
            self._batch_seen, self._stepped = True, False
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
        self._enter(FORWARD)
        if kind == "Optimizer.step" and not self._explicit:
            self._end_step()

    def _enter(self, phase: str) -> None:
        if self._current is not None:
            self._current.phase = phase

    def asked(self, name: str, tensor: torch.Tensor, *, idle: bool) -> None:
        """A method of a tensor was called that may do nothing."""
        if self._current is not None:
            self._current.asked(name, tensor, idle=idle)
