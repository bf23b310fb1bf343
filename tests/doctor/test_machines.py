"""Each line about each sample system, against what its files hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlint.doctor.examine import examine
from memlint.doctor.facts.torch_build import NOT_INSTALLED
from memlint.doctor.lines import Line, attention, bad, good, unknown
from memlint.doctor.machine import read_machine
from memlint.doctor.unknown import Unknown
from tests.doctor import machines

_MISSING = "no such file or directory"
_ON_HOST = "  # on the host of this container"
FORK = good(
    "start method",
    "fork: workers share each page of the data set until one writes to it; to count references "
    "is to write",
)

SERVER = [
    good("CPUs", "Intel(R) Xeon(R) Platinum 8468: 192 CPUs on 96 cores"),
    good("caches", "L1d 96 x 48 KiB, L2 96 x 2 MiB, L3 2 x 105 MiB; lines of 64 bytes"),
    good("page size", "4 KiB"),
    good("huge pages", "always: large memory can get pages of 2 MiB unasked"),
    good("NumPy pages", "its large arrays can get huge pages unasked"),
    good("PyTorch pages", "its large CPU tensors can get huge pages unasked"),
    attention(
        "reserved pages",
        "128 of 1 GiB: 128 GiB of 1.97 TiB lies unused, and neither NumPy nor PyTorch can have it",
        "echo 0 | sudo tee /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages",
    ),
    attention(
        "NUMA",
        "this process may run on nodes 0-1: threads that move away from their "
        "memory wait longer for it (binding typically gains 1-10 %)",
        "torchrun --numa-binding=node --nproc-per-node=8 train.py",
    ),
    attention(
        "zone reclaim",
        "mode 1: a node that is full drops cached files (the data set) before "
        "memory of another node is used",
        "sudo sysctl vm.zone_reclaim_mode=0",
    ),
    good("GPUs", "8 x NVIDIA H100 80GB HBM3; 0-3 at node 0, 4-7 at node 1"),
    good("network", "4 cards (RDMA); 0-1 at node 0, 2-3 at node 1"),
    good("memory", "1.97 TiB, 1.86 TiB available"),
    good("swap", "none: what does not fit into memory is killed, not slowed down"),
    good("overcommit", "heuristic: only wild allocations are refused"),
    good("memory limit", "none below the memory of the machine"),
    good("CPU limit", "none"),
    good("threads", "as many as CPUs (192): OMP_NUM_THREADS is not set"),
    FORK,
    good(
        "shared memory", "1008 GiB of 1008 GiB free in /dev/shm: 2.62 GiB a batch for 192 workers"
    ),
    bad(
        "locked memory",
        "8 MiB: NCCL cannot register more than that with the 4 RDMA cards here",
        "ulimit -l unlimited",
    ),
    good("malloc", "the one of the C library: no other is preloaded"),
    good(
        "CUDA allocator",
        "as PyTorch sets it; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
        "helps where sizes change from step to step",
    ),
    unknown("PyTorch", NOT_INSTALLED),
]

LAPTOP = [
    good("CPUs", "12th Gen Intel(R) Core(TM) i5-1240P: 8 CPUs on 6 cores"),
    good(
        "caches",
        "L1d 4 x 32 KiB, L1d 2 x 48 KiB, L2 2 x 1.25 MiB, L2 2 MiB, L3 12 MiB; lines of 64 bytes",
    ),
    good("page size", "4 KiB"),
    good("huge pages", "madvise: programs that ask for it can get pages of 2 MiB"),
    good("NumPy pages", "asks for huge pages for arrays of 4 MiB and more"),
    attention(
        "PyTorch pages",
        "asks for no huge pages: a new tensor on the CPU costs a page fault for"
        " each 4 KiB when it is first written",
        "export THP_MEM_ALLOC_ENABLE=1",
    ),
    good("reserved pages", "none; NumPy and PyTorch would use none"),
    good("NUMA", "one node: no memory is far"),
    attention(
        "GPUs",
        "Intel GPU, NVIDIA GPU: NVIDIA's driver is not loaded, CUDA cannot use them",
        "sudo modprobe nvidia",
    ),
    attention(
        "memory",
        "15.3 GiB, 2.86 GiB available; in 1.25 % of the last minute all programs waited for memory",
        "ps -eo pid,rss,comm --sort=-rss | head",
    ),
    attention(
        "swap",
        "2 GiB of 4 GiB in use: what lies there is read back from the disk when it is touched",
        "sudo swapoff -a && sudo swapon -a",
    ),
    good("overcommit", "heuristic: only wild allocations are refused"),
    good("memory limit", "none below the memory of the machine"),
    good("CPU limit", "none"),
    good("threads", "as many as CPUs (8): OMP_NUM_THREADS is not set"),
    attention(
        "start method",
        "forkserver: the data set is pickled to each worker; lists and NumPy "
        "arrays in it are copied, tensors are shared",
    ),
    good("shared memory", "7.45 GiB of 7.63 GiB free in /dev/shm: 477 MiB a batch for 8 workers"),
    good("locked memory", "8 MiB; it bounds RDMA, and there is no card for it here"),
    good("malloc", "the one of the C library: no other is preloaded"),
    good(
        "CUDA allocator",
        "as PyTorch sets it; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
        "helps where sizes change from step to step",
    ),
    unknown("PyTorch", NOT_INSTALLED),
]

CONTAINER = [
    good("CPUs", "AMD EPYC 9R14: 32 CPUs on 32 cores"),
    good("caches", "L1d 32 x 32 KiB, L2 32 x 1 MiB, L3 4 x 32 MiB; lines of 64 bytes"),
    good("page size", "4 KiB"),
    attention(
        "huge pages",
        "never: a large array costs a page fault and a TLB entry for each 4 KiB of it",
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled" + _ON_HOST,
    ),
    good("reserved pages", "none; NumPy and PyTorch would use none"),
    good("NUMA", "one node: no memory is far"),
    good("GPUs", "none on the PCI bus"),
    good("memory", "125 GiB, 95.4 GiB available"),
    good("swap", "none: what does not fit into memory is killed, not slowed down"),
    good("overcommit", "always: no allocation is refused, what is too much is killed"),
    bad(
        "memory limit",
        "16 GiB for this control group, and 2 processes were killed there for want of memory",
        "docker run --memory=... ...",
    ),
    bad(
        "CPU limit",
        "3.5 CPUs for this control group (stopped in 3100 of 4000 periods so "
        "far), but 32 threads: they use up the quota early, and all stop for "
        "the rest of each period of 100 ms",
        "export OMP_NUM_THREADS=3",
    ),
    good("threads", "as many as CPUs (32): OMP_NUM_THREADS is not set"),
    FORK,
    bad(
        "shared memory",
        "64 MiB of 64 MiB free in /dev/shm: batches of workers go through it, "
        "and a worker that finds it full dies of a bus error",
        "docker run --shm-size=8g ...",
    ),
    good("locked memory", "no limit"),
    good("malloc", "the one of the C library: no other is preloaded"),
    unknown("PyTorch", NOT_INSTALLED),
]

OLD_CONTAINER = [
    good(
        "CPUs",
        "Intel(R) Xeon(R) CPU E5-2640 v4: this process may use 4 of 16 CPUs; "
        "os.cpu_count() counts all of them",
    ),
    unknown("caches", Unknown(f"/sys/devices/system/cpu/cpu0/cache: {_MISSING}")),
    good("page size", "4 KiB"),
    attention(
        "huge pages",
        "always, and so is defrag: where memory is fragmented, the first touch "
        "of an array waits until memory is compacted",
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/defrag" + _ON_HOST,
    ),
    good("NumPy pages", "its large arrays can get huge pages unasked"),
    good("PyTorch pages", "its large CPU tensors can get huge pages unasked"),
    unknown("reserved pages", Unknown(f"/sys/kernel/mm/hugepages: {_MISSING}")),
    bad(
        "NUMA",
        "this process runs on node 1, and all its memory comes from node 0: "
        "every access crosses the link between them",
        "docker run --cpuset-mems=1 ...",
    ),
    unknown("GPUs", Unknown(f"/sys/bus/pci/devices: {_MISSING}")),
    good("memory", "125 GiB, 95.4 GiB available"),
    good("swap", "none: what does not fit into memory is killed, not slowed down"),
    attention(
        "overcommit",
        "strict: allocations fail beyond the limit 62.5 GiB, of which 31.2 GiB "
        "are promised; each worker forked from a large process counts as large",
        "sudo sysctl vm.overcommit_memory=0" + _ON_HOST,
    ),
    attention(
        "memory limit",
        "32 GiB for this control group, 10 GiB in use: beyond it processes are "
        "killed; psutil and free show 125 GiB",
        "docker run --memory=... ...",
    ),
    good("CPU limit", "8 CPUs for this control group"),
    good("threads", "as many as CPUs (4): OMP_NUM_THREADS is not set"),
    FORK,
    attention(
        "shared memory",
        "200 MiB of 256 MiB free in /dev/shm: 4 workers with 2 batches each "
        "have 25 MiB a batch; 64 images of 224 x 224 as float32 take 36.8 MiB",
        "docker run --shm-size=8g ...",
    ),
    good("locked memory", "64 KiB; it bounds RDMA, and there is no card for it here"),
    good("malloc", "the one of the C library: no other is preloaded"),
    unknown("PyTorch", NOT_INSTALLED),
]

WSL = [
    good("CPUs", "AMD Ryzen 7 5800X 8-Core Processor: 16 CPUs on 8 cores"),
    unknown("caches", Unknown(f"/sys/devices/system/cpu/cpu0/cache: {_MISSING}")),
    good("page size", "4 KiB"),
    good("huge pages", "always: large memory can get pages of 2 MiB unasked"),
    good("NumPy pages", "its large arrays can get huge pages unasked"),
    good("PyTorch pages", "its large CPU tensors can get huge pages unasked"),
    good("reserved pages", "none; NumPy and PyTorch would use none"),
    unknown("NUMA", Unknown(f"/sys/devices/system/node: {_MISSING}")),
    good("GPUs", "those of Windows, through /dev/dxg"),
    good("memory", "7.63 GiB, 6.68 GiB available"),
    good("swap", "2 GiB, unused"),
    good("overcommit", "heuristic: only wild allocations are refused"),
    good("memory limit", "none below the memory of the machine"),
    good("CPU limit", "none"),
    good("threads", "as many as CPUs (16): OMP_NUM_THREADS is not set"),
    FORK,
    good("shared memory", "3.81 GiB of 3.81 GiB free in /dev/shm: 122 MiB a batch for 16 workers"),
    good("locked memory", "64 KiB; it bounds RDMA, and there is no card for it here"),
    good("malloc", "the one of the C library: no other is preloaded"),
    good(
        "CUDA allocator",
        "as PyTorch sets it; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
        "helps where sizes change from step to step",
    ),
    unknown("PyTorch", NOT_INSTALLED),
    attention(
        "WSL",
        "the memory that CUDA can pin is limited here: loaders with "
        "pin_memory=True may fail; there is as much memory as .wslconfig grants"
        " (7.63 GiB), read when WSL starts",
        "wsl.exe --shutdown",
    ),
]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("server", SERVER),
        ("laptop", LAPTOP),
        ("container", CONTAINER),
        ("old_container", OLD_CONTAINER),
        ("wsl", WSL),
    ],
)
def test_every_line_says_what_the_files_hold(
    name: str, expected: list[Line], tmp_path: Path
) -> None:
    host = getattr(machines, name)(tmp_path)

    assert list(examine(read_machine(host))) == expected
