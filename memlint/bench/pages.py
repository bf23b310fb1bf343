"""Memory in pages of a chosen size, and what pages some memory is made of."""

from __future__ import annotations

import mmap
import re
import sys
from collections.abc import Iterator
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


def bytes_in_huge_pages(address: int) -> int:
    """Bytes in huge pages of the mapping that an address lies in; Linux only."""
    return huge_bytes_of(_SMAPS.read_text("ascii"), address)


def huge_bytes_of(smaps: str, address: int) -> int:
    """The same, from the text of /proc/self/smaps."""
    for begin, end, kilobytes in _mappings(smaps):
        if begin <= address < end:
            return kilobytes << 10
    return 0


def _mappings(smaps: str) -> Iterator[tuple[int, int, int]]:
    begin = end = 0
    for row in smaps.splitlines():
        if found := _MAPPING.match(row):
            begin, end = int(found[1], 16), int(found[2], 16)
        elif row.startswith("AnonHugePages:"):
            yield begin, end, int(row.split()[1])


def available_memory() -> int:
    """Bytes that the system can give without swapping, 1 GiB where it does not tell; a limit of a
    control group is not seen."""
    try:
        text = Path("/proc/meminfo").read_text("ascii")
    except OSError:
        return 1 << 30
    found = re.search(r"^MemAvailable: +(\d+) kB", text, re.MULTILINE)
    return int(found[1]) << 10 if found else 1 << 30
