"""MEM202 blocking-transfer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from memlint.analysis.batches import LOADERS_THAT_FEED_CUDA
from memlint.analysis.blocking import gives_tensors, is_pinned, is_written, needs_pinning
from memlint.analysis.edits import call_with_keyword
from memlint.analysis.events import LoaderBuilt, ProgramStart, Transfer
from memlint.analysis.shown import short_text
from memlint.analysis.uses import uses_in
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Severity
from memlint.rule import Draft, DraftFix, Related, Rule
from memlint.source.model import Source
from memlint.source.project import is_foreign
from memlint.tracer.operands import is_large, move_of, spell
from memlint.tracer.records import Operation
from memlint.tracer.sightings import Sighting

HELP = "pass `non_blocking=True`; it needs a loader with `pin_memory=True`"


class BlockingTransfer(Rule):
    """The host waits for the copy of each batch.

    ## What it does

    Reports `.to(device)`, `.cuda()`, `.type(torch.cuda.FloatTensor)` and `copy_` of a batch of a
    `DataLoader` in a loop, without `non_blocking=True`, where the device is CUDA and the loader
    pins its batches, or ought to (`missing-pin-memory` then reports it).

    ## Why it is slow

    A blocking copy is queued like any other work, and then the host waits until it is done: it
    can queue no kernels meanwhile, and the device idles afterwards. Each tensor of the batch
    costs one such wait. From pinned memory, with `non_blocking=True`, the copy runs while the
    host goes on; kernels on the same stream still see it finished. How much that is worth
    depends on the step: little where one step takes long and the batch is small.

    ## When it is silent

    - `non_blocking` is given and is not known to be false;
    - the loader is known neither to pin nor to need it, or is not seen in this file;
    - the batch is computed with on the host first (`x.float().to(device)`), so that what is
      copied is other, pageable memory; so is a cut through its columns (`x[:, 1:]`);
    - outside of loops, in loops that end with their first iteration, behind `if step % 100 == 0`,
      and on other devices: asynchronous copies are only safe to CUDA;
    - a framework moves the batches.

    ## Example

    ```python
    import torch
    from torch.utils.data import DataLoader


    def train(model, dataset):
        loader = DataLoader(dataset, batch_size=64, num_workers=4, pin_memory=True)
        for images, labels in loader:
            model(images.to("cuda"), labels.cuda())
    ```

    ## Use instead

    ```python
    import torch
    from torch.utils.data import DataLoader


    def train(model, dataset):
        loader = DataLoader(dataset, batch_size=64, num_workers=4, pin_memory=True)
        for images, labels in loader:
            model(images.to("cuda", non_blocking=True), labels.cuda(non_blocking=True))
    ```

    ## Fix safety

    Safe for what a loader has just given, if nothing writes into the host's copy afterwards: the
    loader does not use that memory again before the copy is done. Unsafe where something is
    written into it, and where the batch as a whole is moved and may be an object whose `to` does
    not know `non_blocking`.

    ## How to confirm

    In a profile, look for `cudaStreamSynchronize` right after the host-to-device copies, and
    compare the time of a step with and without `non_blocking=True`. `memlint bench
    blocking-transfer` measures it on your machine, where it has a CUDA device.

    ## References

    - [A guide on good usage of non_blocking and pin_memory()](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    - [pytorch-lr-finder pull request 31](https://github.com/davidtvs/pytorch-lr-finder/pull/31)
    """

    code = "MEM202"
    name = "blocking-transfer"
    severity = Severity.INFO
    applicability = Applicability.SAFE
    needs = LOADERS_THAT_FEED_CUDA
    needs_device = "cuda"

    def __init__(self, options: dict[str, object] | None = None) -> None:
        super().__init__(options)
        self._tree: ast.Module | None = None
        self._source: Source | None = None

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Take note of the program."""
        self._tree, self._source = start.tree, start.source
        yield from ()

    def check_loader(self, loader: LoaderBuilt) -> Iterator[Draft]:
        """Copies of a loader's batches that the host waits for."""
        pinned = is_pinned(loader)
        if not pinned and not needs_pinning(loader):
            return
        for move in loader.transfers:
            if move.blocking and "cuda" in move.devices and not is_foreign(move.node):
                yield self.finding(
                    move.node,
                    _message(loader, move, pinned=pinned),
                    HELP,
                    related=_related(loader),
                    fix=self._fix(loader, move),
                )

    def _fix(self, loader: LoaderBuilt, move: Transfer) -> DraftFix | None:
        call = move.node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return None
        given = next((k.value for k in call.keywords if k.arg == "non_blocking"), None)
        if given is not None and not isinstance(given, ast.Constant):
            return None
        if self._source is None or self._tree is None:
            return None
        edit = call_with_keyword(self._source, call, "non_blocking", "True")
        if edit is None:
            return None
        doubtful = move.whole and not gives_tensors(loader.batch)
        safe = not doubtful and not is_written(call, uses_in(self._tree).scope_of(call))
        return DraftFix(
            "copy while the host goes on: `non_blocking=True`",
            (edit,),
            Applicability.SAFE if safe else Applicability.UNSAFE,
        )

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        """Copies of pinned arrays that the host waits for."""
        move = move_of(operation)
        if move is None or move.target.kind != "cuda" or not (move.source.pinned and move.waits):
            return
        if not is_large(move.source):
            return
        yield Sighting(
            self,
            operation.site,
            f"{spell(move.source)} is pinned, but the host waits until it has been copied to "
            f"{move.target.device}",
            "pass `non_blocking=True`",
            self.severity,
            operation.count,
            operation.steps,
            move.source.array.nbytes * operation.count,
        )

    @bench(
        "moves pinned batches to the device and computes with each",
        as_is="batch.to(device)",
        alternative="batch.to(device, non_blocking=True)",
        needs=("cuda",),
        sizes=Sizes("rows of a batch", quick=1024, full=(64, 1024, 16384)),
    )
    def bench(self, size: Size) -> Pair:
        """Four steps of sixteen small layers: there is work that the host could queue."""
        from memlint.bench.tensors import normal, on_host

        def steps(batches: Any, weight: Any, *, non_blocking: bool) -> Any:
            results = []
            for batch in batches:
                x = batch.to(size.device, non_blocking=non_blocking)
                for _ in range(16):
                    x = (x @ weight).relu()
                results.append(x.sum())
            return tuple(results)

        def waiting(batches: Any, weight: Any) -> Any:
            return steps(batches, weight, non_blocking=False)

        def going_on(batches: Any, weight: Any) -> Any:
            return steps(batches, weight, non_blocking=True)

        def operands() -> tuple[Any, ...]:
            batches = [on_host(size.number, 256, seed=seed).pin_memory() for seed in range(4)]
            return tuple(batches), normal(size, 256, 256) / 16

        what = f"float32, 4 batches of {size.number} x 256"
        return Pair(waiting, going_on, operands, what, settle=size.settle)


def _related(loader: LoaderBuilt) -> list[Related]:
    if is_foreign(loader.node):
        return []
    return [Related(loader.node, "the loader is made here")]


def _message(loader: LoaderBuilt, move: Transfer, *, pinned: bool) -> str:
    name = f"`{loader.text}`" if loader.text else "the loader"
    text = f"`{short_text(move.text)}` makes the host wait for the copy in each iteration"
    if pinned:
        return f"{text}, although {name} gives batches in pinned memory that need no waiting for"
    return f"{text}; with batches of {name} in pinned memory it would not have to"
