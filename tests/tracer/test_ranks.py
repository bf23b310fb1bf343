"""Two processes that talk to each other, each traced, and their evidence joined."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

pytest.importorskip("torch")

import torch

from tests.tracer.command import Command
from tests.tracer.programs import schema

if not torch.distributed.is_available():
    pytest.skip("this torch is built without distributed", allow_module_level=True)

MEET = """\
import os, pathlib, torch, torch.distributed as dist

meeting = pathlib.Path("meeting").absolute().as_uri()
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
images = torch.ones(4, 16, 64, 32)
"""
WORK = """\
def work(images):
    for _ in range(2 + rank):
        order = (0, 2, 3, 1) if rank == 0 else (0, 3, 2, 1)
        images.permute(order).reshape(-1, 16)
    total = images.sum()
    dist.all_reduce(total)
    return total

"""
TRACED = MEET + WORK + "assert work(images) == 2 * 131072\ndist.destroy_process_group()\n"
GATHERING = (
    MEET
    + "import json, memlint\nfrom memlint.tracer.evidence_file import document\n"
    + WORK
    + "with memlint.trace(quiet=True, replay=False) as trace:\n    work(images)\n"
    + "whole = trace.gather()\n"
    + "text = json.dumps(document(whole.meta, whole.findings, whole.sites))\n"
    + "pathlib.Path(f'whole{rank}.json').write_text(text)\n"
    + "dist.destroy_process_group()\n"
)


def run_both(command: Command, *arguments: str) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, *arguments],
            cwd=command.folder,
            env={**command.environment, "RANK": rank, "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ("0", "1")
    ]
    try:
        for process in processes:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
    finally:
        for process in processes:
            process.kill()


def test_the_ranks_of_a_traced_program_are_merged(tmp_path: Path) -> None:
    command = Command(tmp_path)
    command.write("program.py", TRACED)
    options = ("trace", "--no-replay", "-q", "-o", "out.json", "program.py")
    run_both(command, "-m", "memlint", *options)
    command.memlint("merge", "out.rank1.json", "out.rank0.json", "-o", "whole.json")
    check(command, "whole.json")


def test_ranks_gather_their_evidence(tmp_path: Path) -> None:
    command = Command(tmp_path)
    command.write("program.py", GATHERING)
    run_both(command, "program.py")
    check(command, "whole0.json")
    assert command.load("whole0.json") == command.load("whole1.json")


def check(command: Command, name: str) -> None:
    whole = command.load(name)
    jsonschema.validate(whole, schema())
    [copy] = [one for one in whole["findings"] if one["code"] == "MEM312"]
    ranks = copy["evidence"]["ranks"]
    assert (ranks["all"], ranks["seen"]) == ([0, 1], [0, 1])
    assert (ranks["max"]["count"], ranks["median"]["count"]) == (3, 2.5)
    assert ranks["other_layouts"] == [1]
    clones = [one for one in whole["sites"] if one["operation"] == "aten.clone.default"]
    assert [one["count"] for one in clones] == [5]


LEAVING = """\
import weakref, torch, torch.distributed as dist, memlint

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
group = weakref.ref(dist.group.WORLD)
with memlint.trace(quiet=True, replay=False):
    weight = torch.nn.Parameter(torch.ones(3))
    torch.optim.SGD([weight], lr=0.1).step()
    dist.all_reduce(weight.detach())
    torch.distributed.nn.all_reduce(torch.ones(3))
dist.destroy_process_group()
assert group() is None
"""


def test_the_process_group_of_a_traced_program_can_be_destroyed(tmp_path: Path) -> None:
    """Else its threads outlive the interpreter, and now and then abort the process."""
    command = Command(tmp_path)
    command.write("program.py", LEAVING)
    done = command.python("program.py")
    assert done.returncode == 0, done.stderr
