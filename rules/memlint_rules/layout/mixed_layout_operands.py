"""MEM310 mixed-layout-operands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Severity
from memlint.layout import stride_order
from memlint.rule import Rule
from memlint.tracer.operands import ELEMENTWISE, is_large, is_reordered, spell, work_of
from memlint.tracer.records import BACKWARD, Operand, Operation
from memlint.tracer.sightings import Claim, Sighting


class MixedLayoutOperands(Rule):
    """Arrays of different layouts meet in elementwise work.

    ## What it does

    Reports, of a traced run, sums, products and other elementwise operations of two large arrays
    of the same shape that are stored in different orders of their axes.

    ## Why it is slow

    Whichever order the operation takes, one of the arrays is walked across the order in which
    it is stored, a cache line for each number. Measured on a CPU with one thread: the sum of a
    contiguous and a transposed array of 2048x2048 numbers takes 15 to 23 times as long as that of
    two contiguous ones.

    ## When it is silent

    - both arrays are stored in the same order, also where it is not row-major;
    - one of them is broadcast, or they have less than 64 KiB;
    - it is a gradient that is summed up: its order of axes is that of autograd's own formulas.

    ## Example

    ```python
    import torch

    import memlint

    a = torch.randn(1024, 1024)
    b = torch.randn(1024, 1024).t()
    with memlint.trace():
        for _ in range(4):
            a + b
    ```

    ## Use instead

    ```python
    import torch

    import memlint

    a = torch.randn(1024, 1024)
    b = torch.randn(1024, 1024).t().contiguous()
    with memlint.trace():
        for _ in range(4):
            a + b
    ```

    ## Fix safety

    No fix is offered: which of the two should change depends on who else uses them.

    ## How to confirm

    The finding is a confirmation: the operation was replayed as it ran and with dense operands.
    `memlint bench mixed-layout-operands` measures it on your machine.

    ## References

    - [torch.Tensor.contiguous](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.contiguous.html)
    """

    code = "MEM310"
    name = "mixed-layout-operands"
    severity = Severity.WARNING
    trace_only = True

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        """Elementwise work on arrays that are stored in different orders."""
        if work_of(operation) not in ELEMENTWISE or operation.phase == BACKWARD:
            return
        large = [i for i, one in enumerate(operation.operands) if is_large(one)]
        shapes = {operation.operands[i].array.shape for i in large}
        if len(large) < 2 or len(shapes) != 1:
            return
        orders = {_order(operation.operands[i]) for i in large}
        odd = tuple(i for i in large if is_reordered(operation.operands[i]))
        if len(orders) < 2 or not odd:
            return
        operand, born = operation.operands[odd[0]], operation.births.get(odd[0])
        yield Sighting(
            self,
            operation.site,
            f"`{operation.short}` meets {spell(operand)} and an array of the same shape that is "
            "stored in another order: one of the two is walked across its order",
            "give both the same order: `.contiguous()` where the axes are exchanged, or the same "
            "exchange for both",
            self.severity,
            operation.count,
            operation.steps,
            operand.array.nbytes * operation.count,
            related=((born, "its axes are exchanged here"),) if born is not None else (),
            claims=(Claim(operation, odd, operation.uses),),
        )

    @bench(
        "adds two matrices; the copy that makes the second dense is charged to each use",
        as_is="a row-major and a transposed matrix",
        alternative="two row-major matrices",
        needs=("torch",),
        sizes=Sizes("rows and columns", quick=1024, full=(128, 512, 1000, 1024, 2048)),
        dtypes=("float32", "bfloat16", "float64"),
    )
    def bench(self, size: Size) -> Pair:
        """A sum across the order of one of its operands."""
        from memlint.bench.tensors import normal

        number = size.number

        def mixed(a: Any, turned: Any, dense: Any) -> Any:
            return a + turned

        def alike(a: Any, turned: Any, dense: Any) -> Any:
            return a + dense

        def made_dense(a: Any, turned: Any, dense: Any) -> Any:
            return turned.contiguous()

        def operands() -> tuple[Any, ...]:
            turned = normal(size, number, number, seed=1).t()
            return normal(size, number, number), turned, turned.contiguous()

        what = f"{size.dtype}, {number} x {number}"
        return Pair(mixed, alike, operands, what, conversion=made_dense, settle=size.settle)


def _order(operand: Operand) -> tuple[int, ...]:
    """The axes that are stored, from the slowest to the fastest."""
    return tuple(axis for axis in stride_order(operand.array) if operand.array.shape[axis] > 1)
