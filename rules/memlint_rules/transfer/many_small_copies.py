"""MEM216 many-small-copies."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.findings import Severity
from memlint.rule import Rule
from memlint.tracer.operands import LEAST_BYTES, move_of
from memlint.tracer.records import Operation
from memlint.tracer.sightings import Sighting

FEWEST_PER_STEP = 16


class ManySmallCopies(Rule):
    """Many small arrays are copied between host and device one by one.

    ## What it does

    Reports, of a traced run, places that copy 16 or more arrays of less than 64 KiB between host
    and device in each step.

    ## Why it is slow

    Each copy costs its start, a call of the driver and often a wait, which for a few kilobytes is
    all that it costs. Joined on one side and taken apart on the other, they cost it once.

    ## When it is silent

    - there are fewer than 16 in a step, or they are larger;
    - they stay on one device.

    ## Example

    ```python
    def step(model, sample, device):
        moved = [field.to(device) for field in sample.fields]
        return model(moved)
    ```

    ## Use instead

    ```python
    import torch


    def step(model, sample, device):
        moved = torch.stack(sample.fields).to(device)
        return model(moved.unbind())
    ```

    ## Fix safety

    No fix is offered: the arrays are often of different shapes and made at different places.

    ## How to confirm

    The finding is an observation: the copies were counted as they happened.

    ## References

    - [CUDA best practices: batching small transfers](https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#data-transfer-between-host-and-device)
    """

    code = "MEM216"
    name = "many-small-copies"
    severity = Severity.INFO
    needs_device = "cuda"
    trace_only = True

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        """Small copies between devices, many in each step."""
        move = move_of(operation)
        if move is None or operation.per_step < FEWEST_PER_STEP:
            return
        each = move.source.array.nbytes
        if each >= LEAST_BYTES:
            return
        yield Sighting(
            self,
            operation.site,
            f"{operation.per_step:g} arrays of {each} bytes are copied from {move.source.device} "
            f"to {move.target.device} one by one in each step",
            "join them, move them once and take them apart there",
            self.severity,
            operation.count,
            operation.steps,
            each * operation.count,
        )
