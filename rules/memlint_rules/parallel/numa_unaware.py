"""MEM407 numa-unaware."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import ClassVar

from memlint.analysis.affinity import runners
from memlint.analysis.conditions import assigned_in, names_around, scope_text, words_of
from memlint.analysis.events import Called, LoaderBuilt, ProgramStart
from memlint.analysis.uses import uses_in
from memlint.analysis.values import Absent, Const, alternatives
from memlint.analysis.walking import walk
from memlint.findings import Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, Needs, Rule

BINDS = late_pattern(r"numa|affinity|taskset|hwloc", re.IGNORECASE)
RANK = late_pattern(r"(^|_)(local_?)?rank(_id)?$|^(gpu|gpu_id|proc_id|device_id)$", re.IGNORECASE)


class NumaUnaware(Rule):
    """A process for each GPU feeds it from any socket of the machine.

    ## What it does

    Reports the `torch.cuda.set_device(rank)` of a function that runs once per rank (it is given
    to `mp.spawn`, or joins a process group) in a program that loads data with workers and binds
    no process to a NUMA node. One finding for each such function.

    ## Why it is slow

    On a machine with several sockets each GPU hangs on one of them. The scheduler places a
    process and its workers on any; pinned buffers then lie in the other socket's memory and
    batches cross the link between the sockets on their way to the GPU. PyTorch puts the gain of
    binding at "typically 1-10%", some much greater and some none. On one socket there is nothing
    to gain, and a launcher may do the binding out of sight: the rule is off by default.

    ## When it is silent

    - the program binds processes anywhere: `os.sched_setaffinity`, `cpu_affinity`, NVML's
      `nvmlDeviceSetCpuAffinity`, `numactl`, `--numa-binding`, libnuma;
    - no DataLoader with workers is made in the program;
    - `set_device` with a fixed number, and functions that are not run per rank.

    ## Example

    ```python
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch.utils.data import DataLoader


    def worker(rank, world_size, dataset, train):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        torch.cuda.set_device(rank)
        train(DataLoader(dataset, batch_size=64, num_workers=12, pin_memory=True))


    def launch(dataset, train):
        world_size = torch.cuda.device_count()
        mp.spawn(worker, args=(world_size, dataset, train), nprocs=world_size)
    ```

    ## Use instead

    ```python
    import os

    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch.utils.data import DataLoader


    def worker(rank, world_size, dataset, train, cores_near):
        os.sched_setaffinity(0, cores_near[rank])
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        torch.cuda.set_device(rank)
        train(DataLoader(dataset, batch_size=64, num_workers=12, pin_memory=True))


    def launch(dataset, train, cores_near):
        world_size = torch.cuda.device_count()
        mp.spawn(worker, args=(world_size, dataset, train, cores_near), nprocs=world_size)
    ```

    ## Fix safety

    There is no fix: which processors are near which GPU is a matter of the machine. `torchrun
    --numa-binding=node` (PyTorch 2.9) and `numactl` bind without a change of the program.

    ## How to confirm

    Compare `/sys/bus/pci/devices/<GPU>/numa_node` with the nodes of `os.sched_getaffinity(0)`,
    and run once under `numactl --cpunodebind=N --membind=N`.

    ## References

    - [NUMA binding utilities of torchrun](https://docs.pytorch.org/docs/main/elastic/numa.html)
    - [NUMA affinity for ranks](https://github.com/pytorch/pytorch/issues/115305)
    """

    code = "MEM407"
    name = "numa-unaware"
    severity = Severity.INFO
    default_on = False
    needs = Needs({"set_device("}, {"DataLoader"}, {"num_workers"}, {"rank", "RANK", "spawn"})
    calls: ClassVar[frozenset[str]] = frozenset({"torch.cuda.set_device"})
    needs_device = "cuda"

    _tree: ast.Module
    _binds: bool
    _workers: bool
    _told: set[ast.AST | None]

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """See whether the program binds processes at all."""
        self._tree = start.tree
        self._binds = any(map(BINDS.search, words_of(start.tree)))
        self._workers = False
        self._told = set()
        yield from ()

    def check_loader(self, loader: LoaderBuilt) -> Iterator[Draft]:
        """Note that there are workers."""
        given = alternatives(loader.argument("num_workers"))
        self._workers = self._workers or any(
            not isinstance(one, Absent) and one != Const(0) for one in given
        )
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """The device of a rank is set, and nothing else."""
        if self._binds or not self._workers or not isinstance(called.node, ast.Call):
            return
        if not _of_rank(called, self._tree) or called.context.function in self._told:
            return
        per_rank = "rank" in runners(called, self._tree) or "init_process_group" in scope_text(
            called.node, self._tree
        )
        if not per_rank or any("test" in name for name in names_around(called.node, self._tree)):
            return
        self._told.add(called.context.function)
        yield self.finding(
            called.node,
            "each rank takes its GPU here, but neither it nor the workers of its loader are bound "
            "to the socket that the GPU hangs on: on a machine with several, batches may cross "
            "between them (1-10 % of the time, by PyTorch's own account)",
            "launch with `torchrun --numa-binding=node`, or bind the process to the GPU's node "
            "before the loader is made",
            confidence=Confidence.MEDIUM,
        )


def _of_rank(called: Called, tree: ast.Module) -> bool:
    node = called.node
    if not isinstance(node, ast.Call) or not (node.args or node.keywords):
        return False
    shown = node.args[0] if node.args else node.keywords[0].value
    if isinstance(shown, ast.Name) and not RANK.search(shown.id):
        return any(map(_names_rank, assigned_in(uses_in(tree).scope_of(node), shown.id)))
    return _names_rank(shown)


def _names_rank(shown: ast.expr) -> bool:
    words = [
        one.id if isinstance(one, ast.Name) else one.attr
        for one in walk(shown)
        if isinstance(one, (ast.Name, ast.Attribute))
    ]
    texts = [one.value for one in walk(shown) if isinstance(one, ast.Constant)]
    return any(map(RANK.search, words)) or "LOCAL_RANK" in texts
