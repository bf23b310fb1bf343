"""Limits of this process."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memlint.doctor.facts.fields import fields_of
from memlint.doctor.host import Host, whole_number
from memlint.doctor.unknown import Unknown

_LIMITS = "/proc/self/limits"
_LOCKED = re.compile(r"^Max locked memory\s+(\S+)", re.MULTILINE)
_CAN_LOCK = 14
"""The number of the capability CAP_IPC_LOCK, which frees a process of this limit."""


@dataclass(frozen=True, slots=True)
class LockedMemory:
    """Bytes that this process may lock in memory (``ulimit -l``); None: without limit.

    ``exempt`` says that the process may exceed it.
    """

    limit: int | Unknown | None
    exempt: bool


def read_locked(host: Host) -> LockedMemory:
    """Read /proc/self/limits, and the capabilities in /proc/self/status."""
    return LockedMemory(_limit(host), _exempt(host))


def _limit(host: Host) -> int | Unknown | None:
    text = host.text(_LIMITS)
    if isinstance(text, Unknown):
        return text
    match = _LOCKED.search(text)
    if match is None:
        return Unknown(f"{_LIMITS}: no limit of locked memory")
    return None if match[1] == "unlimited" else whole_number(match[1], _LIMITS)


def _exempt(host: Host) -> bool:
    fields = fields_of(host, "/proc/self/status")
    if isinstance(fields, Unknown):
        return False
    effective = fields.get("CapEff", "")
    if not re.fullmatch(r"[0-9a-f]{1,16}", effective):
        return False
    return bool(int(effective, 16) >> _CAN_LOCK & 1)
