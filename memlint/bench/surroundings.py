"""What the libraries of benches find around them: threads, devices."""

from __future__ import annotations

import os

from memlint.bench.requirements import missing

_LIBRARIES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip
_NUMBA, _LAYER = "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER"


def set_threads(libraries: int, parallel: int) -> None:
    """Tell the libraries, which read this when they are imported, how many threads to use; and
    Numba, how many for loops that are parallel by themselves.

    Numba is to have threads of its own: those of OpenMP it would share with torch, and with them
    their number."""
    os.environ.update(dict.fromkeys(_LIBRARIES, str(libraries)))
    os.environ[_NUMBA] = str(parallel)
    os.environ.setdefault(_LAYER, "workqueue")


def usable_cpus() -> int:
    """The CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def unusable(device: str) -> str:
    """Why a device of torch cannot be used; empty: it can be."""
    if device == "cpu":
        return ""
    if why := missing(("torch",)):
        return f"--device {device}: {why}"
    import torch

    try:
        holds = not torch.empty(1, device=device).is_meta
    except (RuntimeError, AssertionError) as error:
        return f"--device {device}: {str(error).splitlines()[0]}"
    return "" if holds else f"--device {device}: it computes nothing that could be measured"
