"""MEM201 missing-pin-memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlint.analysis.batches import LOADERS_THAT_FEED_CUDA
from memlint.analysis.blocking import needs_pinning
from memlint.analysis.edits import call_with_keyword
from memlint.analysis.events import LoaderBuilt, Transfer
from memlint.analysis.values import (
    Absent,
    Const,
    Unknown,
    alternatives,
    leaves,
    may_be,
)
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Confidence, Severity
from memlint.rule import Draft, DraftFix, Related, Rule
from memlint.tracer.operands import LEAST_BYTES, is_large, megabytes, move_of, spell
from memlint.tracer.records import LOADING, DeviceCopy, Operation
from memlint.tracer.sightings import Sighting

HELP = (
    "pass `pin_memory=torch.cuda.is_available()` to the loader, and `non_blocking=True` to the "
    "copies of its batches"
)


class MissingPinMemory(Rule):
    """A DataLoader feeds CUDA from pageable memory.

    ## What it does

    Reports a `torch.utils.data.DataLoader`, or a subclass of it, that is made without
    `pin_memory`, or with `pin_memory=False`, while the program moves its batches to a CUDA
    device. A device chosen by `"cuda" if torch.cuda.is_available() else "cpu"` counts as CUDA.

    ## Why it is slow

    The GPU reads host memory by DMA, which needs page-locked memory. From ordinary, pageable
    memory the driver first copies the batch into a page-locked buffer of its own and the
    calling thread waits for it; `non_blocking=True` has no effect. With `pin_memory=True` a
    thread of the loader does that copy while the previous batch is being worked on, and the
    transfer itself can overlap with kernels.

    How much that is worth depends on the batch: it matters where batches are large and the
    step is short, and may not show where computing dominates. With `num_workers=0` there is no
    such thread, the main thread would do the pinning, so the finding is only *info* and says
    that workers come first. Pinned memory costs host memory: blocks are rounded up to a power
    of two.

    ## When it is silent

    - no batch of the loader is seen to go to CUDA in this file, or its device is not known;
    - `pin_memory` is given and is not known to be `False` (a flag, a predicate, a parameter);
    - the loader takes `**options` that cannot be resolved;
    - the dataset or the collate function already yields CUDA tensors (pinning them raises), no
      tensors at all, or single numbers;
    - the batch is computed with or gathered from (`x[order]`) on the host first, so that what is
      copied is other memory;
    - the loader is made only where CUDA is not used (`if not torch.cuda.is_available(): ...`);
    - MPS, XLA and the CPU.

    ## Example

    ```python
    import torch
    from torch.utils.data import DataLoader


    def train(model, dataset):
        device = torch.device("cuda")
        loader = DataLoader(dataset, batch_size=64, num_workers=4)
        for images, labels in loader:
            model(images.to(device, non_blocking=True), labels.to(device, non_blocking=True))
    ```

    ## Use instead

    ```python
    import torch
    from torch.utils.data import DataLoader


    def train(model, dataset):
        device = torch.device("cuda")
        loader = DataLoader(
            dataset, batch_size=64, num_workers=4, pin_memory=torch.cuda.is_available()
        )
        for images, labels in loader:
            model(images.to(device, non_blocking=True), labels.to(device, non_blocking=True))
    ```

    ## Fix safety

    Safe: `pin_memory=torch.cuda.is_available()` changes no values, and nothing at all on a host
    without CUDA. It is offered where all the arguments stand in the call itself and `torch` is
    imported, and is unsafe without workers and beside a `multiprocessing_context`. Calling
    `batch.pin_memory()` in the loop instead puts the copy on the critical path; do not.

    ## How to confirm

    Look at `batch.is_pinned()` right before the copy, and at the "Pageable" host-to-device copies
    in a profile. Batches below some 64 KiB, or copies that take less than one per cent of the step,
    are not worth a change. `memlint bench missing-pin-memory` measures it on your machine, where it
    has a CUDA device.

    ## References

    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [A guide on good usage of non_blocking and pin_memory()](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    - [Memory pinning in torch.utils.data](https://docs.pytorch.org/docs/stable/data.html#memory-pinning)
    """

    code = "MEM201"
    name = "missing-pin-memory"
    severity = Severity.WARNING
    applicability = Applicability.SAFE
    needs = LOADERS_THAT_FEED_CUDA
    needs_device = "cuda"

    def check(self, loader: LoaderBuilt) -> Iterator[Draft]:
        """A loader without pinned memory whose batches go to CUDA."""
        if not needs_pinning(loader):
            return
        copy = next(t for t in loader.transfers if "cuda" in t.devices)
        literal = Const(False) in alternatives(loader.argument("pin_memory"))
        without_workers = _without_workers(loader)
        yield self.finding(
            loader.node,
            _message(loader, literal=literal, without_workers=without_workers),
            HELP,
            severity=Severity.INFO if without_workers or literal else Severity.WARNING,
            confidence=_confidence(loader),
            related=_related(loader, copy),
            fix=_fix(loader, without_workers=without_workers),
        )

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        """Batches that a loader left in pageable memory, and that go to CUDA."""
        move = move_of(operation)
        if move is None or move.target.kind != "cuda" or move.source.pinned:
            return
        if move.maker is None or move.maker.phase != LOADING or not is_large(move.source):
            return
        nbytes = move.source.array.nbytes * operation.count
        yield Sighting(
            self,
            operation.site,
            f"a loader's batch, {spell(move.source)}, goes to {move.target.device} from pageable "
            "memory: the driver copies it through a buffer of its own, and the host waits",
            "give the loader `pin_memory=True`, and the move `non_blocking=True`",
            self.severity,
            operation.count,
            operation.steps,
            nbytes,
            related=((move.maker.site, "it comes from here"),),
        )

    def observe_copies(self, copies: DeviceCopy) -> Iterator[Sighting]:
        """Large arrays that go to CUDA from pageable memory in most steps."""
        if not copies.to_device or copies.device != "cuda" or copies.pinned is not False:
            return
        each = copies.nbytes // copies.count
        if each < LEAST_BYTES or 2 * copies.steps <= copies.every:
            return
        yield Sighting(
            self,
            copies.site,
            f"{megabytes(each)} at a time go to {copies.device} from pageable memory, "
            f"{copies.seconds / copies.count * 1e3:.3g} ms each: the driver copies them through a "
            "buffer of its own, and the host waits",
            "if they come from a loader, give it `pin_memory=True`, and the move "
            "`non_blocking=True`",
            self.severity,
            copies.count,
            copies.steps,
            copies.nbytes,
        )

    @bench(
        "copies a batch to the device: what a loader's thread saves the main one",
        as_is="from pageable memory",
        alternative="from pinned memory",
        needs=("cuda",),
        sizes=Sizes("images in the batch", quick=16, full=(1, 16, 64, 256)),
    )
    def bench(self, size: Size) -> Pair:
        """A batch of images; pinning it is not part of the comparison."""
        from memlint.bench.tensors import on_host

        def from_pageable(pageable: Any, pinned: Any) -> Any:
            return pageable.to(size.device, non_blocking=True)

        def from_pinned(pageable: Any, pinned: Any) -> Any:
            return pinned.to(size.device, non_blocking=True)

        def operands() -> tuple[Any, ...]:
            batch = on_host(size.number, 3, 224, 224)
            return batch, batch.pin_memory()

        what = f"float32, {size.number} x 3 x 224 x 224"
        return Pair(from_pageable, from_pinned, operands, what, settle=size.settle)


def _without_workers(loader: LoaderBuilt) -> bool:
    workers = alternatives(loader.argument("num_workers"))
    return not loader.open and all(isinstance(w, Absent) or w == Const(0) for w in workers)


def _confidence(loader: LoaderBuilt) -> Confidence:
    """Without workers, a dataset that nobody can see into may yield CUDA tensors."""
    workers = loader.argument("num_workers")
    alone = may_be(workers, 0) or Absent() in alternatives(workers)
    unseen = any(isinstance(leaf, Unknown) for leaf in leaves(loader.batch))
    return Confidence.MEDIUM if alone and unseen else Confidence.HIGH


def _message(loader: LoaderBuilt, *, literal: bool, without_workers: bool) -> str:
    name = f"`{loader.text}`" if loader.text else f"this `{loader.cls.rpartition('.')[2]}`"
    text = f"the batches of {name} are copied to CUDA from pageable memory"
    if literal:
        text = f"pin_memory=False although the batches of {name} are copied to CUDA"
    if without_workers:
        text += (
            ", and the main process loads them: give the loader workers first, without them "
            "the pinning would run there too"
        )
    return text


def _related(loader: LoaderBuilt, copy: Transfer) -> list[Related]:
    places = [Related(copy.node, "batches go to CUDA here")]
    if loader.partial is not None:
        places.append(Related(loader.partial, "the other arguments come from here"))
    return places


def _fix(loader: LoaderBuilt, *, without_workers: bool) -> DraftFix | None:
    if not loader.direct or not loader.torch:
        return None
    value = f"{loader.torch}.cuda.is_available()"
    edit = call_with_keyword(loader.source, loader.node, "pin_memory", value)
    if edit is None:
        return None
    doubtful = without_workers or loader.argument("multiprocessing_context") != Absent()
    return DraftFix(
        f"pin the batches where CUDA is available: `pin_memory={value}`",
        (edit,),
        Applicability.UNSAFE if doubtful else Applicability.SAFE,
    )
