"""What the installed PyTorch says of itself, asked in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from memlint.doctor.unknown import Unknown

SECONDS = 30.0
"""Time that the import may take: a cold one from a network disk takes long."""

# The first entry of the path is the working directory, where a file torch.py may lie.
_QUESTIONS = """
import json, sys
del sys.path[0]
import torch
print(json.dumps({
    "version": torch.__version__,
    "cuda": torch.version.cuda,
    "hip": torch.version.hip,
    "threads": torch.get_num_threads(),
    "available": torch.cuda.is_available(),
    "devices": torch.cuda.device_count(),
    "mps": torch.backends.mps.is_available(),
}))
"""


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """``cuda`` and ``hip`` are the versions it is built for, None where it is for neither.

    ``threads`` is what an operation on the CPU takes; ``available`` whether a GPU can be used
    by CUDA or ROCm, ``mps`` whether that of a Mac can be.
    """

    version: str
    cuda: str | None
    hip: str | None
    threads: int
    available: bool
    devices: int
    mps: bool


NOT_INSTALLED = Unknown(
    "PyTorch is not installed beside memlint: ask with the Python that has it, "
    "`python -m memlint doctor`",
    absent=True,
)


def ask_torch(seconds: float = SECONDS) -> Callable[[], TorchBuild | Unknown]:
    """Start to ask; calling the result waits for the answer, at most so long."""
    try:
        if importlib.util.find_spec("torch") is None:
            return lambda: NOT_INSTALLED
        process = subprocess.Popen(
            [sys.executable, "-c", _QUESTIONS],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, ValueError) as error:  # ValueError: a module torch without a spec
        failed = Unknown(f"PyTorch cannot be asked: {error}")
        return lambda: failed
    return lambda: _answer(process, seconds)


def _answer(process: subprocess.Popen[bytes], seconds: float) -> TorchBuild | Unknown:
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Unknown(f"importing PyTorch took more than {seconds:g} seconds")
    if process.returncode:
        return Unknown(f"importing PyTorch failed with exit status {process.returncode}")
    return read_answer(output)


def read_answer(output: bytes) -> TorchBuild | Unknown:
    """The facts in what was printed; the last line counts, others may come from plugins."""
    try:
        return TorchBuild(**json.loads(output.splitlines()[-1]))
    except (IndexError, TypeError, ValueError):
        return Unknown("importing PyTorch printed something else than was asked for")
