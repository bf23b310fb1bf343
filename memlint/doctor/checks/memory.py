"""Memory of the machine: pressure, swap, overcommit."""

from __future__ import annotations

from memlint.doctor.lines import Line, attention, good, unknown
from memlint.doctor.machine import Machine
from memlint.doctor.sizes import size_text
from memlint.doctor.unknown import Unknown

_WORTH_SAYING = 1.0
"""Percent of the time: what is lost below that is not worth a change."""


def memory(machine: Machine) -> Line:
    """How much memory there is, and whether programs wait for it.

    https://docs.kernel.org/accounting/psi.html: in the time counted as ``full`` all programs
    that had work waited for memory, and CPU time was lost.
    """
    found = machine.memory
    if isinstance(found.total, Unknown):
        return unknown("memory", found.total)
    text = size_text(found.total)
    if not isinstance(found.available, Unknown):
        text += f", {size_text(found.available)} available"
    if not isinstance(found.waited, Unknown) and found.waited >= _WORTH_SAYING:
        return attention(
            "memory",
            f"{text}; in {found.waited:g} % of the last minute all programs waited for memory",
            "ps -eo pid,rss,comm --sort=-rss | head",
        )
    return good("memory", text)


def swap(machine: Machine) -> Line:
    """Swap, and what lies there.

    https://docs.kernel.org/filesystems/proc.html (meminfo): SwapFree is memory that was
    evicted from RAM and is on the disk.
    """
    total, free = machine.memory.swap_total, machine.memory.swap_free
    if isinstance(total, Unknown):
        return unknown("swap", total)
    if isinstance(free, Unknown):
        return unknown("swap", free)
    if total == 0:
        return good("swap", "none: what does not fit into memory is killed, not slowed down")
    used = max(0, total - free)
    if used == 0:
        return good("swap", f"{size_text(total)}, unused")
    text = f"{size_text(used)} of {size_text(total)} in use"
    waited = machine.memory.waited
    if not isinstance(waited, Unknown) and waited < _WORTH_SAYING:
        return good("swap", f"{text}, and nothing waits for memory")
    available = machine.memory.available
    fits = not isinstance(available, Unknown) and available > used
    return attention(
        "swap",
        f"{text}: what lies there is read back from the disk when it is touched",
        "sudo swapoff -a && sudo swapon -a" if fits else None,
    )


def overcommit(machine: Machine) -> Line:
    """Whether more memory is promised than there is.

    https://docs.kernel.org/mm/overcommit-accounting.html: in mode 2 allocations fail beyond
    CommitLimit, and a private writable mapping counts in full in each process that has it, so
    that workers forked from a large process may be refused.
    """
    found = machine.memory
    if isinstance(found.overcommit, Unknown):
        return unknown("overcommit", found.overcommit)
    if found.overcommit == 0:
        return good("overcommit", "heuristic: only wild allocations are refused")
    if found.overcommit == 1:
        return good("overcommit", "always: no allocation is refused, what is too much is killed")
    if found.overcommit != 2:
        return unknown("overcommit", Unknown(f"mode {found.overcommit} of vm.overcommit_memory"))
    limit, committed = found.commit_limit, found.committed
    shown = (
        ""
        if isinstance(limit, Unknown) or isinstance(committed, Unknown)
        else f" {size_text(limit)}, of which {size_text(committed)} are promised"
    )
    return attention(
        "overcommit",
        f"strict: allocations fail beyond the limit{shown}; each worker forked from a large "
        "process counts as large",
        "sudo sysctl vm.overcommit_memory=0",
    )
