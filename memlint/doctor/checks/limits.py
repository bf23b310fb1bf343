"""Limits of memory: of the control group, and of what may be locked."""

from __future__ import annotations

from memlint.doctor.lines import Line, attention, bad, good, unknown
from memlint.doctor.machine import Machine
from memlint.doctor.sizes import size_text
from memlint.doctor.unknown import Unknown

_NEARLY = 0.9


def memory_limit(machine: Machine) -> Line:
    """The limit of memory of the control group.

    https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files: beyond
    memory.max processes are killed, beyond memory.high they are slowed down.  What a program
    reads from /proc/meminfo (psutil, free) is the memory of the machine.
    """
    found = machine.memory_limit
    if isinstance(found.limit, Unknown):
        return unknown("memory limit", found.limit)
    total = machine.memory.total
    limit = found.limit
    if limit is not None and not isinstance(total, Unknown) and limit >= total:
        limit = None
    if limit is not None and (broken := _reached(machine, limit)):
        return bad(
            "memory limit", f"{size_text(limit)} for this control group{broken}", _raise(machine)
        )
    high = found.throttled_at
    if isinstance(high, int) and (limit is None or high < limit):
        return attention(
            "memory limit",
            f"memory.high is {size_text(high)}: beyond it processes are slowed down to give "
            "memory back",
        )
    if limit is None:
        return good("memory limit", "none below the memory of the machine")
    use = "" if isinstance(found.used, Unknown) else f", {size_text(found.used)} in use"
    shown = "" if isinstance(total, Unknown) else f"; psutil and free show {size_text(total)}"
    return attention(
        "memory limit",
        f"{size_text(limit)} for this control group{use}: beyond it processes are killed{shown}",
        _raise(machine),
    )


def _reached(machine: Machine, limit: int) -> str | None:
    """How the limit has been reached, or nearly has."""
    found = machine.memory_limit
    if not isinstance(found.kills, Unknown) and found.kills > 0:
        killed = "1 process was" if found.kills == 1 else f"{found.kills} processes were"
        return f", and {killed} killed there for want of memory"
    if not isinstance(found.used, Unknown) and found.used >= _NEARLY * limit:
        return f", {size_text(found.used)} in use: beyond it processes are killed"
    return None


def _raise(machine: Machine) -> str | None:
    return "docker run --memory=... ..." if machine.shared.container else None


def locked_memory(machine: Machine) -> Line:
    """How much memory may be locked.

    https://docs.kernel.org/infiniband/user_verbs.html#memory-pinning: memory that is
    registered for RDMA counts against RLIMIT_MEMLOCK.
    """
    found = machine.locked
    if isinstance(found.limit, Unknown):
        return unknown("locked memory", found.limit)
    if found.limit is None:
        return good("locked memory", "no limit")
    text = size_text(found.limit)
    if found.exempt:
        return good("locked memory", f"{text}, which this process may exceed (CAP_IPC_LOCK)")
    cards = machine.devices.cards
    rdma = 0 if isinstance(cards, Unknown) else sum(card.rdma for card in cards)
    if rdma:
        return bad(
            "locked memory",
            f"{text}: NCCL cannot register more than that with the {rdma} RDMA cards here",
            "docker run --ulimit memlock=-1 ..."
            if machine.shared.container
            else "ulimit -l unlimited",
        )
    return good("locked memory", f"{text}; it bounds RDMA, and there is no card for it here")
