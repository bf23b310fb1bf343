"""MEM308 transposed-stream."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import gcd
from typing import Any, ClassVar

from memlint.analysis import axes
from memlint.analysis.axes.queries import fastest_from_end
from memlint.analysis.edits import followed_by
from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.methods import from_method
from memlint.analysis.places.stacks import may_run_stack
from memlint.analysis.values import Instance, Object, Tensor, Unknown, Value, alternatives
from memlint.analysis.watched import BLOCK
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Confidence, Severity
from memlint.rule import Draft, DraftFix, Needs, Related, Rule
from memlint.tracer.operands import (
    is_crossed,
    is_dense_copy,
    is_format,
    is_large,
    is_reordered,
    spell,
)
from memlint.tracer.records import FORWARD, Operation, Stream
from memlint.tracer.sightings import Claim, Part, Sighting

FEWEST_TAKINGS = 4
"""A layout that is taken less often is no stream."""
MOST_PLACES = 8


class TransposedStream(Rule):
    """Tokens cut from an image stay transposed through a whole stack of blocks.

    ## What it does

    Reports a transpose that makes the tokens of a transformer (`flatten(2).transpose(1, 2)` of
    the features of a convolution), where the transposed view goes through a loop of residual
    blocks as it is.

    ## Why it is slow

    The view has the shape `[batch, tokens, width]`, but the neighbours in memory lie along the
    tokens. A residual sum keeps the strides of its first operand, so that every normalization
    and every linear layer of every block reads the stream along the slow axis, or copies it
    first. One dense copy ahead of the stack does that once. On a stack like a ViT's it was 1.66
    times as fast with the copy (two cores of an AMD Zen 3, PyTorch 2.14); `memlint bench` gave 1.1
    to 1.4 times at 14 x 14 to 32 x 32 tokens and 1.9 times at 64 x 64 (one virtual x86-64 core,
    PyTorch 2.13). Public reports say 3 to 4 % on NVIDIA and 8 to 31 % on AMD GPUs. It depends on
    the sizes, so the rule is off by default: measure.

    ## When it is silent

    - The stream is made dense before the stack: `.contiguous()`, a normalization, a linear layer,
      `torch.cat` with a class token, `reshape` that copies.
    - The first block is known to make it dense (normalization after the residual sum).
    - The last axis still is the fastest in memory, as where the heads of an attention are
      split off: it is read in rows all the same.
    - A single block; blocks that are not called in a loop.
    - channels_last is in play in the file: of such features the transpose is dense.
    - The layout is not known. Blocks that are not in the file are reported at confidence low.

    ## Example

    ```python
    import torch
    from torch import nn


    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, width), nn.GELU())

        def forward(self, x):
            return x + self.mlp(self.norm(x))


    class Encoder(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.proj = nn.Conv2d(3, width, 16, stride=16)
            self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])

        def forward(self, image):
            x = self.proj(image).flatten(2).transpose(1, 2)
            for block in self.blocks:
                x = block(x)
            return x
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn


    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, width), nn.GELU())

        def forward(self, x):
            return x + self.mlp(self.norm(x))


    class Encoder(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.proj = nn.Conv2d(3, width, 16, stride=16)
            self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])

        def forward(self, image):
            x = self.proj(image).flatten(2).transpose(1, 2).contiguous()
            for block in self.blocks:
                x = block(x)
            return x
    ```

    ## Fix safety

    Shown only: `.contiguous()` behind the transpose changes no value, but costs a copy of the
    tokens, which pays where the stack is deep enough.

    ## How to confirm

    Print `x.stride()` at the first and the last block, and time one forward pass with and without
    the copy. `memlint bench transposed-stream` measures it on your machine.

    ## References

    - [Reports from NVIDIA and AMD GPUs](https://github.com/huggingface/diffusers/pull/14236), where
      3 % and 21 to 31 % were measured, and those that it names
    - [torch.Tensor.contiguous](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.contiguous.html)
    - [Tensor views](https://docs.pytorch.org/docs/stable/tensor_view.html)
    """

    code = "MEM308"
    name = "transposed-stream"
    severity = Severity.INFO
    default_on = False
    applicability = Applicability.DISPLAY
    needs = Needs(
        {"torch"},
        {"transpose(", "permute(", ".mT", "swapaxes(", "movedim(", "rearrange("},
        {"Conv", "conv", "flatten("},
        {" in ", "Sequential("},
        units=[
            {" in ", "Sequential", "("},
            {"transpose(", "permute(", ".mT", "swapaxes(", "movedim(", "rearrange("},
        ],
        places=may_run_stack,
        classwide=True,
    )
    calls: ClassVar[frozenset[str]] = frozenset({BLOCK})

    def __init__(self, options: dict[str, object] | None = None) -> None:
        super().__init__(options)
        self._told: set[int] = set()

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """A new program."""
        self._told = set()
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """A block of a stack that is given a transposed stream, and hands it on as such."""
        stream = _transposed(called.args.positional[0]) if called.args.positional else None
        if stream is None or not isinstance(stream.born, ast.expr):
            return
        if called.source.holds("channels_last"):
            return  # of such features the transpose is the dense view
        confidence = _confidence(called)
        if confidence is None or id(stream.born) in self._told:
            return
        self._told.add(id(stream.born))
        born = stream.born
        yield self.finding(
            from_method(born) if isinstance(born, ast.Call) else born,
            "the tokens stay a transposed view through all blocks of the stack: each of them reads "
            "its input along the slow axis, or copies it first",
            "make the tokens dense once before the stack with `.contiguous()`, and measure",
            confidence=confidence,
            related=[Related(called.node, "the stack of blocks")],
            fix=_fix(called, born),
        )

    def observe(self, stream: Stream) -> Iterator[Sighting]:
        """Layouts that are handed on through several operations."""
        parts = _parts(stream)
        taken = sum(part.operation.count for part in parts)
        places = {part.operation.site for part in parts}
        births = max(stream.births, 1)
        if taken < FEWEST_TAKINGS * births or len(parts) < 2:
            return  # what takes it alone is told of by itself
        rounds = gcd(*(part.times for part in parts))
        parts = tuple(replace(part, times=part.times // rounds) for part in parts)
        main = max(parts, key=lambda part: part.operation.operands[part.dense[0]].array.nbytes)
        nbytes = sum(
            part.operation.operands[part.dense[0]].array.nbytes * part.operation.count
            for part in parts
        )
        yield Sighting(
            self,
            stream.born,
            f"the layout that comes up here, {spell(stream.largest)}, is taken by "
            f"{taken // births} operations at {len(places)} places as it is: each of them reads it "
            "along a slow axis, or copies it first",
            "make it dense once, here: `.contiguous()`",
            self.severity,
            births * rounds,
            max(part.operation.steps for part in parts),
            nbytes,
            related=tuple((site, "is taken here") for site in sorted(places)[:MOST_PLACES]),
            claims=(Claim(main.operation, main.dense, rounds, parts),),
        )

    @bench(
        "runs four residual blocks of normalization, linear layer and GELU on an image's tokens",
        as_is="x.flatten(2).transpose(1, 2)",
        alternative="x.flatten(2).transpose(1, 2).contiguous()",
        needs=("torch",),
        sizes=Sizes("rows and columns of the features", quick=16, full=(14, 16, 32, 64)),
        dtypes=("float32", "bfloat16", "float16"),
    )
    def bench_linear(self, size: Size) -> Pair:
        """Little is computed beside the normalizations; the copy is part of the time."""
        from torch.nn import functional as F  # noqa: N812 - as everyone calls it

        def block(x: Any, weight: Any) -> Any:
            return x + F.gelu(F.linear(F.layer_norm(x, x.shape[-1:]), weight))

        return _stack(block, size, "linear layers")

    @bench(
        "runs four blocks of a transformer, with attention, on an image's tokens",
        as_is="x.flatten(2).transpose(1, 2)",
        alternative="x.flatten(2).transpose(1, 2).contiguous()",
        needs=("torch",),
        sizes=Sizes("rows and columns of the features", quick=16, full=(14, 16, 32)),
        dtypes=("float32", "bfloat16", "float16"),
        quick=False,
    )
    def bench_attention(self, size: Size) -> Pair:
        """The copy is part of the time."""
        from torch.nn import functional as F  # noqa: N812 - as everyone calls it

        def block(x: Any, weight: Any) -> Any:
            normalized = F.layer_norm(x, x.shape[-1:])
            heads = normalized.reshape(*x.shape[:2], 4, -1).transpose(1, 2)
            mixed = F.scaled_dot_product_attention(heads, heads, heads)
            x = x + F.linear(mixed.transpose(1, 2).flatten(2), weight)
            return x + F.linear(F.gelu(F.linear(F.layer_norm(x, x.shape[-1:]), weight)), weight)

        return _stack(block, size, "attention")


def _stack(block: Callable[[Any, Any], Any], size: Size, kind: str) -> Pair:
    import torch

    from memlint.bench.tensors import normal

    def run(x: Any, weights: Any) -> Any:
        with torch.no_grad():
            for weight in weights:
                x = block(x, weight)
        return x

    def transposed(features: Any, weights: Any) -> Any:
        return run(features.flatten(2).transpose(1, 2), weights)

    def dense(features: Any, weights: Any) -> Any:
        return run(features.flatten(2).transpose(1, 2).contiguous(), weights)

    def operands() -> tuple[Any, ...]:
        weights = tuple(normal(size, 256, 256, seed=seed) / 16 for seed in range(1, 5))
        return normal(size, 1, 256, size.number, size.number), weights

    what = f"{kind}, {size.dtype}, {size.number} x {size.number} tokens"
    return Pair(transposed, dense, operands, what, settle=size.settle)


def _transposed(value: Value) -> Tensor | None:
    """What of a value is a batch of rows that lie along the last but one axis in memory."""
    for one in alternatives(value):
        if not isinstance(one, Tensor) or one.lib not in ("torch", ""):
            continue
        rank = one.layout.rank
        if rank is None:
            if fastest_from_end(one.layout) == {-2}:
                return one
        elif rank == 3 and axes.fastest_axis(one.layout) == 1:
            return one
    return None


def _confidence(called: Called) -> Confidence | None:
    """How sure it is that the blocks hand the stream on as it comes; ``None`` where they do not."""
    callees = alternatives(called.receiver) if called.receiver is not None else ()
    if any(isinstance(one, Instance) for one in callees):
        return Confidence.MEDIUM if _transposed(called.value) is not None else None
    if any(isinstance(one, (Unknown, Object)) for one in callees):
        return Confidence.LOW
    return None


def _fix(called: Called, born: ast.expr) -> DraftFix | None:
    if not isinstance(born, ast.Call):
        return None
    edit = followed_by(called.source, born, ".contiguous()")
    return DraftFix("make the tokens dense once", (edit,), Applicability.DISPLAY)


def _parts(stream: Stream) -> tuple[Part, ...]:
    """The operations that take the layout as it is, with how often for each time it comes up."""
    births = max(stream.births, 1)
    found = []
    for taker in stream.takers:
        odd = _of_stream(taker, stream)
        if odd and taker.phase == FORWARD:
            times = max(round(taker.count / births), 1)
            found.append(Part(taker, odd, times, bool(taker.hidden) or is_dense_copy(taker)))
    return tuple(found)


def _of_stream(taker: Operation, stream: Stream) -> tuple[int, ...]:
    copies = bool(taker.hidden) or is_dense_copy(taker)
    return tuple(
        index
        for index, born in taker.births.items()
        if born == stream.born
        and is_large(taker.operands[index])
        and is_reordered(taker.operands[index])
        and not is_format(taker.operands[index])
        and (copies or is_crossed(taker.operands[index]))
    )
