"""Threads, against the CPUs and the CPU time that there is for them."""

from __future__ import annotations

import math

from memlint.doctor.counting import counted
from memlint.doctor.facts.torch_build import TorchBuild
from memlint.doctor.lines import Line, attention, bad, good, unknown
from memlint.doctor.machine import Machine
from memlint.doctor.unknown import Unknown

_VARIABLE = "OMP_NUM_THREADS"


def threads(machine: Machine) -> Line:
    """The threads that an operation takes, against the CPUs that it may use.

    https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html: too
    many threads take turns at a CPU; and torchrun sets OMP_NUM_THREADS to 1 for each of
    several processes (https://docs.pytorch.org/docs/stable/elastic/run.html).
    """
    usable = machine.cpus.usable
    if isinstance(usable, Unknown):
        return unknown("threads", usable)
    torch = machine.torch
    if not isinstance(torch, Unknown) and torch.threads > usable:
        return bad(
            "threads",
            f"PyTorch takes {torch.threads} threads on {counted(usable, 'CPU')}: they take turns, "
            "and each operation waits for the last of them",
            f"export {_VARIABLE}={usable}",
        )
    value = machine.host.environment.get(_VARIABLE)
    if value is not None and (line := _of_variable(value, usable, torch)):
        return line
    if not isinstance(torch, Unknown):
        return good("threads", f"PyTorch takes {torch.threads} on {counted(usable, 'CPU')}")
    if value is not None:
        return good("threads", f"{_VARIABLE}={value} on {counted(usable, 'CPU')}")
    return good("threads", f"as many as CPUs ({usable}): {_VARIABLE} is not set")


def _of_variable(value: str, usable: int, torch: TorchBuild | Unknown) -> Line | None:
    """What is wrong with the number that is set."""
    asked = asked_threads(value)
    if asked is None:
        return attention(
            "threads",
            f"{_VARIABLE}={value} is not a number of threads: OpenMP ignores it",
            f"export {_VARIABLE}={usable}",
        )
    if asked > usable:
        taken = "" if isinstance(torch, Unknown) else f" (PyTorch takes {torch.threads})"
        return attention(
            "threads",
            f"{_VARIABLE}={asked} on {counted(usable, 'CPU')}: where a library heeds it, threads "
            f"take turns{taken}",
            f"export {_VARIABLE}={usable}",
        )
    if asked == 1 and usable > 1:
        return attention(
            "threads",
            f"{_VARIABLE}=1: operations on the CPU use one of {usable} CPUs (torchrun sets this "
            "by itself for several processes)",
            f"export {_VARIABLE}={usable}  # divided by the processes of this machine",
        )
    return None


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
