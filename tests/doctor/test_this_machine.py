"""What is said of the machine that runs the tests, against what others say of it."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from memlint.doctor.examine import examine
from memlint.doctor.host import Host, this_host
from memlint.doctor.machine import Machine, read_machine
from memlint.doctor.unknown import Unknown
from tests.doctor.test_odd_trees import check_sane

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and /sys")


@pytest.fixture(scope="module")
def host() -> Host:
    return this_host()


@pytest.fixture(scope="module")
def machine(host: Host) -> Machine:
    return read_machine(host)


def getconf(name: str) -> int:
    return int(subprocess.run(["getconf", name], capture_output=True, check=True).stdout)


def test_it_is_examined_without_errors(host: Host) -> None:
    check_sane(host)


def test_cpus(machine: Machine) -> None:
    assert machine.cpus.allowed == os.sched_getaffinity(0)
    assert machine.cpus.usable == len(os.sched_getaffinity(0))
    assert isinstance(machine.cpus.online, frozenset)
    assert len(machine.cpus.online) == os.cpu_count()


def test_affinity_of_a_bound_process() -> None:
    cpu = min(os.sched_getaffinity(0))
    code = (
        "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\n"
        "from memlint.doctor.host import this_host\n"
        "from memlint.doctor.facts.cpus import read_cpus\n"
        "print(read_cpus(this_host()).usable)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(cpu)], capture_output=True, check=True)

    assert int(done.stdout) == 1


def test_memory(machine: Machine) -> None:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    assert machine.memory.total == pages


def test_page_size(host: Host) -> None:
    assert host.page_size == getconf("PAGESIZE")


def test_caches(machine: Machine) -> None:
    if isinstance(machine.caches, Unknown):
        pytest.skip(machine.caches.reason)
    size, line = getconf("LEVEL1_DCACHE_SIZE"), getconf("LEVEL1_DCACHE_LINESIZE")
    if not size:
        pytest.skip("the C library does not know the caches")

    assert (size, line) in {(c.size, c.line) for c in machine.caches if c.level == 1}


def test_locked_memory(machine: Machine) -> None:
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]

    assert machine.locked.limit == (None if limit == resource.RLIM_INFINITY else limit)


def test_shared_memory(machine: Machine) -> None:
    found = machine.shared.room
    if isinstance(found, Unknown):
        pytest.skip(found.reason)
    stat = os.statvfs("/dev/shm")

    assert found.total == stat.f_blocks * stat.f_frsize


def test_the_mode_of_huge_pages(machine: Machine) -> None:
    folder = Path("/sys/kernel/mm/transparent_hugepage")
    if not folder.exists():
        pytest.skip("a kernel without them")
    size = int((folder / "hpage_pmd_size").read_text()) // 1024
    own = folder / f"hugepages-{size}kB/enabled"
    inherits = not own.exists() or "[inherit]" in own.read_text()
    deciding = folder / "enabled" if inherits else own

    assert f"[{machine.transparent.mode}]" in deciding.read_text()


def test_the_limit_of_the_control_group(machine: Machine) -> None:
    """The mounts are searched here, the tree of groups is walked there."""
    groups = Path("/proc/self/cgroup").read_text()
    first = re.search(r"^\d+:(?:[\w=,]+,)?memory(?:,[\w=,]+)?:(\S+)$", groups, re.MULTILINE)
    if first is not None:
        folder, name = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"
        group = first[1]
    else:
        folder, name = Path("/sys/fs/cgroup"), "memory.max"
        second = re.search(r"^0::(\S+)$", groups, re.MULTILINE)
        group = second[1] if second else "/"
    path = folder / group.lstrip("/")
    if not path.is_dir():
        pytest.skip("the groups are mounted in some other way")
    texts = [
        (parent / name).read_text().strip()
        for parent in (path, *path.parents)
        if (parent / name).exists()
    ]
    limits = [int(text) for text in texts if text != "max" and int(text) < 1 << 62]

    assert machine.memory_limit.limit == min(limits, default=None)


def test_every_topic_has_a_line(machine: Machine) -> None:
    topics = {line.topic for line in examine(machine)}

    assert {"CPUs", "caches", "huge pages", "NUMA", "GPUs", "memory", "threads"} <= topics
    assert {"shared memory", "locked memory", "start method", "PyTorch"} <= topics
