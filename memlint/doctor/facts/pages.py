"""Pages: their size, transparent huge pages, reserved huge pages."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memlint.doctor.facts.fields import fields_of
from memlint.doctor.host import Host
from memlint.doctor.unknown import Unknown

THP = "/sys/kernel/mm/transparent_hugepage"
POOLS = "/sys/kernel/mm/hugepages"
_CHOSEN = re.compile(r"\[(\S+)\]")
_POOL = re.compile(r"hugepages-([0-9]{1,12})kB")


@dataclass(frozen=True, slots=True)
class TransparentHugePages:
    """Settings of transparent huge pages; ``size`` is that of one, in bytes.

    ``mode`` is what holds for pages of that size; ``allowed`` is False where they are
    switched off for this process and its children.
    """

    mode: str | Unknown
    defrag: str | Unknown
    size: int | Unknown
    allowed: bool | Unknown


@dataclass(frozen=True, slots=True)
class Pool:
    """Huge pages of one size (in bytes) that are reserved."""

    size: int
    total: int
    free: int


def read_transparent(host: Host) -> TransparentHugePages:
    """Read /sys/kernel/mm/transparent_hugepage and THP_enabled of /proc/self/status."""
    size = host.number(f"{THP}/hpage_pmd_size")
    return TransparentHugePages(_mode(host, size), _chosen(host, "defrag"), size, _allowed(host))


def _mode(host: Host, size: int | Unknown) -> str | Unknown:
    """The setting of the size, which since Linux 6.8 may differ from the one above it."""
    if not isinstance(size, Unknown):
        own = _chosen(host, f"hugepages-{size // 1024}kB/enabled")
        if not isinstance(own, Unknown) and own != "inherit":
            return own
    return _chosen(host, "enabled")


def _chosen(host: Host, name: str) -> str | Unknown:
    text = host.text(f"{THP}/{name}")
    if isinstance(text, Unknown):
        return text
    match = _CHOSEN.search(text)
    return match[1] if match else Unknown(f"{THP}/{name}: nothing is chosen")


def _allowed(host: Host) -> bool | Unknown:
    fields = fields_of(host, "/proc/self/status")
    if isinstance(fields, Unknown):
        return fields
    if "THP_enabled" not in fields:
        return Unknown("/proc/self/status: no THP_enabled", absent=True)
    return fields["THP_enabled"] != "0"


def read_pools(host: Host) -> tuple[Pool, ...] | Unknown:
    """Read /sys/kernel/mm/hugepages: the sizes that the kernel knows, also empty pools."""
    names = host.names(POOLS)
    if isinstance(names, Unknown):
        return names
    found: list[Pool] = []
    for match in filter(None, map(_POOL.fullmatch, names)):
        total = host.number(f"{POOLS}/{match[0]}/nr_hugepages")
        free = host.number(f"{POOLS}/{match[0]}/free_hugepages")
        if isinstance(total, Unknown):
            return total
        if isinstance(free, Unknown):
            return free
        found.append(Pool(int(match[1]) * 1024, total, free))
    return tuple(sorted(found, key=lambda pool: pool.size))
