"""Limits: of the control group, and of locked memory."""

from __future__ import annotations

import math

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


def cpu_limit(machine: Machine) -> Line:
    """The quota of CPU time of the control group, against the threads that run in it.

    https://docs.kernel.org/scheduler/sched-bwc.html: a group that has used its quota is
    stopped until the next period.  OpenMP counts the CPUs of the affinity, not the quota.
    """
    found = machine.cpu_quota
    if isinstance(found.cpus, Unknown):
        return unknown("CPU limit", found.cpus)
    if found.cpus is None:
        return good("CPU limit", "none")
    text = f"{found.cpus:g} CPUs for this control group" + _stopped(machine)
    threads = threads_of(machine)
    if isinstance(threads, Unknown) or threads <= math.ceil(found.cpus):
        return good("CPU limit", text)
    period = "" if isinstance(found.period, Unknown) else f" of {found.period * 1000:g} ms"
    return bad(
        "CPU limit",
        f"{text}, but {threads} threads: they use up the quota early, and all stop for the "
        f"rest of each period{period}",
        f"export OMP_NUM_THREADS={max(1, math.floor(found.cpus))}",
    )


def _stopped(machine: Machine) -> str:
    found = machine.cpu_quota
    if isinstance(found.periods, Unknown) or isinstance(found.stopped, Unknown):
        return ""
    if not found.stopped:
        return ""
    return f" (stopped in {found.stopped} of {found.periods} periods so far)"


def threads_of(machine: Machine) -> int | Unknown:
    """Threads that an operation takes: as PyTorch says, else as OpenMP counts."""
    if not isinstance(machine.torch, Unknown):
        return machine.torch.threads
    asked = asked_threads(machine.host.environment.get("OMP_NUM_THREADS", ""))
    return machine.cpus.usable if asked is None else asked


def asked_threads(value: str) -> int | None:
    """The first number of OMP_NUM_THREADS, a list; None where OpenMP ignores it."""
    first = value.split(",")[0].strip()
    if not (first.isascii() and first.isdigit()) or len(first) > 9 or int(first) == 0:
        return None
    return int(first)


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
