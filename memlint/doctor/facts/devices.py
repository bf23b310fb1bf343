"""GPUs and network cards on the PCI bus, and the NUMA nodes they sit at."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.doctor.facts.fields import fields_of
from memlint.doctor.facts.installed import gpus_by_nvml
from memlint.doctor.host import Host
from memlint.doctor.unknown import NOT_HERE, Unknown

_PCI = "/sys/bus/pci/devices"
_DISPLAY, _ACCELERATOR, _NETWORK = "03", "12", "02"
_WIRELESS = "0280"
_GPU_VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}
"""Others that draw pictures, as the management controllers of servers, compute nothing."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU; ``node`` is None where the firmware does not tell it."""

    address: str
    vendor: str
    name: str | Unknown
    node: int | Unknown | None


@dataclass(frozen=True, slots=True)
class NetworkCard:
    """A network card; ``rdma`` says whether the kernel offers it for direct memory access."""

    address: str
    names: tuple[str, ...]
    rdma: bool
    node: int | Unknown | None


@dataclass(frozen=True, slots=True)
class Devices:
    """What sits on the PCI bus; ``driver`` is the version line of NVIDIA's kernel module."""

    gpus: tuple[Gpu, ...] | Unknown
    cards: tuple[NetworkCard, ...] | Unknown
    driver: str | Unknown
    paravirtual: bool
    """Whether a GPU of the Windows host can be reached through /dev/dxg."""
    by_driver: tuple[str, ...] | Unknown = NOT_HERE
    """Names of NVIDIA's GPUs as its driver tells them, asked where the PCI bus shows none."""


def read_devices(host: Host) -> Devices:
    """Read /sys/bus/pci/devices, sorted by address."""
    addresses = host.names(_PCI)
    driver = host.text("/proc/driver/nvidia/version")
    dxg = host.exists("/dev/dxg")
    if isinstance(addresses, Unknown):
        by_driver = gpus_by_nvml(host) if host.platform == "win32" else addresses
        return Devices(addresses, addresses, driver, dxg, by_driver)
    gpus: list[Gpu] = []
    cards: list[NetworkCard] = []
    for address in addresses:
        kind = host.text(f"{_PCI}/{address}/class")
        if isinstance(kind, Unknown):
            continue
        kind = kind.removeprefix("0x")
        if kind[:2] in (_DISPLAY, _ACCELERATOR):
            gpus += _gpu(host, address)
        elif kind[:2] == _NETWORK and kind[:4] != _WIRELESS:
            cards += _card(host, address)
    by_driver = gpus_by_nvml(host) if dxg else NOT_HERE
    return Devices(tuple(gpus), tuple(cards), driver, dxg, by_driver)


def _gpu(host: Host, address: str) -> list[Gpu]:
    vendor = host.text(f"{_PCI}/{address}/vendor")
    if isinstance(vendor, Unknown) or vendor not in _GPU_VENDORS:
        return []
    return [Gpu(address, _GPU_VENDORS[vendor], _name(host, address), _node(host, address))]


def _card(host: Host, address: str) -> list[NetworkCard]:
    folder = f"{_PCI}/{address}"
    if host.exists(f"{folder}/physfn"):  # a virtual function: its card is listed itself
        return []
    names = host.names(f"{folder}/net")
    shown = () if isinstance(names, Unknown) else names
    rdma = host.exists(f"{folder}/infiniband")
    return [NetworkCard(address, shown, rdma, _node(host, address))]


def _name(host: Host, address: str) -> str | Unknown:
    path = f"/proc/driver/nvidia/gpus/{address}/information"
    fields = fields_of(host, path)
    if isinstance(fields, Unknown):
        return fields
    return fields.get("Model") or Unknown(f"{path}: no model", absent=True)


def _node(host: Host, address: str) -> int | Unknown | None:
    number = host.number(f"{_PCI}/{address}/numa_node")
    if isinstance(number, Unknown):
        return number
    return number if number >= 0 else None
