"""MEM208 pin-then-copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from memlint.analysis.blocking import batch_of
from memlint.analysis.events import Called, Enclosing, LoaderBuilt, ProgramStart
from memlint.analysis.placement import moves_off_host
from memlint.analysis.places.loader import may_pin_and_copy
from memlint.analysis.shown import shown
from memlint.analysis.values import (
    Absent,
    Const,
    Made,
    Value,
    alternatives,
    deps_of,
    loaders_of,
    made_of,
)
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Confidence, Severity
from memlint.rule import Draft, DraftFix, Needs, Related, Replacement, Rule
from memlint.source.model import Source

HELP = (
    "drop `.pin_memory()` here and pass `pin_memory=True` to the loader, whose thread then does "
    "it ahead of time"
)


class PinThenCopy(Rule):
    """A batch is pinned in the loop, right before it is copied.

    ## What it does

    Reports `x.pin_memory().to(device)`, or `.cuda()`, of a batch that a `DataLoader` has just
    given, in the loop over it.

    ## Why it is slow

    `pin_memory()` allocates page-locked memory and copies the batch into it while the program
    waits; only then the copy to the device starts. A plain `.to(device)` needs no such step, for
    the driver stages pageable memory by itself, in pieces, as it copies. PyTorch's guide measures
    the pinning form as up to twice as slow as the plain copy. With `pin_memory=True` a thread of
    the loader does the same work ahead of time.

    ## When it is silent

    - the tensor is no batch of a loader, or is computed from one: buffers that are pinned by hand
      for prefetching, weights that are pinned once;
    - the loader pins, or may pin, its batches: `pin_memory()` then gives them back as they are;
    - it is pinned in a collate function, in a thread, or outside of the loop.

    ## Example

    ```python
    import torch


    def train(model, loader, device):
        for x, y in loader:
            x = x.pin_memory().to(device, non_blocking=True)
            model(x, y.to(device, non_blocking=True))
    ```

    ## Use instead

    ```python
    import torch


    def train(model, loader, device):
        for x, y in loader:
            x = x.to(device, non_blocking=True)
            model(x, y.to(device, non_blocking=True))
    ```

    ## Fix safety

    Safe: the values are the same, and a copy from pageable memory is done with its source when
    the call returns.

    ## How to confirm

    Time the loop with and without the call. In a profile, `aten::pin_memory` and `cudaHostAlloc`
    stand on the main thread before each copy. `memlint bench pin-then-copy` measures it on your
    machine, where it has a CUDA device.

    ## References

    - [A guide on good usage of non_blocking and pin_memory()](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    - [PyTorch tutorials pull request 2983](https://github.com/pytorch/tutorials/pull/2983)
    """

    code = "MEM208"
    name = "pin-then-copy"
    severity = Severity.WARNING
    applicability = Applicability.SAFE
    needs = Needs(
        {"torch"},
        {".pin_memory("},
        {".to(", ".cuda("},
        units=[{".pin_memory("}],
        nearest=True,
        places=may_pin_and_copy,
        callers=may_pin_and_copy,
    )
    calls = frozenset({".to", ".cuda"})

    def __init__(self, options: dict[str, object] | None = None) -> None:
        super().__init__(options)
        self._loaders: dict[int, LoaderBuilt] = {}

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Begin a program."""
        self._loaders = {}
        yield from ()

    def check_loader(self, loader: LoaderBuilt) -> Iterator[Draft]:
        """Take note of a loader."""
        self._loaders[id(loader.node)] = loader
        yield from ()

    def check_move(self, move: Called) -> Iterator[Draft]:
        """A batch that is pinned and copied."""
        pin = _pinned_by(move)
        loop = move.context.innermost("batch")
        if pin is None or loop is None or not _to_device(move):
            return
        batch = batch_of(pin.inputs[0])
        if batch is None or not _is_of(batch, loop):
            return
        known = [self._loaders.get(id(site.node)) for site in loaders_of(batch)]
        if any(loader is not None and _may_pin(loader) for loader in known):
            return
        yield self.finding(
            pin.node,
            f"{shown(pin.node)} pins the batch while the program waits, and then it is copied: "
            "that takes longer than the plain copy, which can do without",
            HELP,
            confidence=Confidence.HIGH if any(known) else Confidence.MEDIUM,
            related=[Related(loop.loop.node, "the loop over the batches")],
            fix=_fix(pin, move.source),
        )

    @bench(
        "copies a pageable batch to the device",
        as_is="batch.pin_memory().to(device, non_blocking=True)",
        alternative="batch.to(device, non_blocking=True)",
        needs=("cuda",),
        sizes=Sizes("images in the batch", quick=16, full=(1, 16, 64, 256)),
    )
    def bench(self, size: Size) -> Pair:
        """A batch of images, pinned when it is needed or not at all."""
        from memlint.bench.tensors import on_host

        def pinning(batch: Any) -> Any:
            return batch.pin_memory().to(size.device, non_blocking=True)

        def plain(batch: Any) -> Any:
            return batch.to(size.device, non_blocking=True)

        def operands() -> tuple[Any, ...]:
            return (on_host(size.number, 3, 224, 224),)

        what = f"float32, {size.number} x 3 x 224 x 224"
        return Pair(pinning, plain, operands, what, settle=size.settle)


def _pinned_by(move: Called) -> Made | None:
    for one in alternatives(move.receiver) if move.receiver is not None else ():
        made = made_of(one)
        if made is not None and made.name == ".pin_memory" and len(made.inputs) == 1:
            return made
    return None


def _to_device(move: Called) -> bool:
    if move.name == ".cuda":
        return True
    node = move.node
    if not isinstance(node, ast.Call):
        return False
    named = next((k.value for k in node.keywords if k.arg == "device"), None)
    shown = named if named is not None else node.args[0] if node.args else None
    given = move.args.get("device", 0)
    return not isinstance(given, Absent) and moves_off_host(given, shown)


def _is_of(batch: Value, loop: Enclosing) -> bool:
    """Whether ``batch`` is what the loop yields, or a part of it."""
    return bool(loaders_of(batch)) or loop.loop.symbol in deps_of(batch)


def _may_pin(loader: LoaderBuilt) -> bool:
    return any(
        not isinstance(one, Absent) and one != Const(False)
        for one in alternatives(loader.argument("pin_memory"))
    )


def _fix(pin: Made, source: Source) -> DraftFix | None:
    call = pin.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    text = source.segment(call)
    base = source.segment(call.func.value)
    if not text.startswith(base):
        return None
    return DraftFix("copy it as it is", (Replacement(call, base),), Applicability.SAFE)
