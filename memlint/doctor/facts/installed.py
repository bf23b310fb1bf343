"""Facts that other libraries tell where /proc and /sys do not; all of them are optional."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.doctor.host import Host
from memlint.doctor.unknown import Unknown


@dataclass(frozen=True, slots=True)
class MemoryNow:
    """Memory and swap, in bytes."""

    total: int
    available: int
    swap_total: int
    swap_free: int


def memory_by_psutil(host: Host) -> MemoryNow | Unknown:
    """Ask psutil."""
    psutil = host.library("psutil")
    if isinstance(psutil, Unknown):
        return psutil
    try:
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
        return MemoryNow(memory.total, memory.available, swap.total, swap.free)
    except (OSError, RuntimeError) as error:
        return Unknown(f"psutil: {error}")


def cpu_by_cpuinfo(host: Host) -> str | Unknown:
    """The name of the CPU, asked of py-cpuinfo; this may take a second."""
    cpuinfo = host.library("cpuinfo")
    if isinstance(cpuinfo, Unknown):
        return cpuinfo
    try:
        name = cpuinfo.get_cpu_info().get("brand_raw")
    except Exception as error:  # it reads the output of many tools, each of which may fail
        return Unknown(f"py-cpuinfo: {error}")
    return name if isinstance(name, str) else Unknown("py-cpuinfo: no name", absent=True)


def gpus_by_nvml(host: Host) -> tuple[str, ...] | Unknown:
    """The names of NVIDIA's GPUs, asked of their driver through nvidia-ml-py."""
    nvml = host.library("pynvml")
    if isinstance(nvml, Unknown):
        return nvml
    try:
        nvml.nvmlInit()
        try:
            handles = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
            return tuple(str(nvml.nvmlDeviceGetName(handle)) for handle in handles)
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        return Unknown(f"nvidia-ml-py: {error}")
