"""Where an operation was called from: the first frame that is neither torch's nor memlint's.

While the program runs, a call site is a code object and an instruction; frames are never
kept.  Paths, lines and columns are worked out afterwards.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatch
from types import CodeType, FrameType
from typing import NamedTuple

from memlint.tracer.records import Site

_HERE = os.path.dirname(os.path.abspath(__file__))


class Spot(NamedTuple):
    """An instruction of a code object."""

    code: CodeType
    instruction: int


SpotKey = tuple[int, int]
_Position = tuple[int | None, int | None, int | None, int | None]
NOWHERE: SpotKey = (0, -1)
# The function of torch that runs autograd's engine.
_ENGINE = "_engine_run_backward"


class CallSites:
    """Finds and remembers call sites.

    ``include`` and ``exclude`` are patterns of paths: frames of files that are excluded, or
    not included where anything is, are passed over as those of torch are.
    """

    def __init__(
        self, libraries: Sequence[str], include: Sequence[str] = (), exclude: Sequence[str] = ()
    ) -> None:
        self._roots = tuple(os.path.join(path, "") for path in (*libraries, _HERE))
        self._include, self._exclude = tuple(include), tuple(exclude)
        self._passed: dict[str, bool] = {}
        self._spots: dict[SpotKey, Spot] = {}
        self._sites: dict[SpotKey, Site] = {}
        # The code of autograd's engine, once it was seen, and the last pass with its call site.
        self._engine: CodeType | None = None
        self._task, self._pass = -1, NOWHERE

    def here(self, depth: int = 2) -> SpotKey:
        """The key of the call site, seen from ``depth`` frames above; ``NOWHERE`` if there is
        none, as on a thread of autograd's own."""
        frame: FrameType | None = sys._getframe(depth)
        passed = self._passed
        while frame is not None:
            code = frame.f_code
            try:
                skip = passed[code.co_filename]
            except KeyError:
                skip = self._judge(code.co_filename)
            if not skip:
                key = (id(code), frame.f_lasti)
                if key not in self._spots:
                    self._spots[key] = Spot(code, frame.f_lasti)
                return key
            frame = frame.f_back
        return NOWHERE

    def is_own(self, depth: int = 2) -> bool:
        """Whether the function ``depth`` frames above is the program's own."""
        name = sys._getframe(depth).f_code.co_filename
        passed = self._passed.get(name)
        return not (self._judge(name) if passed is None else passed)

    def within_backward(self, task: int, depth: int = 2) -> tuple[SpotKey, bool]:
        """As :meth:`here`, and whether that place lies within the backward pass: a hook, or what
        is computed once more, not the call that started the pass; ``task`` is its number."""
        frame = sys._getframe(depth)
        if frame.f_code is not self._engine:
            return self._searched(frame)
        # Nothing of the program runs above the engine: all of a pass is the call that started it.
        if task != self._task:
            self._task, (self._pass, _) = task, self._searched(frame)
        return self._pass, False

    def _searched(self, frame: FrameType | None) -> tuple[SpotKey, bool]:
        started = False
        while frame is not None:
            code = frame.f_code
            if code.co_name == _ENGINE:
                started = True
                self._engine = code
            skip = self._passed.get(code.co_filename)
            if skip is None:
                skip = self._judge(code.co_filename)
            if not skip:
                key = (id(code), frame.f_lasti)
                if key not in self._spots:
                    self._spots[key] = Spot(code, frame.f_lasti)
                return key, not started
            frame = frame.f_back
        return NOWHERE, False

    def _judge(self, filename: str) -> bool:
        """Whether frames of a file are passed over, worked out once."""
        passed = self._passed[filename] = self._is_passed(filename)
        return passed

    def _is_passed(self, filename: str) -> bool:
        if filename.startswith(("<frozen ", *self._roots)):
            return True
        if any(_matches(filename, pattern) for pattern in self._exclude):
            return True
        return bool(self._include) and not any(
            _matches(filename, pattern) for pattern in self._include
        )

    def site(self, key: SpotKey) -> Site:
        """The place in the program that a key stands for."""
        if key not in self._sites:
            spot = self._spots.get(key)
            self._sites[key] = _resolve(spot) if spot is not None else Site("<unknown>", "", 0)
        return self._sites[key]


def _matches(filename: str, pattern: str) -> bool:
    return pattern in filename or fnmatch(filename, pattern)


def _resolve(spot: Spot) -> Site:
    code = spot.code
    function = str(getattr(code, "co_qualname", code.co_name))
    positions: Callable[[], Iterable[_Position]] | None = getattr(code, "co_positions", None)
    if positions is not None:
        every = list(positions())
        line, end_line, column, end_column = every[spot.instruction // 2]
        if line is not None:
            return Site(
                code.co_filename,
                function,
                line,
                0 if column is None else column + 1,
                end_line or line,
                0 if end_column is None else end_column + 1,
            )
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= spot.instruction < end and number is not None:
            line = number
    return Site(code.co_filename, function, line)
