"""MEM405 nn-dataparallel."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import ClassVar

from memlint.analysis.conditions import named_conditions, names_around, unwrapped_again
from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.places.wrapping import WRAPPING, may_wrap
from memlint.analysis.values import Sequence, Value
from memlint.findings import Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, Needs, Rule

WRAPPERS = frozenset({"torch.nn.parallel.DataParallel", "torch_geometric.nn.DataParallel"})
FUNCTIONS = frozenset(
    {"torch.nn.parallel.data_parallel", "torch.nn.parallel.data_parallel.data_parallel"}
)
# What shows that the program trains with a process for each GPU, too.
PROCESSES = late_pattern(
    r"(DistributedDataParallel|DDP|FullyShardedDataParallel|FSDP|fully_shard|Accelerator)\s*\(|"
    r"\bdeepspeed\.|\bhorovod\b|\bhvd\."
)
OPTION = late_pattern(r"data_?parallel|(^|_)dp(_|$|\d)", re.IGNORECASE)
SCRIPT = late_pattern(r"ArgumentParser\(|__name__\s*==|\bclick\.|\babsl\b|\bfire\.")


class NnDataparallel(Rule):
    """A model is spread over GPUs by threads of one process, with nn.DataParallel.

    ## What it does

    Reports the construction of `torch.nn.DataParallel` and calls of
    `torch.nn.parallel.data_parallel`.

    ## Why it is slow

    `DataParallel` runs one thread per GPU in a single Python process. In every forward pass it
    scatters the batch from the first GPU, copies all parameters from there to the others, and
    gathers the outputs back; the threads share one interpreter lock. The first GPU holds the
    gathered outputs and the gradients of all, so that it runs out of memory before the others.
    PyTorch's own guide says of `DistributedDataParallel`, one process per GPU, that it "offers
    much better performance and scaling". How much depends on the model and the number of GPUs;
    with one visible GPU the wrapper does nothing.

    ## When it is silent

    - `isinstance(model, nn.DataParallel)` and other places where a wrapped model is unwrapped;
    - one device: `device_ids=[0]`;
    - a model that is wrapped only so that a checkpoint fits, and unwrapped after that;
    - programs that use `DistributedDataParallel`, FSDP, DeepSpeed, Horovod or Accelerate beside
      it: the choice is there already;
    - libraries that offer it as an option by its name (a strategy called "dp").

    ## Example

    ```python
    import torch
    from torch import nn


    def build(net):
        if torch.cuda.device_count() > 1:
            net = nn.DataParallel(net)
        return net.cuda()
    ```

    ## Use instead

    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel


    def build(net, local_rank):
        torch.cuda.set_device(local_rank)
        return DistributedDataParallel(net.cuda(), device_ids=[local_rank])
    ```

    ## Fix safety

    There is no fix: `DistributedDataParallel` needs a launcher (`torchrun`), a process group, a
    `DistributedSampler`, and a batch size per process.

    ## How to confirm

    Look for `Broadcast`, `Scatter` and `Gather` in a profile of a step, and at the memory of the
    first GPU against that of the others.

    ## References

    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torch.nn.DataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html)
    - [Use nn.parallel.DistributedDataParallel instead of multiprocessing or nn.DataParallel](https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-nn-ddp-instead)
    """

    code = "MEM405"
    name = "nn-dataparallel"
    severity = Severity.INFO
    needs = Needs(
        {"DataParallel", "data_parallel"},
        {"torch"},
        units=[WRAPPING],
        nearest=True,
        places=may_wrap,
    )
    calls: ClassVar[frozenset[str]] = WRAPPERS | FUNCTIONS
    needs_device = "cuda"

    _tree: ast.Module
    _silent: bool
    _script: bool

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """See what else the program uses."""
        self._tree = start.tree
        self._silent = PROCESSES.search(start.source.text) is not None
        self._script = SCRIPT.search(start.source.text) is not None
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """A model that is wrapped."""
        if self._silent or _single(called.args.get("device_ids", _place(called))):
            return
        if any(map(OPTION.search, names_around(called.node, self._tree))):
            return
        named = any(map(OPTION.search, named_conditions(called.node, self._tree)))
        if (named and not self._script) or unwrapped_again(called.node, self._tree):
            return
        shown = "data_parallel" if called.name in FUNCTIONS else "nn.DataParallel"
        yield self.finding(
            called.node,
            f"`{shown}` drives all GPUs from one process: with more than one it copies all "
            "parameters from the first GPU to the others in every forward pass and gathers the "
            "outputs there, whose memory fills first",
            "use `DistributedDataParallel` with a process for each GPU (`torchrun "
            "--nproc-per-node=gpu`)",
        )


def _place(called: Called) -> int:
    return 2 if called.name in FUNCTIONS else 1


def _single(ids: Value) -> bool:
    return isinstance(ids, Sequence) and ids.items is not None and len(ids.items) == 1
