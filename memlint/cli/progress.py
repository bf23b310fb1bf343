"""A progress bar on standard error, for runs that take a while."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_DELAY = 1.0


class ProgressBar:
    """Shows nothing for the first second, and nothing at all where nobody would see it."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted and sys.stderr.isatty()
        self._start = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __call__(self, done: int, total: int) -> None:
        """Take note that ``done`` of ``total`` files are through."""
        if not self._wanted or time.monotonic() - self._start < _DELAY:
            return
        if self._bar is None:
            self._bar = self._open()
            self._task = self._bar.add_task("Checking", total=total)
        assert self._task is not None
        self._bar.update(self._task, completed=done, total=total)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _open(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        bar.start()
        return bar


class Steps:
    """Names the step that a run is at, where somebody is at the terminal to see it.

    Nothing moves meanwhile: it would take time from what is measured."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._shown = 0

    def __enter__(self) -> Steps:
        return self

    def __call__(self, name: str, done: int, total: int) -> None:
        """Step ``name`` begins, ``done`` of ``total`` are through."""
        if sys.stderr.isatty():
            self._show(f"{self._verb} {name} ({done + 1}/{total})")

    def _show(self, text: str) -> None:
        sys.stderr.write(f"\r{text:<{self._shown}}")
        sys.stderr.flush()
        self._shown = len(text)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._shown:
            self._show("")
            sys.stderr.write("\r")
