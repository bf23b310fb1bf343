"""What is said about memory, with numbers, in the textbook chapter that memlint makes practical
("Memory Management"), and in common advice: each claim beside the experiment that measures it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """``text`` is what is claimed; ``bench`` the experiment that answers it, or the rule whose
    bench does; empty: no bench can, and ``why_not`` says why.  ``note`` is what is known of it
    from elsewhere."""

    text: str
    bench: str = ""
    why_not: str = ""
    note: str = ""


CLAIMS: Mapping[str, Claim] = {
    "dram-latency": Claim(
        "Without caching, every access would pay the full latency of DRAM, about 70 ns",
        "working-set",
    ),
    "l1-latency": Claim(
        "The first-level cache at 1 to 4 ns is 17 to 70 times faster than DRAM", "working-set"
    ),
    "page-walk": Claim(
        "A TLB miss walks the page table: 4 accesses to memory, 100 to 300 cycles", "tlb-reach"
    ),
    "tlb-reach": Claim(
        "A second-level TLB with 4096 entries covers 16 MB of 4 KB pages",
        "tlb-reach",
        note="the number of entries differs by CPU: 1536, 2048 and 3072 are common",
    ),
    "huge-pages": Claim(
        "Huge pages of 2 MB reduce the pressure on the TLB dramatically", "tlb-reach"
    ),
    "huge-pages-fit": Claim(
        "140 GB in 2 MB pages are 70,000 entries, which fit the second-level TLB comfortably",
        "tlb-reach",
    ),
    "gigabyte-pages": Claim(
        "Pages of 1 GB improve the throughput of inference servers by 5 to 15 %",
        why_not="pages of 1 GB have to be reserved when the system starts, and the claim is "
        "about a whole server",
    ),
    "torch-hugetlb": Claim(
        "PyTorch maps large weight tensors with MAP_HUGETLB when huge pages are available",
        "tensor-pages",
        note="its allocator asks for none; THP_MEM_ALLOC_ENABLE=1 makes it advise the kernel",
    ),
    "cache-line": Claim("The CPU loads cache lines of 64 bytes", "cache-line"),
    "line-waste": Claim(
        "Access across the storage order uses 4 to 8 bytes of each line and discards the rest",
        "cache-line",
    ),
    "column-scan": Claim(
        "A NumPy scan over the columns of a 4096 x 4096 float32 matrix is 3 to 10 times slower "
        "than over its rows",
        "row-column-scan",
    ),
    "column-order": Claim(
        "Walking in column order slows a loop 3 to 10 times",
        "row-column-scan",
        note="said of all loops; in pure Python the interpreter hides the order",
    ),
    "conflict-misses": Claim(
        "Misses come in three kinds, conflict misses among them: addresses that compete for the "
        "same set of the cache",
        "row-column-scan",
    ),
    "tiled-product": Claim(
        "Tiling a matrix product by hand dramatically improves reuse", "matrix-product"
    ),
    "blas-tiles": Claim(
        "Tiling is what makes the product of a BLAS library fast: the naive loop is slow",
        "matrix-product",
    ),
    "false-sharing": Claim(
        "Two threads that write to different fields of one cache line force a miss on each other "
        "at every access",
        "false-sharing-distance",
    ),
    "padding": Claim(
        "Padding each thread's element to a whole line of 64 bytes avoids false sharing",
        "false-sharing-distance",
    ),
    "numa-latency": Claim(
        "Access to the memory of another NUMA node is 1.5 to 3 times slower", "numa-memory"
    ),
    "numa-throughput": Claim(
        "Ignoring NUMA costs multi-socket servers 10 to 40 % of their throughput",
        why_not="it takes a training run on several sockets",
        note="PyTorch's documentation says typically 1 to 10 %, some much more, some none",
    ),
    "strided": Claim(
        "Access to a tensor that is not contiguous is 3 to 10 times slower", "strided-operands"
    ),
    "contiguous": Claim(
        "`.contiguous()` makes access sequential, and so friendly to the cache",
        "strided-operands",
        note="it is a copy of the whole, which one use seldom pays for",
    ),
    "channels-last": Claim(
        "Channels-last is the faster memory format of convolutions", "convolution-format"
    ),
    "pin-memory": Claim(
        "pin_memory=True is almost always a free win",
        "pinned-copies",
        note="pinning is itself a copy, made by the host; a thread makes it only beside workers",
    ),
    "pinned-copies": Claim(
        "Copies from page-locked memory are faster than from pageable memory", "pinned-copies"
    ),
    "pin-memory-device": Claim(
        "pin_memory_device pins memory on the NUMA node that is local to the GPU",
        why_not="it takes a GPU on a machine with several NUMA nodes",
        note="the option only chose the device; it is deprecated and ignored since torch 2.9",
    ),
    "streaming": Claim(
        "Weights larger than the last-level cache stream through it: each line is used once",
        "working-set",
    ),
    "mmap-weights": Claim(
        "Mapping the weights' file instead of reading it saves memory",
        "load-weights",
        note="common advice; only with assign=True, and as long as nothing writes to them",
    ),
    "copy-on-write": Claim(
        "Worker processes that read a Python list copy it little by little, an array they share",
        "worker-growth",
        note="common advice",
    ),
}
"""By name."""
