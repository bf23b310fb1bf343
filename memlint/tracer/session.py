"""The traced block: what is entered, what is told, and what it leaves behind."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import torch

from memlint.tracer.callsite import CallSites
from memlint.tracer.modes import Asking, Watching
from memlint.tracer.recorder import Recorder
from memlint.tracer.records import FORWARD, LOADING, OPTIMIZER


class Session:
    """One traced block of one thread.

    A step ends where :meth:`step` is called; in programs that never do, where an optimizer has
    stepped, or where the next batch is asked for if there is no optimizer.  ``warmup`` steps
    pass before anything is noted, and nothing is noted after ``steps`` more.
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
        self.recorder = Recorder(CallSites(libraries, include, exclude))
        self.durations: list[float] = []
        self._steps, self._warmup = steps, warmup
        self._stack = ExitStack()
        self._explicit = self._by_optimizer = self._batch_seen = False
        self._passed = 0
        self._began = 0.0
        # Kept until the first step ends: with no step at all, nothing was warming up.
        self._early: Recorder | None = None

    @property
    def steps(self) -> int:
        """The number of steps that were noted; 0 where no step ended."""
        return len(self.durations)

    def __enter__(self) -> Session:
        if self._warmup:
            self._early, self.recorder = self.recorder, Recorder(self.recorder.sites)
        self._stack.enter_context(Asking(self))
        self._stack.enter_context(Watching(self))
        self._began = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()
        if self._early is not None and not self._passed:
            # The whole block was one step.
            self.recorder = self._early
            self.durations.append(time.perf_counter() - self._began)

    def step(self) -> None:
        """A step ends here; from the first call on no other sign is heeded."""
        self._explicit = True
        self._end_step()

    def _end_step(self) -> None:
        now = time.perf_counter()
        if self._is_noting():
            self.durations.append(now - self._began)
        self._began = now
        self._passed += 1
        self.recorder.step += 1
        self.recorder.phase = FORWARD

    def _is_noting(self) -> bool:
        noted = self._passed - self._warmup
        return noted >= 0 and (self._steps is None or noted < self._steps)

    def _target(self) -> Recorder | None:
        """Where what happens now is noted."""
        if self._is_noting():
            return self.recorder
        return self._early if not self._passed else None

    # What the modes tell

    def operation(
        self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """An operation has run."""
        target = self._target()
        if target is not None:
            target.operation(func, args, kwargs, result)

    def marker(self, name: str) -> None:
        """A range begins that torch itself marks."""
        kind, _, _ = name.partition("#")
        if kind == "Optimizer.step":
            self._by_optimizer = True
            self.recorder.phase = OPTIMIZER
        elif kind == "enumerate(DataLoader)":
            self.recorder.phase = LOADING
            if self._batch_seen and not self._by_optimizer and not self._explicit:
                self._end_step()
            self._batch_seen = True

    def marker_ends(self, name: str) -> None:
        """A range that torch itself marks has ended."""
        kind, _, _ = name.partition("#")
        self.recorder.phase = FORWARD
        if kind == "Optimizer.step" and not self._explicit:
            self._end_step()

    def asked(self, name: str, tensor: torch.Tensor, *, idle: bool) -> None:
        """A method of a tensor was called that may do nothing."""
        target = self._target()
        if target is not None:
            target.asked(name, tensor, idle=idle)
