"""Runs a function in a Python process of its own: for what depends on what a process did before,
its peak of memory above all."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

SECONDS = 300.0
"""How long a child may take."""

_STATUS = Path("/proc/self/status")
_KIB = 1024
# Isolated, so that neither the current directory nor the environment adds modules of its own.
_START = (
    sys.executable, "-I", "-c",
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    "from memlint.bench.child import answer; answer(*sys.argv[2:])",
)  # fmt: skip


class ChildFailed(Exception):  # noqa: N818 - it tells of another process
    """A child ended without an answer."""


def in_child(
    function: Callable[..., float], *arguments: str | int | float, seconds: float = SECONDS
) -> float:
    """What a function returns in a new interpreter: a number of bytes, say.

    The function has to be one of a module, by its name; what it prints is lost.  Raises
    :class:`ChildFailed` with the last line that the child wrote to its standard error, or where
    it took longer than ``seconds``.
    """
    asked = (function.__module__, function.__qualname__, json.dumps(arguments))
    try:
        done = subprocess.run(
            (*_START, json.dumps(sys.path), *asked),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ChildFailed(f"no answer within {seconds:g} seconds") from error
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise ChildFailed(said[-1] if said else f"ended with status {done.returncode}")
    return float(done.stdout.splitlines()[-1])


def answer(module: str, name: str, arguments: str) -> None:
    """The child's side: print what the function returns, as the last line."""
    function = getattr(importlib.import_module(module), name)
    print("\n" + repr(float(function(*json.loads(arguments)))))


def resident_bytes() -> int:
    """The bytes of this process that are in memory now, up to some hundred KiB; on Linux."""
    return _of_status("VmRSS")


def peak_bytes() -> int:
    """The most that :func:`resident_bytes` ever was; on Linux.

    ``getrusage`` will not do: what it tells of a process begins with what its parent had."""
    return _of_status("VmHWM")


def _of_status(key: str) -> int:
    for line in _STATUS.read_text("ascii").splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0]) * _KIB
    raise OSError(f"{_STATUS} does not tell {key}")
