"""What the Python calls of a trace are: the program's own functions, library code, modules."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

_FRAME = re.compile(r"^(?P<path>.*)\((?P<line>\d+)\): (?P<name>.+)$")
_BUILT_IN = re.compile(
    r"^<(?:built-in )?(?:method|function|method-wrapper|slot wrapper) '?(?P<name>\w+)'?"
)
_MODULE = "nn.Module: "
# The profiler leaves out the folders that Python looks for modules in.
_PASSED_OVER = re.compile(
    r"^(torch|memlint)/"
    r"|(^|/)(site|dist)-packages/(torch|memlint)/"
    r"|(^|/)lib(64)?/python3\.\d+/(?!(site|dist)-packages/)"
    r"|^<"
)
_STANDARD = sys.stdlib_module_names - {"test"}


class Called(Enum):
    """How an expression of the program called something."""

    NAMED = "by its name"
    ANYHOW = "by any name"
    OPERATOR = "as an operator"


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the program; ``line`` is its first one, or, of what ran already when the
    profiler was started, the line that it had reached."""

    path: str
    line: int
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """What was called: a function by its bare name, what has another one in the source without
    one, or, where Python shows no call (``a + b``), an operator of PyTorch by its name."""

    kind: Called
    name: str


@dataclass(frozen=True, slots=True)
class PythonEvent:
    """A Python call of a trace: ``function`` is set where it is one of the program's own."""

    call: Call
    function: Function | None


_ANYHOW = Call(Called.ANYHOW, "")
_HIDDEN = frozenset(
    {"wrapper", "wrapped", "inner", "decorate_context", "_fn", "__init__", "__call__", "__new__",
     "<lambda>"}
)  # fmt: skip
"""Functions that stand in the source by another name: what decorators put around others, and what
calling an object means."""


class PythonEvents:
    """The Python calls of a trace by their names; ``root`` is where the program lies."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, PythonEvent] = {}

    def get(self, name: str) -> PythonEvent:
        """What a name says."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._read(name)
        return known

    def _read(self, name: str) -> PythonEvent:
        if name.startswith(_MODULE):
            return PythonEvent(_ANYHOW, None)
        frame = _FRAME.match(name)
        if frame is not None:
            path, line, bare = frame["path"], int(frame["line"]), frame["name"]
            own = None if self._is_passed_over(path) else Function(path, line, bare)
            call = _ANYHOW if bare in _HIDDEN else Call(Called.NAMED, bare)
            return PythonEvent(call, own)
        built_in = _BUILT_IN.match(name)
        return PythonEvent(Call(Called.NAMED, built_in["name"] if built_in else name), None)

    def _is_passed_over(self, path: str) -> bool:
        """Whether a file is no place to show: what has called its functions is."""
        if _PASSED_OVER.search(path):
            return True
        first = path.replace("\\", "/").partition("/")[0].removesuffix(".py")
        return first in _STANDARD and not (self._root / path).exists()

    def innermost_own(self, stack: Iterable[str]) -> Function | None:
        """The program's function in a list of calls, innermost first."""
        found = (self.get(name.strip()).function for name in stack if name.strip())
        return next((one for one in found if one is not None), None)
