"""Each state that a check can give, by small changes to the sample systems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from memlint.doctor.examine import examine
from memlint.doctor.facts.torch_build import TorchBuild
from memlint.doctor.host import FileSystem, Host
from memlint.doctor.lines import Line, State
from memlint.doctor.machine import read_machine
from memlint.doctor.unknown import NOT_HERE, Unknown
from tests.doctor import machines
from tests.doctor.planting import Files, meminfo, plant, pools, pressure, status, transparent

GOOD, ATTENTION, BAD, UNKNOWN = State.GOOD, State.ATTENTION, State.BAD, State.UNKNOWN
CPU_BUILD = TorchBuild("2.9.0+cpu", None, None, 8, False, 0, False)
CUDA_BUILD = TorchBuild("2.9.0+cu128", "12.8", None, 8, True, 1, False)

Sample = Callable[[Path], Host]
SMALL_SERVER = partial(machines.server, cores=4)
"""CPUs 0-3 and 8-11 at node 0, the others up to 15 at node 1."""


def said(host: Host, torch: TorchBuild | Unknown | None = None) -> dict[str, Line]:
    machine = read_machine(host) if torch is None else read_machine(host, lambda: torch)
    return {line.topic: line for line in examine(machine)}


def changed(sample: Sample, root: Path, files: Files, **environment: str) -> Host:
    host = sample(root)
    plant(root, files)
    return replace(host, environment={**host.environment, **environment})


@pytest.mark.parametrize(
    ("files", "state", "part", "command"),
    [
        (transparent("always", "madvise"), GOOD, "always", None),
        (transparent("madvise", "always"), GOOD, "madvise", None),
        (transparent("always", "always"), ATTENTION, "defrag", "defrag"),
        (transparent("never", "madvise"), ATTENTION, "4 KiB", "transparent_hugepage/enabled"),
        (transparent("always", "madvise", own="never"), ATTENTION, "never", "enabled"),
        (transparent("sometimes", "madvise"), UNKNOWN, "nothing is chosen", None),
    ],
)
def test_huge_pages(
    files: Files, state: State, part: str, command: str | None, tmp_path: Path
) -> None:
    line = said(changed(machines.laptop, tmp_path, files))["huge pages"]

    assert line.state is state
    assert part in line.why
    assert (line.command is None) if command is None else (command in (line.command or ""))


def test_huge_pages_that_a_parent_has_switched_off(tmp_path: Path) -> None:
    host = machines.laptop(tmp_path)
    path = tmp_path / "proc/self/status"
    path.write_text(path.read_text().replace("THP_enabled:\t1", "THP_enabled:\t0"))

    line = said(host)["huge pages"]

    assert line.state is ATTENTION
    assert "PR_SET_THP_DISABLE" in line.why


@pytest.mark.parametrize(
    ("value", "state", "part"),
    [
        (None, GOOD, "4 MiB"),
        ("1", GOOD, "4 MiB"),
        (" 1 ", GOOD, "4 MiB"),
        ("0", ATTENTION, "small pages"),
        ("yes", BAD, "import numpy"),
        ("", BAD, "import numpy"),
    ],
)
def test_what_numpy_makes_of_them(
    value: str | None, state: State, part: str, tmp_path: Path
) -> None:
    environment = {} if value is None else {"NUMPY_MADVISE_HUGEPAGE": value}
    line = said(changed(machines.laptop, tmp_path, {}, **environment))["NumPy pages"]

    assert (line.state, part in line.why) == (state, True)


@pytest.mark.parametrize(
    ("release", "state"),
    [("4.5.0", ATTENTION), ("3.10.0-1160.el7", ATTENTION), ("4.6.1", GOOD), ("rolling", GOOD)],
)
def test_numpy_asks_since_linux_4_6(release: str, state: State, tmp_path: Path) -> None:
    files = {"/proc/sys/kernel/osrelease": f"{release}\n"}

    assert said(changed(machines.laptop, tmp_path, files))["NumPy pages"].state is state


@pytest.mark.parametrize(
    ("value", "state", "part"),
    [
        (None, ATTENTION, "asks for no huge pages"),
        ("0", ATTENTION, "asks for no huge pages"),
        ("1", GOOD, "2 MiB"),
        ("true", ATTENTION, "ignores it"),
    ],
)
def test_what_pytorch_makes_of_them(
    value: str | None, state: State, part: str, tmp_path: Path
) -> None:
    environment = {} if value is None else {"THP_MEM_ALLOC_ENABLE": value}
    line = said(changed(machines.laptop, tmp_path, {}, **environment))["PyTorch pages"]

    assert (line.state, part in line.why) == (state, True)


def test_where_there_are_none_nobody_can_ask(tmp_path: Path) -> None:
    lines = said(changed(machines.laptop, tmp_path, transparent("never", "never")))

    assert not {"NumPy pages", "PyTorch pages"} & set(lines)


@pytest.mark.parametrize(
    ("free", "state", "part"),
    [(0, GOOD, "512 of 2 MiB, all in use"), (256, ATTENTION, "512 MiB of 15.3 GiB lies unused")],
)
def test_reserved_pages(free: int, state: State, part: str, tmp_path: Path) -> None:
    files = pools(kB2048=(512, free))
    line = said(changed(machines.laptop, tmp_path, files))["reserved pages"]

    assert (line.state, part in line.why) == (state, True)


@pytest.mark.parametrize(
    ("cpus", "nodes", "state", "part"),
    [
        ("0-15", "0-1", ATTENTION, "may run on nodes 0-1"),
        ("0-3", "0-1", GOOD, "runs on node 0 of 0-1"),
        ("4-7", "0", BAD, "all its memory comes from node 0"),
        ("3-4", "0-1", ATTENTION, "may run on nodes 0-1"),
    ],
)
def test_numa(cpus: str, nodes: str, state: State, part: str, tmp_path: Path) -> None:
    line = said(changed(SMALL_SERVER, tmp_path, status(cpus, nodes)))["NUMA"]

    assert (line.state, part in line.why) == (state, True)


@pytest.mark.parametrize(
    ("version", "command"),
    [
        ("2.8.1+cu128", "numactl --cpunodebind=0 --membind=0 python train.py"),
        ("2.10.0", "torchrun --numa-binding=node --nproc-per-node=8 train.py"),
    ],
)
def test_the_launcher_binds_since_2_9(version: str, command: str, tmp_path: Path) -> None:
    lines = said(SMALL_SERVER(tmp_path), replace(CUDA_BUILD, version=version))

    assert lines["NUMA"].command == command


def test_a_node_without_cpus_is_named(tmp_path: Path) -> None:
    files = {"/sys/devices/system/node/node2/cpulist": "\n"} | status("0-3", "0-2")
    line = said(changed(SMALL_SERVER, tmp_path, files))["NUMA"]

    assert line.state is GOOD
    assert line.why == "this process runs on node 0 of 0-2 (no CPUs at 2)"


@pytest.mark.parametrize(
    ("cpus", "state", "command"),
    [
        ("0-15", GOOD, None),
        (
            "0-3",
            ATTENTION,
            "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1,2,3",
        ),
    ],
)
def test_gpus_at_the_nodes(cpus: str, state: State, command: str | None, tmp_path: Path) -> None:
    line = said(changed(SMALL_SERVER, tmp_path, status(cpus, "0-1")))["GPUs"]

    assert (line.state, line.command) == (state, command)


def _numa_nodes(root: Path, of: dict[int, int]) -> None:
    for gpu, node in of.items():
        address = f"0000:{0x18 + 0x10 * gpu:02x}:00.0"
        (root / f"sys/bus/pci/devices/{address}/numa_node").write_text(f"{node}\n")


def test_gpus_that_are_all_at_another_node(tmp_path: Path) -> None:
    host = changed(SMALL_SERVER, tmp_path, status("0-3", "0-1"))
    _numa_nodes(tmp_path, dict.fromkeys(range(8), 1))

    line = said(host)["GPUs"]

    assert line.state is BAD
    assert line.command == "numactl --cpunodebind=1 --membind=1 python train.py"


def test_gpus_whose_node_is_not_told(tmp_path: Path) -> None:
    host = SMALL_SERVER(tmp_path)
    _numa_nodes(tmp_path, {2: -1, 5: -1})

    line = said(host)["GPUs"]

    assert line.state is ATTENTION
    assert "node of GPU 2,5" in line.why


def test_gpus_without_a_network_card_at_their_node(tmp_path: Path) -> None:
    host = SMALL_SERVER(tmp_path)
    for card in range(4):
        address = f"0000:{0x1A + 0x20 * card:02x}:00.0"
        (tmp_path / f"sys/bus/pci/devices/{address}/numa_node").write_text("0\n")

    line = said(host)["network"]

    assert line.state is ATTENTION
    assert "GPUs at node 1" in line.why


@pytest.mark.parametrize(
    ("swap", "waited", "state"),
    [
        ((0, 0), "9.00", GOOD),
        ((4096, 4096), "9.00", GOOD),
        ((4096, 1024), "0.00", GOOD),
        ((4096, 1024), "9.00", ATTENTION),
    ],
)
def test_swap(swap: tuple[int, int], waited: str, state: State, tmp_path: Path) -> None:
    files = meminfo(16000000, 8000000, swap) | pressure(waited)

    assert said(changed(machines.laptop, tmp_path, files))["swap"].state is state


@pytest.mark.parametrize(("waited", "state"), [("0.99", GOOD), ("1.00", ATTENTION)])
def test_memory_that_programs_wait_for(waited: str, state: State, tmp_path: Path) -> None:
    assert said(changed(machines.laptop, tmp_path, pressure(waited)))["memory"].state is state


def test_swap_that_does_not_fit_back_is_not_switched_off(tmp_path: Path) -> None:
    files = meminfo(16000000, 1000, (4000000, 1000000)) | pressure("9.00")

    assert said(changed(machines.laptop, tmp_path, files))["swap"].command is None


@pytest.mark.parametrize(
    ("mode", "state"), [("0", GOOD), ("1", GOOD), ("2", ATTENTION), ("3", UNKNOWN)]
)
def test_overcommit(mode: str, state: State, tmp_path: Path) -> None:
    files = {"/proc/sys/vm/overcommit_memory": f"{mode}\n"}

    assert said(changed(machines.laptop, tmp_path, files))["overcommit"].state is state


GROUP = "/sys/fs/cgroup"


@pytest.mark.parametrize(
    ("files", "state", "part"),
    [
        ({}, BAD, "2 processes were killed"),
        ({f"{GROUP}/memory.events": "oom_kill 1\n"}, BAD, "1 process was killed"),
        ({f"{GROUP}/memory.events": "oom_kill 0\n"}, ATTENTION, "4 GiB in use"),
        (
            {
                f"{GROUP}/memory.events": "oom_kill 0\n",
                f"{GROUP}/memory.stat": "inactive_file 0\n",
                f"{GROUP}/memory.current": f"{15 << 30}\n",
            },
            BAD,
            "15 GiB in use",
        ),
        ({f"{GROUP}/memory.max": "max\n"}, GOOD, "none below"),
        ({f"{GROUP}/memory.max": f"{1 << 40}\n"}, GOOD, "none below"),
        ({f"{GROUP}/memory.high": f"{8 << 30}\n"}, BAD, "2 processes were killed"),
        (
            {
                f"{GROUP}/memory.high": f"{8 << 30}\n",
                f"{GROUP}/memory.events": "oom_kill 0\n",
            },
            ATTENTION,
            "memory.high is 8 GiB",
        ),
        (
            {f"{GROUP}/memory.high": f"{8 << 30}\n", f"{GROUP}/memory.max": "max\n"},
            ATTENTION,
            "memory.high is 8 GiB",
        ),
        ({f"{GROUP}/memory.max": "many\n"}, UNKNOWN, "not a number"),
    ],
)
def test_memory_limit(files: Files, state: State, part: str, tmp_path: Path) -> None:
    line = said(changed(machines.container, tmp_path, files))["memory limit"]

    assert (line.state, part in line.why) == (state, True)


@pytest.mark.parametrize(
    ("quota", "environment", "torch", "state", "command"),
    [
        ("350000 100000", {}, None, BAD, "export OMP_NUM_THREADS=3"),
        ("350000 100000", {"OMP_NUM_THREADS": "4"}, None, GOOD, None),
        ("350000 100000", {"OMP_NUM_THREADS": "5"}, None, BAD, "export OMP_NUM_THREADS=3"),
        ("350000 100000", {"OMP_NUM_THREADS": "4"}, CPU_BUILD, BAD, "export OMP_NUM_THREADS=3"),
        ("50000 100000", {}, None, BAD, "export OMP_NUM_THREADS=1"),
        ("3200000 100000", {}, None, GOOD, None),
        ("max 100000", {}, None, GOOD, None),
    ],
)
def test_cpu_limit(
    quota: str,
    environment: dict[str, str],
    torch: TorchBuild | None,
    state: State,
    command: str | None,
    tmp_path: Path,
) -> None:
    files = {f"{GROUP}/cpu.max": f"{quota}\n"}
    host = changed(machines.container, tmp_path, files, **environment)

    line = said(host, torch)["CPU limit"]

    assert (line.state, line.command) == (state, command)


@pytest.mark.parametrize(
    ("value", "torch", "state", "part"),
    [
        (None, None, GOOD, "as many as CPUs (8)"),
        (None, CPU_BUILD, GOOD, "PyTorch takes 8 on 8"),
        ("4", None, GOOD, "OMP_NUM_THREADS=4 on 8"),
        ("4,2", None, GOOD, "OMP_NUM_THREADS=4,2 on 8"),
        ("16", None, ATTENTION, "OMP_NUM_THREADS=16 on 8"),
        ("16", CPU_BUILD, ATTENTION, "(PyTorch takes 8)"),
        ("1", CPU_BUILD, ATTENTION, "one of 8 CPUs"),
        ("many", None, ATTENTION, "OpenMP ignores it"),
        ("0", None, ATTENTION, "OpenMP ignores it"),
        (None, replace(CPU_BUILD, threads=9), BAD, "PyTorch takes 9 threads on 8"),
    ],
)
def test_threads(
    value: str | None, torch: TorchBuild | None, state: State, part: str, tmp_path: Path
) -> None:
    environment = {} if value is None else {"OMP_NUM_THREADS": value}
    line = said(changed(machines.laptop, tmp_path, {}, **environment), torch)["threads"]

    assert (line.state, part in line.why) == (state, True)


@pytest.mark.parametrize(
    ("method", "state"), [("fork", GOOD), ("forkserver", ATTENTION), ("spawn", ATTENTION)]
)
def test_start_method(method: str, state: State, tmp_path: Path) -> None:
    host = replace(machines.laptop(tmp_path), start_method=method)

    assert said(host)["start method"].state is state


@pytest.mark.parametrize(
    ("room", "state", "part"),
    [
        (FileSystem(64 << 20, 64 << 20), BAD, "bus error"),
        (FileSystem(1 << 30, 1 << 30), GOOD, "64 MiB a batch"),
        (FileSystem(1 << 30, 256 << 20), ATTENTION, "16 MiB a batch"),
        (FileSystem(1 << 30, 0), ATTENTION, "0 B a batch"),
        (Unknown("/dev/shm: no such file or directory", absent=True), BAD, "no /dev/shm"),
        (Unknown("/dev/shm: permission denied"), UNKNOWN, "permission denied"),
    ],
)
def test_shared_memory(room: FileSystem | Unknown, state: State, part: str, tmp_path: Path) -> None:
    host = replace(machines.laptop(tmp_path), file_system=lambda path: room)

    line = said(host)["shared memory"]

    assert (line.state, part in line.why) == (state, True)


def test_a_process_that_may_exceed_the_limit_of_locked_memory(tmp_path: Path) -> None:
    files = status("0-15", "0-1", capabilities="000001ffffffffff")

    assert said(changed(SMALL_SERVER, tmp_path, files))["locked memory"].state is GOOD


@pytest.mark.parametrize(
    ("preload", "maps", "state", "part"),
    [
        ("", "", GOOD, "no other is preloaded"),
        ("/usr/lib/libjemalloc.so.2", "/usr/lib/libjemalloc.so.2", GOOD, "jemalloc is preloaded"),
        ("libtcmalloc_minimal.so.4", "/usr/lib/libc.so.6", ATTENTION, "could not be loaded"),
        ("/usr/lib/libfaketime.so.1", "/usr/lib/libc.so.6", GOOD, "no other is preloaded"),
    ],
)
def test_malloc(preload: str, maps: str, state: State, part: str, tmp_path: Path) -> None:
    files = {"/proc/self/maps": f"7f00-7f01 r-xp 00000000 fe:00 3 {maps}\n"}
    line = said(changed(machines.laptop, tmp_path, files, LD_PRELOAD=preload))["malloc"]

    assert (line.state, part in line.why) == (state, True)


@pytest.mark.parametrize(
    ("environment", "state", "part"),
    [
        ({}, GOOD, "as PyTorch sets it"),
        ({"PYTORCH_ALLOC_CONF": "expandable_segments:True"}, GOOD, "expandable_segments:True"),
        ({"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments=True"}, BAD, "name:value"),
        ({"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:true"}, BAD, "True or False"),
        ({"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb"}, BAD, "name:value"),
        (
            {"PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:[256:1,>:8], backend:native"},
            GOOD,
            "backend:native",
        ),
        (
            {
                "PYTORCH_ALLOC_CONF": "max_split_size_mb:50",
                "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:60",
            },
            ATTENTION,
            "the latter wins",
        ),
    ],
)
def test_cuda_allocator(
    environment: dict[str, str], state: State, part: str, tmp_path: Path
) -> None:
    line = said(changed(machines.laptop, tmp_path, {}, **environment))["CUDA allocator"]

    assert (line.state, part in line.why) == (state, True)


def test_where_no_gpu_is_nothing_is_said_of_its_allocator(tmp_path: Path) -> None:
    assert "CUDA allocator" not in said(machines.container(tmp_path))


def test_switches_for_looking_for_errors(tmp_path: Path) -> None:
    host = changed(machines.laptop, tmp_path, {}, CUDA_LAUNCH_BLOCKING="1")
    line = said(host)["CUDA switches"]

    assert line.state is BAD
    assert line.command == "unset CUDA_LAUNCH_BLOCKING"
    off = replace(host, environment={"CUDA_LAUNCH_BLOCKING": "0"})
    assert "CUDA switches" not in said(off)


@pytest.mark.parametrize(
    ("torch", "environment", "state", "part"),
    [
        (CUDA_BUILD, {}, GOOD, "built for CUDA 12.8, sees 1 GPU"),
        (CPU_BUILD, {}, BAD, "the GPU is not used"),
        (replace(CUDA_BUILD, available=False), {}, BAD, "can use no GPU"),
        (
            replace(CUDA_BUILD, available=False),
            {"CUDA_VISIBLE_DEVICES": ""},
            ATTENTION,
            "hides all GPUs",
        ),
        (Unknown("importing PyTorch took more than 30 seconds"), {}, UNKNOWN, "30 seconds"),
    ],
)
def test_torch_build(
    torch: TorchBuild | Unknown,
    environment: dict[str, str],
    state: State,
    part: str,
    tmp_path: Path,
) -> None:
    line = said(changed(SMALL_SERVER, tmp_path, {}, **environment), torch)["PyTorch"]

    assert (line.state, part in line.why) == (state, True)


def test_torch_without_a_gpu(tmp_path: Path) -> None:
    line = said(machines.container(tmp_path), CPU_BUILD)["PyTorch"]

    assert line.state is GOOD
    assert line.why == "2.9.0+cpu, built without CUDA and ROCm"


def test_lines_of_128_bytes(tmp_path: Path) -> None:
    host = machines.container(tmp_path)
    for path in tmp_path.glob("sys/devices/system/cpu/cpu*/cache/index*/coherency_line_size"):
        path.write_text("128\n")

    line = said(host)["caches"]

    assert line.state is ATTENTION
    assert "128 bytes apart" in line.why


def _darwin(name: str) -> str | Unknown:
    values = {
        "machdep.cpu.brand_string": "Apple M3 Pro",
        "hw.cachelinesize": "128",
        "hw.l1dcachesize": "65536",
        "hw.l2cachesize": "4194304",
        "hw.memsize": "19327352832",
    }
    return values.get(name, Unknown(f"sysctl {name}: no such value", absent=True))


def test_a_mac() -> None:
    host = Host(
        platform="darwin",
        page_size=16384,
        cpu_count=12,
        start_method="spawn",
        sysctl=_darwin,
    )
    lines = said(host, replace(CPU_BUILD, version="2.9.0", mps=True))

    assert lines["CPUs"].why == "Apple M3 Pro: 12 CPUs"
    assert lines["caches"].why.startswith("L1d 64 KiB, L2 4 MiB; lines of 128 bytes: ")
    assert lines["caches"].state is ATTENTION
    assert lines["page size"].why == "16 KiB"
    assert lines["memory"].why == "18 GiB"
    assert lines["start method"].state is ATTENTION
    assert lines["PyTorch"].why.endswith("sees the GPU of this Mac (MPS)")
    for topic in ("huge pages", "NUMA", "memory limit", "shared memory", "locked memory"):
        assert (lines[topic].state, lines[topic].why) == (UNKNOWN, NOT_HERE.reason)


class _NvmlError(Exception):
    pass


def _nvml(fails: bool) -> SimpleNamespace:
    def init() -> None:
        if fails:
            raise _NvmlError("driver not loaded")

    return SimpleNamespace(
        NVMLError=_NvmlError,
        nvmlInit=init,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda handle: f"RTX {handle}",
    )


@pytest.mark.parametrize(("fails", "gpus"), [(False, GOOD), (True, UNKNOWN)])
def test_windows_with_the_libraries(fails: bool, gpus: State) -> None:
    memory = SimpleNamespace(total=32 << 30, available=20 << 30)
    swap = SimpleNamespace(total=4 << 30, free=4 << 30)
    libraries = {
        "psutil": SimpleNamespace(virtual_memory=lambda: memory, swap_memory=lambda: swap),
        "cpuinfo": SimpleNamespace(get_cpu_info=lambda: {"brand_raw": "AMD Ryzen 9"}),
        "pynvml": _nvml(fails),
    }
    host = Host(platform="win32", cpu_count=24, start_method="spawn", library=libraries.__getitem__)
    lines = said(host, CUDA_BUILD)

    assert lines["CPUs"].why == "AMD Ryzen 9: 24 CPUs"
    assert lines["memory"].why == "32 GiB, 20 GiB available"
    assert lines["swap"].why == "4 GiB, unused"
    assert lines["GPUs"].state is gpus
    assert lines["start method"].state is ATTENTION
    assert lines["caches"].why == NOT_HERE.reason


def test_windows_without_the_libraries() -> None:
    lines = said(Host(platform="win32", cpu_count=24, start_method="spawn"))

    assert lines["CPUs"].why == "24 CPUs"
    assert lines["memory"].state is UNKNOWN
    assert "psutil is not installed" in lines["memory"].why
