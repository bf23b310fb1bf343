"""MEM311 strided-operand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Severity
from memlint.rule import Rule
from memlint.tracer.operands import (
    LOOKUPS,
    NORMALISING,
    REDUCTIONS,
    is_format,
    reordered,
    spell,
)
from memlint.tracer.records import BACKWARD, Operation
from memlint.tracer.sightings import Claim, Sighting

SLOW = NORMALISING | REDUCTIONS | LOOKUPS


class StridedOperand(Rule):
    """An operation walks an array across the order in which it is stored.

    ## What it does

    Reports, of a traced run, normalizations, softmax, reductions and lookups whose operand is
    large and stored in another order than that of its axes: what was transposed or permuted
    before and is read along its slow axis now.

    ## Why it is slow

    Neighbours along the axis that is walked lie far from each other in memory, so that each of
    them costs a cache line of its own. Measured on a CPU with one thread and 2048x2048 numbers:
    an embedding from a transposed table took 4.3 times as long, `layer_norm` 2.4 times, `softmax`
    2.1 times, a sum 1.75 times. Making the array dense costs a copy, which pays only where it is
    used more than once, or in the operation itself where that reads its operand several times: the
    tracer charges it, and says so where it does not pay.

    ## When it is silent

    - the array is row-major, axes of size 1 aside, or broadcast;
    - it has less than 64 KiB;
    - it is an image in channels_last;
    - matrix products, which take transposed operands as they are;
    - it belongs to a backward pass: its layouts follow from those of the forward one.

    ## Example

    ```python
    import torch

    import memlint

    table = torch.randn(64, 30_000).t()
    words = torch.randint(0, 30_000, (4096,))
    with memlint.trace():
        for _ in range(4):
            torch.nn.functional.embedding(words, table)
    ```

    ## Use instead

    ```python
    import torch

    import memlint

    table = torch.randn(64, 30_000).t().contiguous()
    words = torch.randint(0, 30_000, (4096,))
    with memlint.trace():
        for _ in range(4):
            torch.nn.functional.embedding(words, table)
    ```

    ## Fix safety

    No fix is offered: where the copy belongs depends on who else uses the array.

    ## How to confirm

    The finding is a confirmation: the operation was replayed as it ran and with a dense operand.
    `memlint bench strided-operand` measures it on your machine.

    ## References

    - [torch.Tensor.contiguous](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.contiguous.html)
    """

    code = "MEM311"
    name = "strided-operand"
    severity = Severity.INFO
    trace_only = True

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        """Operations that read along a slow axis."""
        odd = reordered(operation)
        if operation.short not in SLOW or not odd or operation.phase == BACKWARD:
            return
        operand = operation.operands[odd[0]]
        if is_format(operand):
            return
        born = operation.births.get(odd[0])
        yield Sighting(
            self,
            operation.site,
            f"`{operation.short.strip('_')}` reads {spell(operand)} across the order in which it "
            "is stored",
            "make the array dense once, where it is transposed: `.contiguous()`",
            self.severity,
            operation.count,
            operation.steps,
            operand.array.nbytes * operation.count,
            related=((born, "its axes are exchanged here"),) if born is not None else (),
            claims=(Claim(operation, odd, operation.uses),),
        )

    @bench(
        "looks rows up in a table; the copy that makes it dense is charged to each use",
        as_is="embedding from a transposed table",
        alternative="embedding from a row-major one",
        needs=("torch",),
        sizes=Sizes("rows and columns of the table", quick=1024, full=(256, 1000, 1024, 2048)),
        dtypes=("float32", "bfloat16", "float64"),
    )
    def bench_embedding(self, size: Size) -> Pair:
        """As many rows as there are."""
        import torch

        def lookup(table: Any) -> Any:
            rows = torch.arange(size.number, device=size.device)
            return torch.nn.functional.embedding(rows, table)

        return _over_rows(lookup, size)

    @bench(
        "normalizes rows; the copy that makes them dense is charged to each use",
        as_is="layer_norm of a transposed matrix",
        alternative="layer_norm of a row-major one",
        needs=("torch",),
        sizes=Sizes("rows and columns", quick=1024, full=(256, 1000, 1024, 2048)),
        dtypes=("float32", "bfloat16", "float64"),
        quick=False,
    )
    def bench_layer_norm(self, size: Size) -> Pair:
        """Each row is read several times."""
        import torch

        def normalized(x: Any) -> Any:
            return torch.nn.functional.layer_norm(x, x.shape[-1:])

        return _over_rows(normalized, size)

    @bench(
        "takes a softmax along rows; the copy that makes them dense is charged to each use",
        as_is="softmax of a transposed matrix",
        alternative="softmax of a row-major one",
        needs=("torch",),
        sizes=Sizes("rows and columns", quick=1024, full=(256, 1000, 1024, 2048)),
        dtypes=("float32", "bfloat16", "float64"),
    )
    def bench_softmax(self, size: Size) -> Pair:
        """Each row is read several times."""
        return _over_rows(lambda x: x.softmax(-1), size)

    @bench(
        "sums up rows; the copy that makes them dense is charged to each use",
        as_is="row sums of a transposed matrix",
        alternative="row sums of a row-major one",
        needs=("torch",),
        sizes=Sizes("rows and columns", quick=1024, full=(256, 1000, 1024, 2048)),
        dtypes=("float32", "bfloat16", "float64"),
        quick=False,
    )
    def bench_sum(self, size: Size) -> Pair:
        """Each number is read once."""
        return _over_rows(lambda x: x.sum(-1), size)


def _over_rows(form: Callable[[Any], Any], size: Size) -> Pair:
    from memlint.bench.tensors import normal

    def operands() -> tuple[Any, ...]:
        turned = normal(size, size.number, size.number).t()
        return turned, turned.contiguous()

    return Pair(
        lambda turned, dense: form(turned),
        lambda turned, dense: form(dense),
        operands,
        f"{size.dtype}, {size.number} x {size.number}",
        conversion=lambda turned, dense: turned.contiguous(),
        settle=size.settle,
    )
