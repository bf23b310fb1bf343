"""Memory: how much there is, swap, overcommit, and how long programs waited for it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memlint.doctor.facts.fields import fields_of, kilobytes
from memlint.doctor.facts.installed import memory_by_psutil
from memlint.doctor.host import Host, whole_number
from memlint.doctor.unknown import NOT_HERE, Unknown

_MEMINFO = "/proc/meminfo"
_PRESSURE = "/proc/pressure/memory"
_FULL = re.compile(r"^full .*\bavg60=([0-9]{1,3}\.[0-9]{2})\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Memory:
    """Sizes in bytes; ``waited`` is the share of the last minute, in percent.

    ``waited`` counts the time in which all programs that had work waited for memory.
    """

    total: int | Unknown
    available: int | Unknown
    swap_total: int | Unknown
    swap_free: int | Unknown
    commit_limit: int | Unknown
    committed: int | Unknown
    overcommit: int | Unknown
    zone_reclaim: int | Unknown
    waited: float | Unknown


def read_memory(host: Host) -> Memory:
    """Read /proc/meminfo, /proc/sys/vm and /proc/pressure/memory."""
    if not host.is_linux:
        return _elsewhere(host)
    fields = fields_of(host, _MEMINFO)
    return Memory(
        total=kilobytes(fields, "MemTotal", _MEMINFO),
        available=kilobytes(fields, "MemAvailable", _MEMINFO),
        swap_total=kilobytes(fields, "SwapTotal", _MEMINFO),
        swap_free=kilobytes(fields, "SwapFree", _MEMINFO),
        commit_limit=kilobytes(fields, "CommitLimit", _MEMINFO),
        committed=kilobytes(fields, "Committed_AS", _MEMINFO),
        overcommit=host.number("/proc/sys/vm/overcommit_memory"),
        zone_reclaim=host.number("/proc/sys/vm/zone_reclaim_mode"),
        waited=_waited(host),
    )


def _elsewhere(host: Host) -> Memory:
    now = memory_by_psutil(host)
    if not isinstance(now, Unknown):
        sizes = (now.total, now.available, now.swap_total, now.swap_free)
        return Memory(*sizes, *[NOT_HERE] * 5)
    total: int | Unknown = now
    if host.platform == "darwin":
        text = host.sysctl("hw.memsize")
        total = text if isinstance(text, Unknown) else whole_number(text, "sysctl hw.memsize")
    return Memory(total, now, now, now, *[NOT_HERE] * 5)


def _waited(host: Host) -> float | Unknown:
    text = host.text(_PRESSURE)
    if isinstance(text, Unknown):
        return text
    match = _FULL.search(text)
    return float(match[1]) if match else Unknown(f"{_PRESSURE}: no share of the last minute")
