"""Memory in pages of a chosen size, and what pages some memory is made of."""

from __future__ import annotations

import mmap
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HUGE_PAGE = 2 << 20
"""Bytes of a huge page on x86-64, and on AArch64 with small pages of 4 KiB."""

_SMAPS = Path("/proc/self/smaps")
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) ")


def huge_pages(nbytes: int) -> Any:
    """An array of uint64 zeros that asks for huge pages, and begins on one."""
    return _array(nbytes, "MADV_HUGEPAGE")


def small_pages(nbytes: int) -> Any:
    """An array of uint64 zeros that asks for no huge pages."""
    return _array(nbytes, "MADV_NOHUGEPAGE")


def _array(nbytes: int, advice: str) -> Any:
    import numpy as np

    if sys.platform == "win32":
        return np.zeros(nbytes // 8, np.uint64)
    memory = mmap.mmap(-1, nbytes + HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, advice):
        memory.madvise(getattr(mmap, advice))
    whole = np.frombuffer(memory, np.uint64)
    begin = -whole.ctypes.data % HUGE_PAGE // 8
    found = whole[begin : begin + nbytes // 8]
    # Pages come with the first write; before it, all are the same page of zeros.
    found.fill(0)
    return found


def bytes_in_huge_pages(address: int, nbytes: int) -> int:
    """Bytes in huge pages of the mappings that some memory lies in; Linux only."""
    found = mappings_of(_SMAPS.read_text("ascii"), address, nbytes)
    return sum(huge_bytes(fields) for fields in found)


def is_hugetlb(address: int, nbytes: int) -> bool:
    """Whether a mapping that some memory lies in was made with MAP_HUGETLB; Linux only."""
    found = mappings_of(_SMAPS.read_text("ascii"), address, nbytes)
    return any("ht" in fields.get("VmFlags", "").split() for fields in found)


def mappings_of(smaps: str, address: int, nbytes: int) -> list[dict[str, str]]:
    """What the text of /proc/self/smaps says of each mapping that has a part of some memory: one
    is split where advice begins."""
    found: list[dict[str, str]] = []
    here = False
    for row in smaps.splitlines():
        if begun := _MAPPING.match(row):
            begin, end = int(begun[1], 16), int(begun[2], 16)
            here = begin < address + nbytes and address < end
            if here:
                found.append({})
        elif here:
            key, _, value = row.partition(":")
            found[-1][key] = value.strip()
    return found


def huge_bytes(fields: Mapping[str, str]) -> int:
    """The bytes in huge pages that the fields of a mapping tell."""
    names = ("AnonHugePages", "ShmemPmdMapped", "Private_Hugetlb", "Shared_Hugetlb")
    return sum(int(fields.get(name, "0").split()[0]) << 10 for name in names)


def available_memory() -> int:
    """Bytes that the system can give without swapping, 1 GiB where it does not tell; a limit of a
    control group is not seen."""
    try:
        text = Path("/proc/meminfo").read_text("ascii")
    except OSError:
        return 1 << 30
    found = re.search(r"^MemAvailable: +(\d+) kB", text, re.MULTILINE)
    return int(found[1]) << 10 if found else 1 << 30
