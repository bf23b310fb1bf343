"""Five sample systems."""

from __future__ import annotations

from pathlib import Path

from memlint.doctor.host import FileSystem, Host
from tests.doctor.planting import (
    cpu,
    kernel,
    limits,
    meminfo,
    node,
    pci,
    plant,
    pools,
    pressure,
    status,
    transparent,
    unified,
    virtual_memory,
)

GIB = 1 << 30


def server(root: Path, cores: int = 48) -> Host:
    """Two sockets with so many cores of two threads each, 8 GPUs and 4 RDMA cards."""
    sockets = (range(cores), range(cores, 2 * cores))
    files: dict[str, str] = {"/sys/devices/system/cpu/online": f"0-{4 * cores - 1}\n"}
    for socket in sockets:
        everyone = [*socket, *(core + 2 * cores for core in socket)]
        for core in socket:
            pair = (core, core + 2 * cores)
            caches = (
                (1, "Data", "48K", pair),
                (1, "Instruction", "32K", pair),
                (2, "Unified", "2048K", pair),
                (3, "Unified", "107520K", everyone),
            )
            for thread in pair:
                files |= cpu(thread, pair, caches)
    files |= node(0, f"0-{cores - 1},{2 * cores}-{3 * cores - 1}", 1056000000)
    files |= node(1, f"{cores}-{2 * cores - 1},{3 * cores}-{4 * cores - 1}", 1056000000)
    for gpu in range(8):
        place = gpu // 4
        address = f"0000:{0x18 + 0x10 * gpu:02x}:00.0"
        files |= pci(
            address,
            f"pci0000:{0x15 + 0x10 * gpu:02x}",
            **{"class": "0x030200"},
            vendor="0x10de",
            numa_node=str(place),
        )
        files[f"/proc/driver/nvidia/gpus/{address}/information"] = (
            "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 26\n"
        )
    for card in range(4):
        files |= pci(
            f"0000:{0x1A + 0x20 * card:02x}:00.0",
            f"pci0000:{0x15 + 0x20 * card:02x}",
            **{
                "class": "0x020700",
                f"net/ib{card}/mtu": "4092",
                f"infiniband/mlx5_{card}/uevent": "",
            },
            vendor="0x15b3",
            numa_node=str(card // 2),
        )
    # What draws the console, and a virtual function: neither counts.
    files |= pci(
        "0000:03:00.0", "pci0000:00", **{"class": "0x030000"}, vendor="0x1a03", numa_node="0"
    )
    files |= pci("0000:1a:00.1", "pci0000:15", **{"class": "0x020700"}, physfn="-> ../0000:1a:00.0")
    files["/proc/driver/nvidia/version"] = (
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86\n"
    )
    files |= transparent("always", "madvise")
    files |= pools(kB2048=(0, 0), kB1048576=(128, 128))
    files |= meminfo(2112000000, 2000000000) | pressure() | virtual_memory(zone_reclaim=1)
    files |= status(f"0-{4 * cores - 1}", "0-1") | limits("8388608")
    files |= kernel("5.15.0-130-generic", "Intel(R) Xeon(R) Platinum 8468")
    files |= unified("/user.slice/user-1000.slice/session-3.scope")
    return Host(
        root=plant(root, files),
        python=(3, 12),
        cpu_count=4 * cores,
        file_system=lambda path: FileSystem(1008 * GIB, 1008 * GIB),
    )


def laptop(root: Path) -> Host:
    """Two fast cores with two threads each, four slow ones, one GPU whose driver is missing."""
    files: dict[str, str] = {"/sys/devices/system/cpu/online": "0-7\n"}
    for core in ((0, 1), (2, 3)):
        for thread in core:
            files |= cpu(
                thread,
                core,
                (
                    (1, "Data", "48K", core),
                    (1, "Instruction", "32K", core),
                    (2, "Unified", "1280K", core),
                    (3, "Unified", "12288K", range(8)),
                ),
            )
    for core_number in range(4, 8):
        files |= cpu(
            core_number,
            [core_number],
            (
                (1, "Data", "32K", [core_number]),
                (1, "Instruction", "64K", [core_number]),
                (2, "Unified", "2048K", range(4, 8)),
                (3, "Unified", "12288K", range(8)),
            ),
        )
    files |= node(0, "0-7", 16000000)
    files |= pci(
        "0000:00:02.0", "pci0000:00", **{"class": "0x030000"}, vendor="0x8086", numa_node="-1"
    )
    files |= pci(
        "0000:01:00.0", "pci0000:00", **{"class": "0x030200"}, vendor="0x10de", numa_node="-1"
    )
    files |= pci(
        "0000:02:00.0", "pci0000:00", **{"class": "0x028000"}, vendor="0x8086", numa_node="-1"
    )
    files |= transparent("madvise", "madvise")
    files |= pools(kB2048=(0, 0), kB1048576=(0, 0))
    files |= meminfo(16000000, 3000000, swap=(4194304, 2097152)) | pressure("1.25")
    files |= virtual_memory() | status("0-7") | limits("8388608")
    files |= kernel("6.11.0-21-generic", "12th Gen Intel(R) Core(TM) i5-1240P")
    files |= unified("/user.slice/user-1000.slice/user@1000.service/app.slice/term.scope")
    group = "/sys/fs/cgroup/user.slice/user-1000.slice"
    files |= {f"{group}/memory.max": "max\n", f"{group}/cpu.max": "max 100000\n"}
    return Host(
        root=plant(root, files),
        python=(3, 14),
        start_method="forkserver",
        cpu_count=8,
        file_system=lambda path: FileSystem(8192000000, 8000000000),
    )


def container(root: Path, cpus: int = 32) -> Host:
    """A container under version 2, with 16 GiB and 3.5 CPUs of a machine with so many."""
    files: dict[str, str] = {"/sys/devices/system/cpu/online": f"0-{cpus - 1}\n"}
    for number in range(cpus):
        first = number // 8 * 8
        files |= cpu(
            number,
            [number],
            (
                (1, "Data", "32K", [number]),
                (1, "Instruction", "32K", [number]),
                (2, "Unified", "1024K", [number]),
                (3, "Unified", "32768K", range(first, first + 8)),
            ),
        )
    files |= node(0, f"0-{cpus - 1}", 131072000)
    files |= {"/sys/bus/pci/devices/0000:00:00.0": "-> ../../../devices/pci0000:00/0000:00:00.0"}
    files |= {"/sys/devices/pci0000:00/0000:00:00.0/class": "0x060000\n"}
    files |= transparent("never", "never", own=None)
    files |= pools(kB2048=(0, 0))
    files |= meminfo(131072000, 100000000) | virtual_memory(overcommit=1)
    files |= status(f"0-{cpus - 1}") | limits("unlimited")
    files |= kernel("6.1.0-28-cloud-amd64", "AMD EPYC 9R14")
    files |= unified("/", root="/kubepods/burstable/pod1/c1")
    files |= {
        "/.dockerenv": "",
        "/sys/fs/cgroup/memory.max": f"{16 * GIB}\n",
        "/sys/fs/cgroup/memory.high": "max\n",
        "/sys/fs/cgroup/memory.current": f"{13 * GIB}\n",
        "/sys/fs/cgroup/memory.stat": f"anon {3 * GIB}\ninactive_file {9 * GIB}\nactive_file 1\n",
        "/sys/fs/cgroup/memory.events": "low 0\nhigh 0\nmax 12\noom 2\noom_kill 2\n",
        "/sys/fs/cgroup/cpu.max": "350000 100000\n",
        "/sys/fs/cgroup/cpu.stat": (
            "usage_usec 1000\nnr_periods 4000\nnr_throttled 3100\nthrottled_usec 900\n"
        ),
    }
    return Host(
        root=plant(root, files),
        python=(3, 11),
        cpu_count=cpus,
        file_system=lambda path: FileSystem(64 << 20, 64 << 20),
    )


def old_container(root: Path) -> Host:
    """A job under version 1: groups of the host are named, those of the container are mounted."""
    files: dict[str, str] = {"/sys/devices/system/cpu/online": "0-15\n"}
    files |= node(0, "0-7", 65536000) | node(1, "8-15", 65536000)
    files |= transparent("always", "always", own=None)
    files |= meminfo(131072000, 100000000) | virtual_memory(overcommit=2)
    files |= status("8-11", "0") | limits("65536")
    files |= kernel("4.4.0-210-generic", "Intel(R) Xeon(R) CPU E5-2640 v4")
    group = "/docker/4f1c"
    files |= {
        "/run/.containerenv": "",
        "/proc/self/cgroup": (
            f"11:cpuset:{group}\n10:cpu,cpuacct:{group}\n4:memory:{group}\n1:name=systemd:{group}\n"
        ),
        "/proc/self/mountinfo": (
            "400 399 0:30 / / rw - overlay overlay rw\n"
            f"410 409 0:31 {group} /sys/fs/cgroup/cpu,cpuacct ro master:9 - cgroup cgroup "
            "rw,cpu,cpuacct\n"
            f"411 409 0:32 {group} /sys/fs/cgroup/memory ro master:10 - cgroup cgroup rw,memory\n"
        ),
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{32 * GIB}\n",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes": f"{30 * GIB}\n",
        "/sys/fs/cgroup/memory/memory.stat": f"cache 1\ntotal_inactive_file {20 * GIB}\n",
        "/sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
        "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "800000\n",
        "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        "/sys/fs/cgroup/cpu,cpuacct/cpu.stat": "nr_periods 9\nnr_throttled 0\nthrottled_time 0\n",
    }
    return Host(
        root=plant(root, files),
        python=(3, 10),
        cpu_count=16,
        file_system=lambda path: FileSystem(256 << 20, 200 << 20),
    )


def wsl(root: Path) -> Host:
    """Linux within Windows: no NUMA nodes, no caches, the GPU behind /dev/dxg."""
    files: dict[str, str] = {"/sys/devices/system/cpu/online": "0-15\n"}
    for number in range(16):
        pair = (number // 2 * 2, number // 2 * 2 + 1)
        files |= cpu(number, pair, ())
    files |= {"/dev/dxg": "", "/sys/bus/pci/devices/.keep": ""}
    files |= transparent("always", "madvise")
    files |= pools(kB2048=(0, 0))
    files |= meminfo(8000000, 7000000, swap=(2097152, 2097152)) | virtual_memory()
    files |= status("0-15") | limits("65536")
    files |= kernel("5.15.167.4-microsoft-standard-WSL2", "AMD Ryzen 7 5800X 8-Core Processor")
    files |= unified("/init.scope")
    return Host(
        root=plant(root, files),
        python=(3, 12),
        cpu_count=16,
        file_system=lambda path: FileSystem(4096000000, 4096000000),
    )
