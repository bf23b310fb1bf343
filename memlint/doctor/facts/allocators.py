"""Allocators: what stands in for malloc, and what PyTorch's allocator of the GPU is told."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memlint.doctor.host import Host
from memlint.doctor.unknown import Unknown

_ALLOCATOR = re.compile(r"lib(jemalloc|tcmalloc|mimalloc)[\w.-]*\.so")
_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")


@dataclass(frozen=True, slots=True)
class Allocators:
    """``preloaded`` is named in LD_PRELOAD, ``loaded`` is mapped into this process.

    ``settings`` are the variables that speak to PyTorch's allocator, in the order in which
    it reads them.
    """

    preloaded: str | None
    loaded: tuple[str, ...] | Unknown
    settings: tuple[tuple[str, str], ...]


def read_allocators(host: Host) -> Allocators:
    """Read LD_PRELOAD, /proc/self/maps and the variables of PyTorch."""
    preload = _ALLOCATOR.search(host.environment.get("LD_PRELOAD", ""))
    maps = host.text("/proc/self/maps")
    loaded: tuple[str, ...] | Unknown
    if isinstance(maps, Unknown):
        loaded = maps
    else:
        loaded = tuple(sorted({match[1] for match in _ALLOCATOR.finditer(maps)}))
    given = ((name, host.environment[name]) for name in _VARIABLES if name in host.environment)
    return Allocators(preload[1] if preload else None, loaded, tuple(given))
