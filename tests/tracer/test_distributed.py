"""Models that are spread over two processes train the same, bit by bit, under the tracer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from tests.tracer.command import Command
from tests.tracer.test_ranks import run_both

if not torch.distributed.is_available():
    pytest.skip("this torch is built without distributed", allow_module_level=True)

TRAINING = """\
import contextlib, hashlib, json, os, pathlib, sys
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel
import memlint

rank = int(os.environ["RANK"])
meeting = pathlib.Path("meeting").absolute().as_uri()
dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))


def net():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 64))


def replicated():
    return DistributedDataParallel(net(), bucket_cap_mb=1)


def sharded():
    from torch.distributed.fsdp import fully_shard

    model = net()
    for layer in (model[0], model[3]):
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def split():
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, RowwiseParallel, parallelize_module,
    )

    return parallelize_module(net(), mesh, {"0": ColwiseParallel(), "3": RowwiseParallel()})


def digest(value):
    local = value.to_local() if hasattr(value, "to_local") else value
    numbers = local.detach().contiguous().numpy().tobytes()
    return [list(local.stride()), hashlib.sha256(numbers).hexdigest()]


def train(make, watched):
    model = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    torch.manual_seed(rank)
    kept = []
    with memlint.trace(quiet=True, replay=False) if watched else contextlib.nullcontext():
        for _ in range(3):
            loss = model(torch.randn(32, 64)).square().mean()
            loss.backward()
            optimizer.step()
            kept += [digest(loss), *(digest(one.grad) for one in model.parameters())]
            optimizer.zero_grad()
    return [*kept, *map(digest, model.parameters()), digest(torch.get_rng_state())]


results = {}
for make in (replicated, sharded, split):
    if make is sharded and torch.__version__ < "2.6":
        continue  # fully_shard had another home
    results[make.__name__] = [train(make, watched) for watched in (False, True)]
pathlib.Path(f"results{rank}.json").write_text(json.dumps(results))
dist.destroy_process_group()
"""


def test_models_that_are_spread_train_the_same(tmp_path: Path) -> None:
    command = Command(tmp_path)
    command.write("program.py", TRAINING)
    run_both(command, "program.py")
    for rank in (0, 1):
        results = json.loads((tmp_path / f"results{rank}.json").read_text("utf-8"))
        assert {"replicated", "split"} <= set(results)
        for name, (bare, watched) in results.items():
            assert watched == bare, name
