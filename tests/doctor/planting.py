"""Sample systems: files laid out under a root as the kernel documents them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from memlint.doctor.cpu_list import list_text

Files = Mapping[str, str]
"""Texts by path; one that begins with ``-> `` is a symbolic link."""


def plant(root: Path, files: Files) -> Path:
    for path, text in files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            target.symlink_to(text.removeprefix("-> "))
        else:
            target.write_text(text)
    return root


def cpu(
    number: int, siblings: Iterable[int], caches: Iterable[tuple[int, str, str, Iterable[int]]]
) -> dict[str, str]:
    """/sys/devices/system/cpu/cpuN: caches are level, type, size and the CPUs that share it."""
    folder = f"/sys/devices/system/cpu/cpu{number}"
    files = {f"{folder}/topology/thread_siblings_list": list_text(list(siblings)) + "\n"}
    for index, (level, kind, size, shared) in enumerate(caches):
        values = {
            "level": str(level),
            "type": kind,
            "size": size,
            "coherency_line_size": "64",
            "shared_cpu_list": list_text(list(shared)),
        }
        files |= {f"{folder}/cache/index{index}/{name}": v + "\n" for name, v in values.items()}
    return files


def transparent(enabled: str, defrag: str, own: str | None = "inherit") -> dict[str, str]:
    """/sys/kernel/mm/transparent_hugepage; ``own`` is the setting of 2 MiB pages."""
    folder = "/sys/kernel/mm/transparent_hugepage"
    files = {
        f"{folder}/enabled": _chosen("always madvise never", enabled),
        f"{folder}/defrag": _chosen("always defer defer+madvise madvise never", defrag),
        f"{folder}/hpage_pmd_size": "2097152\n",
    }
    if own is not None:
        path = f"{folder}/hugepages-2048kB/enabled"
        files[path] = _chosen("always inherit madvise never", own)
    return files


def _chosen(words: str, chosen: str) -> str:
    return " ".join(f"[{word}]" if word == chosen else word for word in words.split()) + "\n"


def pools(**totals: tuple[int, int]) -> dict[str, str]:
    """/sys/kernel/mm/hugepages: total and free pages by size, as ``kB2048=(0, 0)``."""
    files: dict[str, str] = {}
    for name, (total, free) in totals.items():
        folder = f"/sys/kernel/mm/hugepages/hugepages-{name.removeprefix('kB')}kB"
        files[f"{folder}/nr_hugepages"] = f"{total}\n"
        files[f"{folder}/free_hugepages"] = f"{free}\n"
    return files


def node(number: int, cpulist: str, kilobytes: int) -> dict[str, str]:
    folder = f"/sys/devices/system/node/node{number}"
    return {
        f"{folder}/cpulist": f"{cpulist}\n",
        f"{folder}/meminfo": (
            f"Node {number} MemTotal:       {kilobytes} kB\n"
            f"Node {number} MemFree:        {kilobytes // 2} kB\n"
        ),
    }


def pci(address: str, bridge: str, **attributes: str) -> dict[str, str]:
    """A device: a folder below its bridge, and a link to it in /sys/bus/pci/devices."""
    folder = f"/sys/devices/{bridge}/{address}"
    files = {f"{folder}/{name}": value for name, value in attributes.items()}
    files[f"/sys/bus/pci/devices/{address}"] = f"-> ../../../devices/{bridge}/{address}"
    return files


def meminfo(total: int, available: int, swap: tuple[int, int] = (0, 0)) -> dict[str, str]:
    """/proc/meminfo, in kilobytes; swap is total and free."""
    return {
        "/proc/meminfo": (
            f"MemTotal:       {total:8d} kB\n"
            f"MemFree:        {available // 2:8d} kB\n"
            f"MemAvailable:   {available:8d} kB\n"
            f"SwapTotal:      {swap[0]:8d} kB\n"
            f"SwapFree:       {swap[1]:8d} kB\n"
            f"CommitLimit:    {total // 2 + swap[0]:8d} kB\n"
            f"Committed_AS:   {total // 4:8d} kB\n"
            "HugePages_Total:       0\n"
            "Hugepagesize:       2048 kB\n"
        )
    }


def status(cpus: str, nodes: str = "0", capabilities: str = "0000000000000000") -> dict[str, str]:
    """/proc/self/status, as far as it is looked at."""
    return {
        "/proc/self/status": (
            "Name:\tpython\nUmask:\t0022\n"
            f"CapEff:\t{capabilities}\nTHP_enabled:\t1\n"
            f"Cpus_allowed_list:\t{cpus}\nMems_allowed_list:\t{nodes}\n"
        )
    }


def limits(locked: str) -> dict[str, str]:
    return {
        "/proc/self/limits": (
            "Limit                     Soft Limit           Hard Limit           Units     \n"
            "Max stack size            8388608              unlimited            bytes     \n"
            f"Max locked memory         {locked:<20} {locked:<20} bytes     \n"
            "Max address space         unlimited            unlimited            bytes     \n"
        )
    }


def pressure(waited: str = "0.00") -> dict[str, str]:
    return {
        "/proc/pressure/memory": (
            f"some avg10=0.00 avg60={waited} avg300=0.00 total=0\n"
            f"full avg10=0.00 avg60={waited} avg300=0.00 total=0\n"
        )
    }


def virtual_memory(overcommit: int = 0, zone_reclaim: int = 0) -> dict[str, str]:
    return {
        "/proc/sys/vm/overcommit_memory": f"{overcommit}\n",
        "/proc/sys/vm/zone_reclaim_mode": f"{zone_reclaim}\n",
    }


def kernel(release: str, model: str) -> dict[str, str]:
    return {
        "/proc/sys/kernel/osrelease": f"{release}\n",
        "/proc/cpuinfo": f"processor\t: 0\nvendor_id\t: X\nmodel name\t: {model}\n",
        "/proc/self/maps": (
            "55d0c0a00000-55d0c0a01000 r--p 00000000 fe:00 12 /usr/bin/python3.12\n"
            "7f0000000000-7f0000200000 r-xp 00000000 fe:00 34 /usr/lib/libc.so.6\n"
        ),
    }


def unified(path: str, root: str = "/") -> dict[str, str]:
    """A system with control groups of version 2 alone, this process in one of them."""
    return {
        "/proc/self/cgroup": f"0::{path}\n",
        "/proc/self/mountinfo": (
            "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
            f"30 23 0:26 {root} /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
        ),
    }
