"""NUMA nodes: which are used, how they are told to the system, and what numbers make of a claim."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import numpy as np
import pytest

from memlint.bench.experiments.numa_memory import NumaMemory, node_answer, points
from memlint.bench.lab import Lab
from memlint.bench.nodes import CannotBind, mask, memory_of, on_cpus_of, usable_nodes
from memlint.bench.plan import Plan
from memlint.bench.results import Standing
from memlint.doctor.host import Host, this_host

LINUX = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"),
    reason="uses a system call of Linux",
)


def host(root: Path, nodes: dict[int, tuple[str, int]]) -> Host:
    for number, (cpus, kilobytes) in nodes.items():
        folder = root / f"sys/devices/system/node/node{number}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(cpus + "\n", "ascii")
        (folder / "meminfo").write_text(f"Node {number} MemTotal: {kilobytes} kB\n", "ascii")
    return Host(root)


def test_the_node_of_the_thread_comes_first(tmp_path: Path) -> None:
    nodes = {0: ("0-3", 1 << 20), 1: ("4-7", 1 << 20), 2: ("", 1 << 20), 3: ("8", 0)}
    found = usable_nodes(host(tmp_path, nodes), frozenset({5}))
    assert [node.number for node in found] == [1, 0, 2]


def test_a_system_without_nodes_has_none(tmp_path: Path) -> None:
    assert usable_nodes(Host(tmp_path), frozenset({0})) == []


def test_nodes_are_bits_in_words() -> None:
    assert mask([]) == [0]
    assert mask([1]) == [2]
    assert mask([0, 64]) == [1, 1]


@LINUX
def test_memory_of_this_node_can_be_had() -> None:
    near, *_ = usable_nodes(this_host(), frozenset(os.sched_getaffinity(0)))
    before = os.sched_getaffinity(0)
    with on_cpus_of(near):
        try:
            memory = memory_of(near.number, 1 << 20)
        except CannotBind as error:
            pytest.skip(str(error))
        assert os.sched_getaffinity(0) <= before
    assert os.sched_getaffinity(0) == before
    assert memory.nbytes == 1 << 20


@LINUX
def test_a_node_that_is_not_there_is_said() -> None:
    with pytest.raises(CannotBind):
        memory_of(1000, 1 << 20)


def test_the_affinity_comes_back_after_a_failure() -> None:
    near = usable_nodes(this_host(), frozenset(os.sched_getaffinity(0)))[0]
    before = os.sched_getaffinity(0)
    with pytest.raises(ZeroDivisionError), on_cpus_of(near):
        _ = 1 // 0
    assert os.sched_getaffinity(0) == before


def test_latencies_up_to_the_whole_memory() -> None:
    pytest.importorskip("numba")
    lab = Lab(Plan(budget=60.0))
    lab.begin(6000)
    found = list(points(lab, np.zeros((4 << 20) // 8, np.uint64)))
    assert [point.x for point in found] == [1 << 20, 2 << 20, 4 << 20]


def test_how_much_slower_another_node_is() -> None:
    assert node_answer(80e-9, 140e-9).standing is Standing.HOLDS
    assert node_answer(80e-9, 85e-9).standing is Standing.DOES_NOT_HOLD
    assert node_answer(80e-9, 400e-9).standing is Standing.DOES_NOT_HOLD


def test_one_node_with_memory_cannot_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "memlint.bench.experiments.numa_memory.usable_nodes"
    only = usable_nodes(this_host(), frozenset(os.sched_getaffinity(0)))[:1]
    monkeypatch.setattr(module, lambda *_: only)
    (answer,) = NumaMemory().run(Lab(Plan())).answers
    assert answer.standing is Standing.UNMEASURED
