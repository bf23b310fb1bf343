"""MEM312 hidden-layout-copy."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.findings import Severity
from memlint.rule import Rule
from memlint.tracer.operands import is_large, spell
from memlint.tracer.records import BACKWARD, Operation
from memlint.tracer.sightings import Claim, Part, Sighting


class HiddenLayoutCopy(Rule):
    """A reshape, or a product, copies its operand, since no view would do.

    ## What it does

    Reports, of a traced run, the copies that nobody wrote: `reshape` and `flatten` of an array
    whose axes were exchanged before, and products of more than two axes whose operand has to be
    made dense first.

    ## Why it is slow

    The whole array is read and written once more, and a second one of its size lives for a
    while. Often that cannot be avoided, and is no more than what `.contiguous()` would cost: the
    finding says where the bytes go, it does not say that they are wasted. Where the same array
    comes back in every step, or several such copies follow each other, another order of the axes
    saves them.

    ## When it is silent

    - `reshape` gives a view;
    - the copy was asked for (`.contiguous()`, `.clone()`), or belongs to a backward pass;
    - it has less than 64 KiB.

    ## Example

    ```python
    import torch

    import memlint

    x = torch.randn(16, 64, 32, 32)
    with memlint.trace():
        for _ in range(4):
            x.permute(0, 2, 3, 1).reshape(-1, 64)
    ```

    ## Use instead

    ```python
    import torch

    import memlint

    x = torch.randn(16, 64, 32, 32)
    with memlint.trace():
        for _ in range(4):
            x.flatten(2)
    ```

    ## Fix safety

    No fix is offered: the order of axes is a matter of the program around it.

    ## How to confirm

    The copies were counted as they happened. In the replay the alternative is a view of a dense
    array, which is charged with making it dense: that pays where the same array is copied more than
    once.

    ## References

    - [torch.reshape](https://docs.pytorch.org/docs/stable/generated/torch.reshape.html)
    """

    code = "MEM312"
    name = "hidden-layout-copy"
    severity = Severity.INFO
    trace_only = True

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        """Copies that no one asked for."""
        if operation.phase == BACKWARD or not operation.hidden:
            return
        if not is_large(operation.operands[0]):
            return
        operand, born = operation.operands[0], operation.births.get(0)
        nbytes = 2 * operand.array.nbytes * operation.hidden
        yield Sighting(
            self,
            operation.site,
            f"{spell(operand)} is copied here so that it can be reshaped",
            "exchange axes so that what is reshaped lies in order, or keep the reshaped array",
            self.severity,
            operation.hidden,
            operation.steps,
            nbytes,
            related=((born, "its axes are exchanged here"),) if born is not None else (),
            claims=(Claim(operation, (0,), operation.uses, (Part(operation, (0,), 1, True),)),),
            totals=": {nbytes} were read and written in {count} copies",
        )
