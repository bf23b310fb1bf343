"""What workers come to own of a data set: told from sizes, and from real processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from memlint.linter.rules import all_rules
from memlint.tracer.callsite import CallSites
from memlint.tracer.observe import observe
from memlint.tracer.records import Site, WorkerMemory
from memlint.tracer.sightings import Sighting
from memlint.tracer.worker_memory import WorkersMemory, own_bytes
from tests.tracer.command import Command

MIB = 1 << 20
SITE = Site("train.py", "train", 3)
RULE = all_rules().rules["MEM207"]

PROGRAM = """\
from torch.utils.data import DataLoader, Dataset


class Names(Dataset):
    def __init__(self, count):
        self.names = [f"a picture of what is there, number {n}" * 3 for n in range(count)]

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return sum(map(len, self.names[index::64]))


def read(names):
    for batch in DataLoader(names, batch_size=1, num_workers=2, multiprocessing_context="fork"):
        batch.sum()


read(Names(COUNT))
"""


def told(*records: WorkerMemory) -> list[Sighting]:
    return [one for one in observe([RULE()], [], records) if one.rule.code == "MEM207"]


def test_growth_is_told_with_its_sizes() -> None:
    (one,) = told(WorkerMemory(SITE, 2, 60, 80 * MIB, 240 * MIB))
    assert one.site == SITE
    assert "came to own 120 MiB where it was 40 MiB 60 batches before" in one.message
    assert one.nbytes == 160 * MIB


@pytest.mark.parametrize(("first", "last"), [(80, 120), (1000, 1100), (240, 80)])
def test_little_growth_is_none(first: int, last: int) -> None:
    assert told(WorkerMemory(SITE, 2, 60, first * MIB, last * MIB)) == []


def noted(*samples: tuple[int, tuple[int, ...]], sizes: dict[int, list[int]]) -> list[WorkerMemory]:
    sites = CallSites([], (), ())
    memory = WorkersMemory(sites, lambda process: sizes[process].pop(0))
    spot = sites.here(1)
    for given, processes in samples:
        memory.note(spot, given, processes)
    return list(memory.records())


def test_growth_counts_from_when_each_worker_has_sent_a_batch() -> None:
    samples = [(1, (7, 8)), (2, (7, 8)), (4, (7, 8)), (8, (7, 8))]
    (one,) = noted(*samples, sizes={7: [0, 10, 20, 30], 8: [0, 10, 15, 35]})
    assert (one.workers, one.batches, one.first, one.last) == (2, 6, 20, 65)


def test_of_several_iterators_the_one_counts_whose_workers_grew_most() -> None:
    samples = [(1, (7,)), (2, (7,)), (1, (8,)), (2, (8,)), (1, (9,)), (2, (9,))]
    (one,) = noted(*samples, sizes={7: [10, 11], 8: [10, 15], 9: [10, 12]})
    assert (one.first, one.last) == (10, 15)


def test_processes_that_are_gone_are_left_out() -> None:
    assert own_bytes(2**30) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what processes share")
@pytest.mark.parametrize(("count", "codes"), [("600_000", ["MEM207"]), ("600", [])])
def test_forked_workers_come_to_own_the_objects_that_they_read(
    tmp_path: Path, count: str, codes: list[str]
) -> None:
    command = Command(tmp_path)
    command.write("program.py", PROGRAM.replace("COUNT", count))
    command.memlint("trace", "-q", "--no-replay", "-o", "out.json", "program.py")
    found = command.load("out.json")["findings"]
    assert [one["code"] for one in found if one["code"] == "MEM207"] == codes
    assert all(one["location"]["line"] == 16 for one in found if one["code"] == "MEM207")
