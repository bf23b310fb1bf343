"""NUMA nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memlint.doctor.cpu_list import parse_list
from memlint.doctor.facts.fields import fields_of, kilobytes
from memlint.doctor.host import Host
from memlint.doctor.unknown import Unknown

_NODES = "/sys/devices/system/node"
_NODE = re.compile(r"node([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Node:
    """A NUMA node: its CPUs (perhaps none), its memory in bytes (perhaps none)."""

    number: int
    cpus: frozenset[int] | Unknown
    memory: int | Unknown


def read_nodes(host: Host) -> tuple[Node, ...] | Unknown:
    """Read /sys/devices/system/node."""
    names = host.names(_NODES)
    if isinstance(names, Unknown):
        return names
    numbers = sorted(int(match[1]) for match in map(_NODE.fullmatch, names) if match)
    if not numbers:
        return Unknown(f"{_NODES}: no nodes", absent=True)
    return tuple(_node(host, number) for number in numbers)


def _node(host: Host, number: int) -> Node:
    folder = f"{_NODES}/node{number}"
    path = f"{folder}/cpulist"
    text = host.text(path)
    cpus = text if isinstance(text, Unknown) else parse_list(text, path)
    meminfo = f"{folder}/meminfo"
    memory = kilobytes(fields_of(host, meminfo), f"Node {number} MemTotal", meminfo)
    return Node(number, cpus, memory)
