"""Memory of a chosen NUMA node, and threads on its CPUs; Linux only."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from memlint.bench.pages import huge_pages
from memlint.doctor.facts.nodes import Node, read_nodes
from memlint.doctor.host import Host
from memlint.doctor.unknown import Unknown

_BIND = 2
_DEFAULT = 0
_SET_MEMPOLICY: Mapping[str, int] = {"x86_64": 238, "aarch64": 237}
"""Numbers of the system call, which the C library has no function for."""


class CannotBind(Exception):  # noqa: N818 - the system may forbid it
    """Memory cannot be bound to a node."""


def usable_nodes(host: Host, cpus: frozenset[int]) -> list[Node]:
    """The nodes that have memory, those first that have any of some CPUs."""
    nodes = read_nodes(host)
    if isinstance(nodes, Unknown):
        return []
    found = [node for node in nodes if isinstance(node.memory, int) and node.memory]
    return sorted(found, key=lambda node: not _cpus(node) & cpus)


def _cpus(node: Node) -> frozenset[int]:
    return frozenset() if isinstance(node.cpus, Unknown) else node.cpus


@contextmanager
def on_cpus_of(node: Node) -> Iterator[None]:
    """Keep this thread on the CPUs of a node that it may use."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, _cpus(node) & before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def memory_of(node: int, nbytes: int) -> Any:
    """An array of uint64 zeros in the memory of a node.  Raises :class:`CannotBind`."""
    set_policy(_BIND, [node])
    try:
        # Its pages are filled in here, so they come while the policy holds.
        return huge_pages(nbytes)
    finally:
        set_policy(_DEFAULT, [])


def set_policy(mode: int, nodes: Sequence[int]) -> None:
    """Tell the system where pages that this thread asks for should come from: set_mempolicy(2).

    Raises :class:`CannotBind`."""
    call = _SET_MEMPOLICY.get(platform.machine())
    if call is None:
        raise CannotBind(f"the system call of {platform.machine()} is not known")
    library = ctypes.CDLL(None, use_errno=True)
    words = mask(nodes)
    array = (ctypes.c_ulong * len(words))(*words)
    bits = ctypes.c_ulong(len(words) * _BITS + 1 if nodes else 0)
    failed = library.syscall(
        ctypes.c_long(call), ctypes.c_long(mode), array if nodes else None, bits
    )
    if failed:
        raise CannotBind(os.strerror(ctypes.get_errno()))


_BITS = 8 * ctypes.sizeof(ctypes.c_ulong)


def mask(nodes: Sequence[int]) -> list[int]:
    """Numbers of nodes as the system takes them: a bit for each, in words.

    >>> mask([0, 3])
    [9]
    """
    words = [0] * (max(nodes, default=0) // _BITS + 1)
    for node in nodes:
        words[node // _BITS] |= 1 << node % _BITS
    return words
