"""All facts about a machine and the process that looks at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memlint.doctor.facts.allocators import Allocators, read_allocators
from memlint.doctor.facts.caches import Cache, read_caches
from memlint.doctor.facts.cgroups import (
    CpuQuota,
    MemoryLimit,
    read_cpu_quota,
    read_memory_limit,
)
from memlint.doctor.facts.cpus import Cpus, read_cpus
from memlint.doctor.facts.devices import Devices, read_devices
from memlint.doctor.facts.limits import LockedMemory, read_locked
from memlint.doctor.facts.memory import Memory, read_memory
from memlint.doctor.facts.nodes import Node, read_nodes
from memlint.doctor.facts.pages import (
    Pool,
    TransparentHugePages,
    read_pools,
    read_transparent,
)
from memlint.doctor.facts.shared_memory import SharedMemory, read_shared_memory
from memlint.doctor.facts.torch_build import NOT_INSTALLED, TorchBuild
from memlint.doctor.host import Host
from memlint.doctor.unknown import Unknown


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts, each of them perhaps unknown; ``kernel`` is the release."""

    host: Host
    kernel: str | Unknown
    cpus: Cpus
    caches: tuple[Cache, ...] | Unknown
    transparent: TransparentHugePages
    pools: tuple[Pool, ...] | Unknown
    nodes: tuple[Node, ...] | Unknown
    devices: Devices
    memory: Memory
    memory_limit: MemoryLimit
    cpu_quota: CpuQuota
    locked: LockedMemory
    shared: SharedMemory
    allocators: Allocators
    torch: TorchBuild | Unknown

    @property
    def is_wsl(self) -> bool:
        """Whether this Linux runs inside Windows."""
        return not isinstance(self.kernel, Unknown) and "microsoft" in self.kernel.lower()


def _no_torch() -> TorchBuild | Unknown:
    return NOT_INSTALLED


def read_machine(host: Host, torch: Callable[[], TorchBuild | Unknown] = _no_torch) -> Machine:
    """Read everything; ``torch`` is asked last, since its answer may take seconds."""
    cpus = read_cpus(host)
    return Machine(
        host=host,
        kernel=host.text("/proc/sys/kernel/osrelease"),
        cpus=cpus,
        caches=read_caches(host, cpus),
        transparent=read_transparent(host),
        pools=read_pools(host),
        nodes=read_nodes(host),
        devices=read_devices(host),
        memory=read_memory(host),
        memory_limit=read_memory_limit(host),
        cpu_quota=read_cpu_quota(host),
        locked=read_locked(host),
        shared=read_shared_memory(host),
        allocators=read_allocators(host),
        torch=torch(),
    )
