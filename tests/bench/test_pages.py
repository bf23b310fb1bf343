"""What the system says of the pages of memory."""

from __future__ import annotations

import sys

import pytest

from memlint.bench.pages import (
    HUGE_PAGE,
    available_memory,
    bytes_in_huge_pages,
    huge_bytes,
    huge_pages,
    is_hugetlb,
    mappings_of,
    small_pages,
)

SMAPS = """\
1000-3000 rw-p 00000000 00:00 0 [heap]
Size:                  8 kB
AnonHugePages:         0 kB
VmFlags: rd wr mr mw me ac sd
200000-600000 rw-p 00000000 00:00 0
Size:               4096 kB
AnonHugePages:      2048 kB
Private_Hugetlb:       0 kB
VmFlags: rd wr mr mw me ac hg
600000-800000 rw-p 00000000 00:0f 4 /anon_hugepage (deleted)
AnonHugePages:         0 kB
Private_Hugetlb:    2048 kB
VmFlags: rd wr mr mw me ht sd
"""


def huge(address: int, nbytes: int) -> list[int]:
    return [huge_bytes(fields) for fields in mappings_of(SMAPS, address, nbytes)]


def test_a_mapping_ends_before_the_next_one() -> None:
    assert huge(0x1000, 0x2000) == [0]
    assert huge(0x200000, 1) == [2 << 20]
    assert huge(0x5FFFFF, 1) == [2 << 20]
    assert huge(0x600000, 1) == [2 << 20]
    assert huge(0x3000, 0x1000) == []


def test_memory_may_lie_in_several_mappings() -> None:
    assert huge(0x500000, 0x200000) == [2 << 20, 2 << 20]


def test_flags_tell_how_memory_was_mapped() -> None:
    flags = [fields["VmFlags"] for fields in mappings_of(SMAPS, 0x500000, 0x200000)]
    assert ["ht" in one.split() for one in flags] == [False, True]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_of_the_pages_that_were_asked_for() -> None:
    nbytes = 2 * HUGE_PAGE
    small, large = small_pages(nbytes), huge_pages(nbytes)
    assert (small.nbytes, large.nbytes) == (nbytes, nbytes)
    assert large.ctypes.data % HUGE_PAGE == 0
    assert bytes_in_huge_pages(small.ctypes.data, nbytes) == 0
    assert bytes_in_huge_pages(large.ctypes.data, nbytes) in (0, HUGE_PAGE, nbytes)
    assert not is_hugetlb(large.ctypes.data, nbytes)
    large[-1] = 7
    assert large.sum() == 7


def test_some_memory_is_available() -> None:
    assert available_memory() > 1 << 20
