"""Limits of the control group that this process runs in: containers, jobs, services."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from memlint.doctor.facts.fields import flat_keys
from memlint.doctor.host import Host, whole_number
from memlint.doctor.unknown import NOT_HERE, Unknown

_CGROUP = "/proc/self/cgroup"
_MOUNTS = "/proc/self/mountinfo"
_UNLIMITED = 1 << 62
"""Version 1 writes "no limit" as the largest multiple of a page: just below 2**63."""


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """The tightest limit among a group and those above it, in bytes; None: no limit.

    ``used`` is what that group holds without the file cache that it could drop at once;
    ``kills`` counts the processes that were killed there for want of memory.
    """

    limit: int | Unknown | None
    used: int | Unknown = NOT_HERE
    kills: int | Unknown = NOT_HERE
    throttled_at: int | Unknown | None = None


@dataclass(frozen=True, slots=True)
class CpuQuota:
    """The tightest quota, in CPUs; None: no quota.

    ``period`` is in seconds.  Of ``periods`` in which the group ran, it was stopped in
    ``stopped``.
    """

    cpus: float | Unknown | None
    period: float | Unknown = NOT_HERE
    periods: int | Unknown = NOT_HERE
    stopped: int | Unknown = NOT_HERE


class _Mount(NamedTuple):
    root: str
    point: str
    kind: str
    options: tuple[str, ...]


class _Place(NamedTuple):
    """Where a controller keeps its files for this process: the innermost folder first."""

    version: int
    folders: tuple[str, ...]


def read_memory_limit(host: Host) -> MemoryLimit:
    """Read memory.max (version 2) or memory.limit_in_bytes (version 1), all the way up."""
    place = _place(host, "memory")
    if isinstance(place, Unknown):
        return MemoryLimit(place)
    name = "memory.max" if place.version == 2 else "memory.limit_in_bytes"
    limits = [(_bytes(host, f"{folder}/{name}"), folder) for folder in place.folders]
    broken = [limit for limit, _ in limits if isinstance(limit, Unknown)]
    if broken:
        return MemoryLimit(broken[0])
    known = [(limit, folder) for limit, folder in limits if isinstance(limit, int)]
    throttled_at = _tightest(host, place) if place.version == 2 else None
    if not known:
        return MemoryLimit(None, throttled_at=throttled_at)
    limit, folder = min(known)
    used, kills = _use(host, folder, place.version)
    return MemoryLimit(limit, used, kills, throttled_at)


def _tightest(host: Host, place: _Place) -> int | Unknown | None:
    found = [_bytes(host, f"{folder}/memory.high") for folder in place.folders]
    for limit in found:
        if isinstance(limit, Unknown):
            return limit
    return min((limit for limit in found if isinstance(limit, int)), default=None)


def _bytes(host: Host, path: str) -> int | Unknown | None:
    text = host.text(path)
    if isinstance(text, Unknown):
        # The outermost group has no such file, nor has one without the controller.
        return None if text.absent else text
    if text == "max":
        return None
    number = whole_number(text, path)
    if isinstance(number, Unknown):
        return number
    return None if number >= _UNLIMITED or number < 0 else number


def _use(host: Host, folder: str, version: int) -> tuple[int | Unknown, int | Unknown]:
    if version == 2:
        current, cached, events = "memory.current", "inactive_file", "memory.events"
    else:
        current, cached, events = (
            "memory.usage_in_bytes",
            "total_inactive_file",
            "memory.oom_control",
        )
    used = host.number(f"{folder}/{current}")
    stat = flat_keys(host, f"{folder}/memory.stat")
    if not isinstance(used, Unknown) and not isinstance(stat, Unknown):
        used = max(0, used - stat.get(cached, 0))
    counted = flat_keys(host, f"{folder}/{events}")
    if isinstance(counted, Unknown):
        return used, counted
    absent = Unknown(f"{folder}/{events}: no oom_kill", absent=True)
    return used, counted.get("oom_kill", absent)


def read_cpu_quota(host: Host) -> CpuQuota:
    """Read cpu.max (version 2) or cpu.cfs_quota_us (version 1), all the way up."""
    place = _place(host, "cpu")
    if isinstance(place, Unknown):
        return CpuQuota(place)
    read = _quota_2 if place.version == 2 else _quota_1
    tightest: tuple[float, float, str] | None = None
    for folder in place.folders:
        quota = read(host, folder)
        if isinstance(quota, Unknown):
            return CpuQuota(quota)
        if quota is not None and (tightest is None or quota[0] < tightest[0]):
            tightest = (*quota, folder)
    if tightest is None:
        return CpuQuota(None)
    cpus, period, folder = tightest
    stat = flat_keys(host, f"{folder}/cpu.stat")
    if isinstance(stat, Unknown):
        return CpuQuota(cpus, period, stat, stat)
    absent = Unknown(f"{folder}/cpu.stat: not counted", absent=True)
    return CpuQuota(cpus, period, stat.get("nr_periods", absent), stat.get("nr_throttled", absent))


def _quota_2(host: Host, folder: str) -> tuple[float, float] | Unknown | None:
    path = f"{folder}/cpu.max"
    text = host.text(path)
    if isinstance(text, Unknown):
        return None if text.absent else text
    words = text.split()
    if words[:1] == ["max"]:
        return None
    if len(words) != 2:
        return Unknown(f"{path}: not a quota and a period")
    return _cpus(whole_number(words[0], path), whole_number(words[1], path), path)


def _quota_1(host: Host, folder: str) -> tuple[float, float] | Unknown | None:
    path = f"{folder}/cpu.cfs_quota_us"
    quota = host.number(path)
    if isinstance(quota, Unknown):
        return None if quota.absent else quota
    if quota < 0:
        return None
    return _cpus(quota, host.number(f"{folder}/cpu.cfs_period_us"), path)


def _cpus(quota: int | Unknown, period: int | Unknown, path: str) -> tuple[float, float] | Unknown:
    """CPUs and the period in seconds, of two numbers of microseconds."""
    if isinstance(quota, Unknown):
        return quota
    if isinstance(period, Unknown):
        return period
    if quota <= 0 or period <= 0:
        return Unknown(f"{path}: not a quota")
    return quota / period, period / 1e6


def _place(host: Host, controller: str) -> _Place | Unknown:
    text = host.text(_CGROUP)
    if isinstance(text, Unknown):
        return text
    mounts = host.text(_MOUNTS)
    if isinstance(mounts, Unknown):
        return mounts
    known = tuple(_mounts(mounts))
    unified: str | None = None
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller in controllers.split(","):
            for mount in known:
                if mount.kind == "cgroup" and controller in mount.options:
                    return _Place(1, tuple(_folders(mount, path)))
        if number == "0" and not controllers:
            unified = path
    if unified is not None:
        for mount in known:
            if mount.kind == "cgroup2":
                return _Place(2, tuple(_folders(mount, unified)))
    return Unknown(f"{_CGROUP}: no group with a limit of {controller}", absent=True)


def _mounts(text: str) -> Iterator[_Mount]:
    for line in text.splitlines():
        own, dash, rest = line.partition(" - ")
        fields, device = own.split(" "), rest.split(" ")
        if dash and len(fields) >= 6 and len(device) >= 3:
            root, point = (_unescaped(field) for field in fields[3:5])
            yield _Mount(root, point, device[0], tuple(device[2].split(",")))


def _unescaped(field: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, character)
    return field


def _folders(mount: _Mount, path: str) -> Iterator[str]:
    """The folders of a group and of those above it, as far as this mount shows them."""
    root = mount.root.rstrip("/")
    inside = path == root or path.startswith(f"{root}/")
    # What lies outside of what is mounted ("/..", or a path of the host) cannot be seen: the
    # mounted folder is then the group itself.
    parts = [part for part in path[len(root) :].split("/") if part] if inside else []
    if ".." in parts:
        parts = []
    for length in range(len(parts), -1, -1):
        yield "/".join([mount.point.rstrip("/"), *parts[:length]])
