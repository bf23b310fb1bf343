"""From facts to lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memlint.doctor.checks import (
    allocators,
    huge_pages,
    limits,
    memory,
    nodes,
    platforms,
    processor,
    threads,
    workers,
)
from memlint.doctor.lines import Line
from memlint.doctor.machine import Machine

Check = Callable[[Machine], Line | None]

CHECKS: tuple[Check, ...] = (
    processor.cpus,
    processor.caches,
    processor.page_size,
    huge_pages.huge_pages,
    huge_pages.numpy,
    huge_pages.torch,
    huge_pages.reserved,
    nodes.numa,
    nodes.zone_reclaim,
    nodes.gpus,
    nodes.network,
    memory.memory,
    memory.swap,
    memory.overcommit,
    limits.memory_limit,
    threads.cpu_limit,
    threads.threads,
    workers.start_method,
    workers.shared_memory,
    limits.locked_memory,
    allocators.malloc,
    allocators.cuda_allocator,
    allocators.switches,
    platforms.torch_build,
    platforms.wsl,
)
"""In the order in which they are shown; one that does not apply says nothing."""


def examine(machine: Machine) -> tuple[Line, ...]:
    """What there is to say about a machine, one line per topic."""
    lines = (line for check in CHECKS if (line := check(machine)) is not None)
    return tuple(_placed(line, machine) for line in lines)


def _placed(line: Line, machine: Machine) -> Line:
    """A container sees the settings of its host, and cannot change them."""
    if not machine.shared.container or line.command is None or "sudo " not in line.command:
        return line
    return replace(line, command=f"{line.command}  # on the host of this container")
