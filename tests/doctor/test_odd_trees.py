"""Files that are missing, empty, damaged or not to be read: each is a fact of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlint.doctor.cpu_list import list_text, parse_list
from memlint.doctor.examine import examine
from memlint.doctor.facts.cgroups import read_cpu_quota, read_memory_limit
from memlint.doctor.facts.cpus import read_cpus
from memlint.doctor.facts.devices import read_devices
from memlint.doctor.facts.limits import read_locked
from memlint.doctor.facts.memory import read_memory
from memlint.doctor.facts.nodes import Node, read_nodes
from memlint.doctor.facts.pages import read_transparent
from memlint.doctor.host import Host
from memlint.doctor.lines import State
from memlint.doctor.machine import read_machine
from memlint.doctor.sizes import parse_size, size_text
from memlint.doctor.unknown import Unknown
from tests.doctor import machines
from tests.doctor.planting import (
    limits,
    meminfo,
    node,
    plant,
    status,
    transparent,
    unified,
)

NAMES = ("server", "laptop", "container", "old_container", "wsl")
DAMAGE = {
    "empty": b"",
    "white space": b" \n\n",
    "garbage": b"\xff\xfe\x00:,-[]% [x] max max max 99999999999999999999999999\n",
    "huge": b"9" * 5000,
    "negative": b"-7\n",
    "zero": b"0\n",
    "a range turned round": b"9-3\n",
    "long": b"a: b\n" * 10_000,
}


def planted(name: str, root: Path) -> Host:
    if name == "server":  # few CPUs: it is read some hundred times
        return machines.server(root, cores=1)
    if name == "container":
        return machines.container(root, cpus=2)
    host: Host = getattr(machines, name)(root)
    return host


def files_of(root: Path) -> list[Path]:
    """All files of a sample, and of the CPUs the first."""
    found = (path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink())
    return [path for path in found if "/cpu/cpu" not in str(path) or "/cpu/cpu0/" in str(path)]


def check_sane(host: Host) -> None:
    lines = examine(read_machine(host))
    assert len({line.topic for line in lines}) == len(lines)
    assert all(line.why.strip() and "\n" not in line.why for line in lines)
    assert all(line.command != "" for line in lines)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_no_damaged_file_ends_in_an_error(name: str, damage: str, tmp_path: Path) -> None:
    host = planted(name, tmp_path)
    for path in files_of(tmp_path):
        before = path.read_bytes()
        path.write_bytes(DAMAGE[damage])
        check_sane(host)
        path.write_bytes(before)


@pytest.mark.parametrize("name", NAMES)
def test_no_missing_or_unreadable_file_ends_in_an_error(name: str, tmp_path: Path) -> None:
    host = planted(name, tmp_path)
    for path in files_of(tmp_path):
        before = path.read_bytes()
        path.unlink()
        check_sane(host)
        path.mkdir()  # reading it fails also for those who may read everything
        check_sane(host)
        path.rmdir()
        path.write_bytes(before)


@pytest.mark.parametrize("name", NAMES)
def test_no_missing_folder_ends_in_an_error(name: str, tmp_path: Path) -> None:
    host = planted(name, tmp_path / "root")
    folders = sorted({path.parent for path in files_of(tmp_path / "root")})
    for folder in folders:
        away = tmp_path / "away"
        folder.rename(away)
        check_sane(host)
        away.rename(folder)


def test_an_empty_system_is_unknown_in_what_files_tell(tmp_path: Path) -> None:
    lines = {line.topic: line for line in examine(read_machine(Host(root=tmp_path)))}

    told_by_files = {"CPUs", "caches", "huge pages", "reserved pages", "NUMA", "GPUs", "memory"}
    told_by_files |= {"swap", "overcommit", "memory limit", "CPU limit", "threads"}
    told_by_files |= {"locked memory"}
    assert {t for t, line in lines.items() if line.state is State.UNKNOWN} >= told_by_files
    assert "bad" not in {line.state.value for t, line in lines.items() if t in told_by_files}


def test_a_file_that_may_not_be_read_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/sys/kernel/mm/transparent_hugepage/enabled"
    plant(tmp_path, transparent("always", "madvise"))
    opened = Path.open

    def refuse(self: Path, *arguments: object, **options: object) -> object:
        if str(self).endswith(path):
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)

    assert read_transparent(Host(root=tmp_path)).mode == Unknown(f"{path}: permission denied")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0", {0}),
        ("0-3,8,10-11", {0, 1, 2, 3, 8, 10, 11}),
        ("0-3, 8", {0, 1, 2, 3, 8}),
        ("5-5", {5}),
        ("", set()),
        ("0-65535", set(range(65536))),
    ],
)
def test_lists_of_cpus(text: str, numbers: set[int]) -> None:
    assert parse_list(text, "p") == numbers


@pytest.mark.parametrize(
    "text", ["x", "3-1", "1-", "-1", "0-65536", "0-999999999999", "1;2", "1-2-3", "٣", "1.5"]
)
def test_what_is_no_list(text: str) -> None:
    assert parse_list(text, "p") == Unknown("p: not a list of numbers")


@pytest.mark.parametrize(
    ("numbers", "text"),
    [(set(), ""), ({3}, "3"), ({0, 1, 2, 8, 10, 11}, "0-2,8,10-11")],
)
def test_lists_are_written_as_the_kernel_writes_them(numbers: set[int], text: str) -> None:
    assert list_text(numbers) == text
    assert parse_list(text, "p") == numbers


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1310720, "1.25 MiB"),
        (38535168, "36.8 MiB"),
        ((1 << 20) - 1, "1 MiB"),
        (110100480, "105 MiB"),
        (1 << 40, "1 TiB"),
        (1 << 62, "4096 PiB"),
    ],
)
def test_sizes_are_shown_in_binary_units(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(("text", "size"), [("48K", 49152), ("64", 64), ("2M", 1 << 21)])
def test_sizes_of_caches(text: str, size: int) -> None:
    assert parse_size(text, "p") == size


@pytest.mark.parametrize("text", ["", "K", "1.5M", "-4K", "9" * 30 + "K", "32 KB"])
def test_what_is_no_size(text: str) -> None:
    assert parse_size(text, "p") == Unknown("p: not a size")


def test_cpus_that_are_offline_cannot_be_used(tmp_path: Path) -> None:
    plant(tmp_path, {"/sys/devices/system/cpu/online": "0-1,4\n"} | status("0-7"))

    cpus = read_cpus(Host(root=tmp_path, cpu_count=8))

    assert cpus.allowed == {0, 1, 4}
    assert cpus.usable == 3


def test_a_node_may_lack_cpus_or_memory(tmp_path: Path) -> None:
    plant(tmp_path, node(0, "0-3", 1000) | node(2, "", 500))
    (tmp_path / "sys/devices/system/node/node2/meminfo").write_text("")

    first, second = read_nodes(Host(root=tmp_path))  # type: ignore[misc]

    assert first == Node(0, frozenset({0, 1, 2, 3}), 1000 * 1024)
    assert second.cpus == frozenset()
    assert isinstance(second.memory, Unknown)


def test_a_setting_of_the_size_goes_before_the_one_above_it(tmp_path: Path) -> None:
    plant(tmp_path / "own", transparent("always", "madvise", own="never"))
    plant(tmp_path / "inherit", transparent("always", "madvise"))

    assert read_transparent(Host(root=tmp_path / "own")).mode == "never"
    assert read_transparent(Host(root=tmp_path / "inherit")).mode == "always"


@pytest.mark.parametrize(
    ("text", "limit"),
    [("unlimited", None), ("65536", 65536), ("0", 0)],
)
def test_limits_of_locked_memory(text: str, limit: int | None, tmp_path: Path) -> None:
    plant(tmp_path, limits(text))

    assert read_locked(Host(root=tmp_path)).limit == limit


@pytest.mark.parametrize(
    ("capabilities", "exempt"),
    [("0000000000004000", True), ("000001ffffffffff", True), ("00000000a80425fb", False)],
)
def test_a_process_with_the_capability_is_exempt(
    capabilities: str, exempt: bool, tmp_path: Path
) -> None:
    plant(tmp_path, limits("65536") | status("0", capabilities=capabilities))

    assert read_locked(Host(root=tmp_path)).exempt is exempt


def test_the_tightest_limit_above_a_group_counts(tmp_path: Path) -> None:
    top = "/sys/fs/cgroup"
    plant(
        tmp_path,
        unified("/a/b/c")
        | {
            f"{top}/a/memory.max": "4000\n",
            f"{top}/a/memory.current": "3000\n",
            f"{top}/a/memory.stat": "inactive_file 1000\n",
            f"{top}/a/memory.events": "oom_kill 7\n",
            f"{top}/a/b/memory.max": "9000\n",
            f"{top}/a/b/memory.high": "5000\n",
            f"{top}/a/b/c/memory.max": "max\n",
            f"{top}/a/cpu.max": "max 100000\n",
            f"{top}/a/b/cpu.max": "50000 25000\n",
            f"{top}/a/b/cpu.stat": "nr_periods 4\nnr_throttled 1\n",
            f"{top}/a/b/c/cpu.max": "300000 100000\n",
        },
    )
    host = Host(root=tmp_path)

    memory, quota = read_memory_limit(host), read_cpu_quota(host)

    assert (memory.limit, memory.used, memory.kills) == (4000, 2000, 7)
    assert memory.throttled_at == 5000
    assert (quota.cpus, quota.period, quota.periods, quota.stopped) == (2.0, 0.025, 4, 1)


@pytest.mark.parametrize("path", ["/", "/../../other", "/not/mounted"])
def test_a_group_that_is_not_shown_is_read_where_it_is_mounted(path: str, tmp_path: Path) -> None:
    files = unified(path, root="/kubepods/c1") | {"/sys/fs/cgroup/memory.max": "4000\n"}
    plant(tmp_path, files)

    assert read_memory_limit(Host(root=tmp_path)).limit == 4000


@pytest.mark.parametrize(
    ("text", "limit"), [("9223372036854771712", None), ("-1", None), ("4096", 4096)]
)
def test_no_limit_in_version_1_is_a_large_number(
    text: str, limit: int | None, tmp_path: Path
) -> None:
    host = machines.old_container(tmp_path)
    (tmp_path / "sys/fs/cgroup/memory/memory.limit_in_bytes").write_text(f"{text}\n")

    assert read_memory_limit(host).limit == limit


@pytest.mark.parametrize(
    "text", ["", "100000", "100000 0", "0 100000", "x 100000", "1 2 3", "-5 100000"]
)
def test_what_is_no_quota(text: str, tmp_path: Path) -> None:
    host = machines.container(tmp_path)
    (tmp_path / "sys/fs/cgroup/cpu.max").write_text(f"{text}\n")

    assert isinstance(read_cpu_quota(host).cpus, Unknown)


def test_a_limit_that_cannot_be_read_is_not_taken_for_none(tmp_path: Path) -> None:
    host = machines.container(tmp_path)
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("a lot\n")

    assert read_memory_limit(host).limit == Unknown("/sys/fs/cgroup/memory.max: not a number")


def test_both_versions_at_once(tmp_path: Path) -> None:
    """A hybrid system: the controllers are those of version 1, version 2 only keeps track."""
    plant(
        tmp_path,
        {
            "/proc/self/cgroup": "4:memory:/job\n1:cpu:/\n0::/elsewhere\n",
            "/proc/self/mountinfo": (
                "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
                "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
                "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
            ),
            "/sys/fs/cgroup/memory/job/memory.limit_in_bytes": "5000\n",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "/sys/fs/cgroup/unified/elsewhere/memory.max": "1\n",
        },
    )
    host = Host(root=tmp_path)

    assert read_memory_limit(host).limit == 5000
    assert read_cpu_quota(host).cpus is None


def test_devices_that_compute_nothing_do_not_count(tmp_path: Path) -> None:
    devices = read_devices(machines.server(tmp_path))

    assert isinstance(devices.gpus, tuple)
    assert isinstance(devices.cards, tuple)
    assert [gpu.node for gpu in devices.gpus] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [card.names for card in devices.cards] == [("ib0",), ("ib1",), ("ib2",), ("ib3",)]


def test_memory_of_a_large_machine(tmp_path: Path) -> None:
    plant(tmp_path, meminfo(1 << 36, 1 << 35))

    assert read_memory(Host(root=tmp_path)).total == 1 << 46


def test_a_broken_link_is_no_device(tmp_path: Path) -> None:
    machines.wsl(tmp_path)
    (tmp_path / "sys/bus/pci/devices/0000:01:00.0").symlink_to("nowhere")

    devices = read_devices(Host(root=tmp_path))

    assert devices.gpus == ()
    assert devices.paravirtual


def test_samples_are_whole(tmp_path: Path) -> None:
    """What the damaging tests go through is more than a handful of files."""
    for name in NAMES:
        planted(name, tmp_path / name)
        assert len(files_of(tmp_path / name)) > 15
