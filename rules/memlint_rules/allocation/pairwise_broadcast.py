"""MEM512 pairwise-broadcast."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, ClassVar

from memlint.analysis.chains import mades, operation_of, short
from memlint.analysis.events import Called
from memlint.analysis.pairwise import difference, is_small
from memlint.analysis.places.pairwise import (
    DIFFERENCE,
    NEW_AXIS,
    may_sum_columns,
    sums_what_is_given,
)
from memlint.analysis.shown import shown
from memlint.analysis.values import Made, Tensor, alternatives
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Confidence, Severity
from memlint.rule import Draft, DraftFix, Needs, Related, Replacement, Rule
from memlint.source.model import Source


class PairwiseBroadcast(Rule):
    """Distances of all pairs are computed from a temporary with every coordinate of every pair.

    ## What it does

    Reports sums and norms along the columns of `a[:, None] - b[None]`, also as
    `a.unsqueeze(1) - b`, squared or not.

    ## Why it is slow

    The broadcast difference has N x M x D numbers, of which N x M sums are wanted. It is written
    to memory, squared into another one, and read again. For 2000 x 2000 pairs of 64 columns on
    two cores of an AMD Zen 3 (PyTorch 2.14, NumPy 2.4), torch took 1347 ms that way and 12.3 ms
    with `torch.cdist`; numpy 599 ms with a temporary of 1953 MiB, and 22 ms by a matrix product.

    Off by default: sizes are rarely known, and the other forms do not give the same last digits.

    ## When it is silent

    - the columns are known to be no more than 4, or the pairs to be few;
    - nothing tells that all pairs are formed (one operand is a single row, or both have the same
      new axis);
    - the difference is not summed up along its columns.

    ## Example

    ```python
    import torch


    def squared_distances(a, b):
        return ((a[:, None] - b[None]) ** 2).sum(-1)
    ```

    ## Use instead

    ```python
    import torch


    def squared_distances(a, b):
        return torch.cdist(a, b) ** 2
    ```

    ## Fix safety

    Shown, never applied: `torch.cdist` uses a matrix product for more than 25 rows, which loses
    digits where points are close to each other, and its gradient at a distance of 0 is another
    one. `scipy.spatial.distance.cdist` keeps the digits.

    ## How to confirm

    Compare the peak of memory of both forms; the temporary takes N x M x D numbers. `memlint bench
    pairwise-broadcast` measures it on your machine.

    ## References

    - [torch.cdist](https://docs.pytorch.org/docs/stable/generated/torch.cdist.html)
    - [scipy.spatial.distance.cdist](https://docs.scipy.org/doc/scipy/reference/generated/scipy.spatial.distance.cdist.html)
    """

    code = "MEM512"
    name = "pairwise-broadcast"
    severity = Severity.INFO
    default_on = False
    applicability = Applicability.DISPLAY
    supersedes: ClassVar[tuple[str, ...]] = ("repeat-instead-of-expand",)
    calls: ClassVar[frozenset[str]] = frozenset(
        {".sum", ".norm", ".mean", "torch.sum", "torch.norm", "torch.mean", "torch.linalg.norm",
         "torch.linalg.vector_norm", "numpy.sum", "numpy.mean", "numpy.linalg.norm"}
    )  # fmt: skip
    needs = Needs(
        {"None", "newaxis", "unsqueeze", "expand_dims"},
        {"torch", "numpy"},
        {"sum(", "norm(", "mean("},
        units=[{"sum", "norm", "mean"}],
        values=[{NEW_AXIS}, {DIFFERENCE}],
        nearest=True,
        places=may_sum_columns,
        callers=sums_what_is_given,
    )

    def check(self, call: Called) -> Iterator[Draft]:
        """A sum along the columns of all pairs."""
        made = operation_of(call)
        pairs = difference(made)
        if pairs is None or is_small(pairs):
            return
        torch = _lib(pairs) == "torch"
        yield self.finding(
            call.node,
            f"{shown(pairs.node)} subtracts all pairs of rows into one temporary of N x M x D "
            "numbers, of which N x M sums are wanted",
            "use `torch.cdist(a, b)`"
            if torch
            else "use `scipy.spatial.distance.cdist(a, b)`, or `aa + bb - 2 * a @ b.T` where "
            "digits allow it",
            confidence=Confidence.MEDIUM,
            related=[Related(pairs.node, "the temporary is made here")],
            fix=_fix(call, made, pairs, call.source) if torch else None,
        )

    @bench(
        "computes the squared distances of all pairs of rows, of 64 columns",
        as_is="((a[:, None] - b[None]) ** 2).sum(-1)",
        alternative="torch.cdist(a, b) ** 2",
        needs=("torch",),
        sizes=Sizes("rows of each", quick=128, full=(16, 128, 256)),
        dtypes=("float32", "float64"),
    )
    def bench(self, size: Size) -> Pair:
        """All differences in memory, and none."""
        import torch

        from memlint.bench.tensors import normal

        def broadcast(a: Any, b: Any) -> Any:
            return ((a[:, None] - b[None]) ** 2).sum(-1)  # memlint: ignore[pairwise-broadcast]

        def computed(a: Any, b: Any) -> Any:
            return torch.cdist(a, b) ** 2

        def operands() -> tuple[Any, ...]:
            return normal(size, size.number, 64), normal(size, size.number, 64, seed=1)

        what = f"{size.dtype}, {size.number} x {size.number} pairs of 64"
        return Pair(broadcast, computed, operands, what, settle=size.settle)


def _lib(pairs: Made) -> str:
    for value in pairs.inputs:
        for one in alternatives(value):
            if isinstance(one, Tensor) and one.lib:
                return one.lib
        if any(short(made.name) == "unsqueeze" for made in mades(value)):
            return "torch"
    return ""


def _fix(call: Called, reduction: Made, pairs: Made, source: Source) -> DraftFix | None:
    """The norm of a difference as ``torch.cdist``."""
    if short(reduction.name) != "norm" or not isinstance(pairs.node, ast.BinOp):
        return None
    names = [_base(side) for side in (pairs.node.left, pairs.node.right)]
    texts = [source.segment(name) for name in names if name is not None]
    if len(texts) != 2 or not source.holds("import torch"):
        return None
    return DraftFix(
        "compute the distances at once",
        (Replacement(call.node, f"torch.cdist({texts[0]}, {texts[1]})"),),
        Applicability.DISPLAY,
    )


def _base(node: ast.expr) -> ast.expr | None:
    match node:
        case ast.Subscript(value=inner):
            return inner
        case ast.Call(func=ast.Attribute(value=inner, attr="unsqueeze")):
            return inner
        case ast.Name():
            return node
    return None
