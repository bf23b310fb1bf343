"""CPUs, their caches, and the size of a page."""

from __future__ import annotations

from memlint.doctor.counting import counted
from memlint.doctor.facts.caches import Cache
from memlint.doctor.lines import Line, attention, good, unknown
from memlint.doctor.machine import Machine
from memlint.doctor.sizes import size_text
from memlint.doctor.unknown import Unknown

_USUAL_LINE = 64


def cpus(machine: Machine) -> Line:
    """The CPUs that this process may use.

    ``os.cpu_count`` counts those of the system, ``os.sched_getaffinity`` these:
    https://docs.python.org/3/library/os.html#os.cpu_count.
    """
    found = machine.cpus
    if isinstance(found.usable, Unknown):
        return unknown("CPUs", found.usable)
    model = "" if isinstance(found.model, Unknown) else f"{found.model}: "
    if isinstance(found.online, Unknown) or len(found.online) == found.usable:
        cores = "" if isinstance(found.cores, Unknown) else f" on {counted(found.cores, 'core')}"
        return good("CPUs", f"{model}{counted(found.usable, 'CPU')}{cores}")
    return good(
        "CPUs",
        f"{model}this process may use {found.usable} of {len(found.online)} CPUs; "
        "os.cpu_count() counts all of them",
    )


def caches(machine: Machine) -> Line:
    """Sizes of the caches, and of a cache line.

    Threads that write to the same line wait for each other, whatever its size:
    https://docs.kernel.org/kernel-hacking/false-sharing.html.
    """
    found = machine.caches
    if isinstance(found, Unknown):
        return unknown("caches", found)
    shown = ", ".join(_cache_text(cache) for cache in found)
    lines = sorted({cache.line for cache in found})
    text = f"{shown}; lines of {' or '.join(map(str, lines))} bytes"
    if lines[-1] > _USUAL_LINE:
        return attention(
            "caches",
            f"{text}: data that threads write to must lie {lines[-1]} bytes apart, not 64",
        )
    return good("caches", text)


def _cache_text(cache: Cache) -> str:
    several = f"{cache.count} x " if cache.count > 1 else ""
    return f"L{cache.level}{'d' if cache.level == 1 else ''} {several}{size_text(cache.size)}"


def page_size(machine: Machine) -> Line:
    """The size of a page, which the first touch of memory and each TLB entry cover."""
    return good("page size", size_text(machine.host.page_size))
