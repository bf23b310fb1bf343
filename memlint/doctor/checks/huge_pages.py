"""Transparent huge pages, what NumPy and PyTorch make of them, and reserved ones."""

from __future__ import annotations

import re

from memlint.doctor.lines import Line, attention, bad, good, unknown
from memlint.doctor.machine import Machine
from memlint.doctor.sizes import size_text
from memlint.doctor.unknown import Unknown

_ENABLED = "/sys/kernel/mm/transparent_hugepage/enabled"
_DEFRAG = "/sys/kernel/mm/transparent_hugepage/defrag"
_MODES = ("always", "madvise", "never")
_FIRST_GOOD_KERNEL = (4, 6)
_NUMPY_VARIABLE = "NUMPY_MADVISE_HUGEPAGE"
_TORCH_VARIABLE = "THP_MEM_ALLOC_ENABLE"


def huge_pages(machine: Machine) -> Line:
    """The mode of transparent huge pages.

    https://docs.kernel.org/admin-guide/mm/transhuge.html: one fault per huge page instead of
    one per page, fewer TLB misses; with ``defrag`` at ``always``, a program that touches
    memory stalls while memory is compacted.
    """
    found = machine.transparent
    mode = _mode(machine)
    if isinstance(mode, Unknown):
        return unknown("huge pages", mode)
    if found.allowed is False:
        return attention(
            "huge pages",
            "switched off for this process and its children (PR_SET_THP_DISABLE): "
            f"{_what_is_paid(machine)}",
        )
    if mode == "never":
        return attention(
            "huge pages",
            f"never: {_what_is_paid(machine)}",
            f"echo madvise | sudo tee {_ENABLED}",
        )
    if mode == "always" and found.defrag == "always":
        return attention(
            "huge pages",
            "always, and so is defrag: where memory is fragmented, the first touch of an "
            "array waits until memory is compacted",
            f"echo madvise | sudo tee {_DEFRAG}",
        )
    size = "" if isinstance(found.size, Unknown) else f" of {size_text(found.size)}"
    if mode == "always":
        return good("huge pages", f"always: large memory can get pages{size} unasked")
    return good("huge pages", f"madvise: programs that ask for it can get pages{size}")


def _what_is_paid(machine: Machine) -> str:
    page = size_text(machine.host.page_size)
    return f"a large array costs a page fault and a TLB entry for each {page} of it"


def _mode(machine: Machine) -> str | Unknown:
    mode = machine.transparent.mode
    if isinstance(mode, Unknown) or mode in _MODES:
        return mode
    return Unknown(f"{_ENABLED}: mode {mode[:20]!r}")


def numpy(machine: Machine) -> Line | None:
    """Whether NumPy asks for huge pages.

    https://numpy.org/doc/stable/reference/global_state.html: it does since Linux 4.6, for
    arrays of 4 MiB and more, unless NUMPY_MADVISE_HUGEPAGE says otherwise; what is no number
    there makes its import fail.
    """
    topic = "NumPy pages"
    value = machine.host.environment.get(_NUMPY_VARIABLE)
    if value is not None and not _is_number(value):
        return bad(
            topic,
            f"{_NUMPY_VARIABLE}={value} is not a number: `import numpy` fails",
            f"unset {_NUMPY_VARIABLE}",
        )
    mode = _mode(machine)
    if isinstance(mode, Unknown) or mode == "never":
        return None
    if mode == "always":
        return good(topic, "its large arrays can get huge pages unasked")
    if value is not None and int(value) == 0:
        return attention(
            topic,
            f"{_NUMPY_VARIABLE}=0: arrays of 4 MiB and more get small pages",
            f"unset {_NUMPY_VARIABLE}",
        )
    if value is None and _is_old(machine.kernel):
        return attention(
            topic,
            "asks for no huge pages on a kernel before 4.6, where they were slow to get",
        )
    return good(topic, "asks for huge pages for arrays of 4 MiB and more")


def _is_number(value: str) -> bool:
    return re.fullmatch(r"\s*[+-]?[0-9]{1,9}\s*", value) is not None


def _is_old(kernel: str | Unknown) -> bool:
    match = None if isinstance(kernel, Unknown) else re.match(r"([0-9]{1,3})\.([0-9]{1,3})", kernel)
    return match is not None and (int(match[1]), int(match[2])) < _FIRST_GOOD_KERNEL


def torch(machine: Machine) -> Line | None:
    """Whether PyTorch asks for huge pages for tensors on the CPU.

    https://docs.pytorch.org/tutorials/recipes/inference_tuning_on_aws_graviton.html: since
    2.2, for tensors of 2 MiB and more, where THP_MEM_ALLOC_ENABLE is 1; off by default, since
    memory use grows a little.
    """
    topic = "PyTorch pages"
    mode = _mode(machine)
    value = machine.host.environment.get(_TORCH_VARIABLE)
    if isinstance(mode, Unknown) or mode == "never":
        return None
    if mode == "always":
        return good(topic, "its large CPU tensors can get huge pages unasked")
    if value == "1":
        return good(topic, "asks for huge pages for CPU tensors of 2 MiB and more")
    if value not in (None, "0"):
        return attention(
            topic,
            f"{_TORCH_VARIABLE}={value} is neither 0 nor 1: PyTorch ignores it, and asks for "
            "no huge pages",
            f"export {_TORCH_VARIABLE}=1",
        )
    return attention(
        topic,
        "asks for no huge pages: a new tensor on the CPU costs a page fault for each "
        f"{size_text(machine.host.page_size)} when it is first written",
        f"export {_TORCH_VARIABLE}=1",
    )


def reserved(machine: Machine) -> Line:
    """Huge pages that are reserved.

    https://docs.kernel.org/admin-guide/mm/hugetlbpage.html: they cannot be used for other
    purposes, and only by programs that map them explicitly.  NumPy and PyTorch do not.
    """
    topic = "reserved pages"
    pools = machine.pools
    if isinstance(pools, Unknown):
        return unknown(topic, pools)
    taken = [pool for pool in pools if pool.total > 0]
    if not taken:
        return good(topic, "none; NumPy and PyTorch would use none")
    shown = ", ".join(f"{pool.total} of {size_text(pool.size)}" for pool in taken)
    unused = sum(pool.free * pool.size for pool in taken)
    if unused <= 0:
        return good(topic, f"{shown}, all in use")
    total = machine.memory.total
    share = "" if isinstance(total, Unknown) else f" of {size_text(total)}"
    return attention(
        topic,
        f"{shown}: {size_text(unused)}{share} lies unused, and neither NumPy nor PyTorch can "
        "have it",
        " && ".join(_release(pool.size) for pool in taken),
    )


def _release(size: int) -> str:
    path = f"/sys/kernel/mm/hugepages/hugepages-{size // 1024}kB/nr_hugepages"
    return f"echo 0 | sudo tee {path}"
