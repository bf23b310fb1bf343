"""What a bench may need, and how to tell whether it is there."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

_NODES = Path("/sys/devices/system/node")


_INSTALL = "pip install 'memlint-ml[bench]'"


def _package(module: str) -> Callable[[], str]:
    def missing() -> str:
        return "" if importlib.util.find_spec(module) else f"{module} is not installed: {_INSTALL}"

    return missing


def _no_cuda() -> str:
    if why := _package("torch")():
        return why
    import torch

    return "" if torch.cuda.is_available() else "torch sees no CUDA device"


def _no_bfloat16() -> str:
    if why := _package("torch")():
        return why
    import torch

    if torch.cuda.is_available():
        return ""
    # Older versions of torch have no such function.
    known: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    has_it = any("bf16" in name and there for name, there in known.items())
    return "" if has_it else "this CPU has no instructions for bfloat16, as far as torch tells"


def _one_cpu() -> str:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return "" if (count or 1) > 1 else "this process has one CPU"


def _one_node() -> str:
    nodes = list(_NODES.glob("node[0-9]*"))
    return "" if len(nodes) > 1 else "this machine has one NUMA node, as far as the system tells"


def _no_linux() -> str:
    return "" if sys.platform == "linux" else "only Linux tells what this measures"


def _no_fork() -> str:
    there = "fork" in multiprocessing.get_all_start_methods()
    return "" if there else "this system cannot fork"


REQUIREMENTS: Mapping[str, Callable[[], str]] = {
    "numpy": _package("numpy"),
    "numba": _package("numba"),
    "torch": _package("torch"),
    "cuda": _no_cuda,
    "bfloat16": _no_bfloat16,
    "cpus": _one_cpu,
    "nodes": _one_node,
    "linux": _no_linux,
    "fork": _no_fork,
}
"""By name: says why it is missing, or nothing."""


def missing(needs: Iterable[str]) -> str:
    """The first reason why one of these cannot be had; empty: all are there.

    A name that is none of :data:`REQUIREMENTS` is that of a module at the top."""
    return next((why for need in needs if (why := _reason(need))), "")


def _reason(need: str) -> str:
    if (check := REQUIREMENTS.get(need)) is not None:
        return check()
    return "" if importlib.util.find_spec(need) else f"{need} is not installed"
