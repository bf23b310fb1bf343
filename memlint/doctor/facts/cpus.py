"""CPUs: how many there are, and which of them this process may use."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.doctor.cpu_list import parse_list
from memlint.doctor.facts.fields import fields_of
from memlint.doctor.facts.installed import cpu_by_cpuinfo
from memlint.doctor.host import Host
from memlint.doctor.unknown import Unknown

_CPUS = "/sys/devices/system/cpu"
_STATUS = "/proc/self/status"


@dataclass(frozen=True, slots=True)
class Cpus:
    """Numbers of CPUs: online, and those of them that this process is allowed to run on.

    ``cores`` counts the online ones without their further hardware threads.
    """

    model: str | Unknown
    online: frozenset[int] | Unknown
    allowed: frozenset[int] | Unknown
    allowed_nodes: frozenset[int] | Unknown
    cores: int | Unknown
    usable: int | Unknown


def read_cpus(host: Host) -> Cpus:
    """Read /sys/devices/system/cpu and the affinity in /proc/self/status."""
    online = _list(host, f"{_CPUS}/online")
    allowed = _allowed(host, "Cpus_allowed_list")
    if not isinstance(allowed, Unknown) and not isinstance(online, Unknown):
        allowed &= online
    return Cpus(
        model=_model(host),
        online=online,
        allowed=allowed,
        allowed_nodes=_allowed(host, "Mems_allowed_list"),
        cores=_cores(host, online),
        usable=_usable(host, online, allowed),
    )


def _usable(
    host: Host, online: frozenset[int] | Unknown, allowed: frozenset[int] | Unknown
) -> int | Unknown:
    for known in (allowed, online):
        if not isinstance(known, Unknown) and known:
            return len(known)
    return host.cpu_count or Unknown("the number of CPUs cannot be read")


def _list(host: Host, path: str) -> frozenset[int] | Unknown:
    text = host.text(path)
    return text if isinstance(text, Unknown) else parse_list(text, path)


def _allowed(host: Host, name: str) -> frozenset[int] | Unknown:
    fields = fields_of(host, _STATUS)
    if isinstance(fields, Unknown):
        return fields
    if name not in fields:
        return Unknown(f"{_STATUS}: no {name}", absent=True)
    return parse_list(fields[name], _STATUS)


def _cores(host: Host, online: frozenset[int] | Unknown) -> int | Unknown:
    if isinstance(online, Unknown):
        return online
    siblings: set[str] = set()
    for cpu in online:
        text = host.text(f"{_CPUS}/cpu{cpu}/topology/thread_siblings_list")
        if isinstance(text, Unknown):
            return text
        siblings.add(text)
    return len(siblings)


def _model(host: Host) -> str | Unknown:
    if host.platform == "darwin":
        return host.sysctl("machdep.cpu.brand_string")
    if not host.is_linux:
        return cpu_by_cpuinfo(host)
    fields = fields_of(host, "/proc/cpuinfo")
    if isinstance(fields, Unknown):
        return fields
    return fields.get("model name") or Unknown("/proc/cpuinfo: no model name", absent=True)
