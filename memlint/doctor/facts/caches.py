"""Caches of the CPUs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memlint.doctor.facts.cpus import Cpus
from memlint.doctor.host import Host, whole_number
from memlint.doctor.sizes import parse_size
from memlint.doctor.unknown import NOT_HERE, Unknown

_INDEX = re.compile(r"index[0-9]+")
_DARWIN = ((1, "hw.l1dcachesize"), (2, "hw.l2cachesize"), (3, "hw.l3cachesize"))


@dataclass(frozen=True, slots=True, order=True)
class Cache:
    """Caches of one level and size, in bytes; ``line`` is the size of a cache line.

    ``count`` says how many of them the CPUs that are online share among them.
    """

    level: int
    size: int
    line: int
    count: int


def read_caches(host: Host, cpus: Cpus) -> tuple[Cache, ...] | Unknown:
    """Data and unified caches, by level and size; the first reason why there are none."""
    if host.platform == "darwin":
        return _of_darwin(host)
    if not host.is_linux:
        return NOT_HERE
    if isinstance(cpus.online, Unknown):
        return cpus.online
    sharing: dict[tuple[int, int, int], set[str]] = {}
    why: Unknown | None = None
    for cpu in sorted(cpus.online):
        folder = f"/sys/devices/system/cpu/cpu{cpu}/cache"
        names = host.names(folder)
        if isinstance(names, Unknown):
            why = why or names
            continue
        for name in filter(_INDEX.fullmatch, names):
            found = _cache(host, f"{folder}/{name}")
            if isinstance(found, Unknown):
                why = why or found
            elif found is not None:
                key, shared = found
                sharing.setdefault(key, set()).add(shared)
    if not sharing:
        return why or Unknown("/sys/devices/system/cpu: no caches", absent=True)
    return tuple(sorted(Cache(*key, len(shared)) for key, shared in sharing.items()))


def _cache(host: Host, folder: str) -> tuple[tuple[int, int, int], str] | Unknown | None:
    """Level, size and line of one cache, and the CPUs that share it; None: it holds no data."""
    kind = host.text(f"{folder}/type")
    level = host.number(f"{folder}/level")
    text = host.text(f"{folder}/size")
    size = text if isinstance(text, Unknown) else parse_size(text, f"{folder}/size")
    line = host.number(f"{folder}/coherency_line_size")
    shared = host.text(f"{folder}/shared_cpu_list")
    if kind == "Instruction":
        return None
    for value in (kind, level, size, line, shared):
        if isinstance(value, Unknown):
            return value
    assert isinstance(level, int)
    assert isinstance(size, int)
    assert isinstance(line, int)
    return (level, size, line), str(shared)


def _of_darwin(host: Host) -> tuple[Cache, ...] | Unknown:
    line = _darwin_number(host, "hw.cachelinesize")
    if isinstance(line, Unknown):
        return line
    sizes = ((level, _darwin_number(host, name)) for level, name in _DARWIN)
    found = tuple(
        Cache(level, size, line, 1) for level, size in sizes if isinstance(size, int) and size
    )
    return found or Unknown("sysctl hw: no caches", absent=True)


def _darwin_number(host: Host, name: str) -> int | Unknown:
    text = host.sysctl(name)
    return text if isinstance(text, Unknown) else whole_number(text, f"sysctl {name}")
