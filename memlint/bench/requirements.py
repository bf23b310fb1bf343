"""What a bench may need, and how to tell whether it is there."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

_NODES = Path("/sys/devices/system/node")


def _package(module: str, install: str) -> Callable[[], str]:
    def missing() -> str:
        return "" if importlib.util.find_spec(module) else f"{module} is not installed: {install}"

    return missing


def _no_cuda() -> str:
    if why := _package("torch", "pip install torch")():
        return why
    import torch

    return "" if torch.cuda.is_available() else "torch sees no CUDA device"


def _no_bfloat16() -> str:
    if why := _package("torch", "pip install torch")():
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
    "numpy": _package("numpy", "pip install numpy"),
    "numba": _package("numba", "pip install numba"),
    "torch": _package("torch", "pip install torch"),
    "cuda": _no_cuda,
    "bfloat16": _no_bfloat16,
    "cpus": _one_cpu,
    "nodes": _one_node,
    "linux": _no_linux,
    "fork": _no_fork,
}
"""By name: says why it is missing, or nothing."""


def missing(needs: Iterable[str]) -> str:
    """The first reason why one of these cannot be had; empty: all are there."""
    return next((why for need in needs if (why := REQUIREMENTS[need]())), "")
