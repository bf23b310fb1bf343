"""MEM215 pinned-source-overwritten."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.findings import Severity
from memlint.rule import Rule
from memlint.tracer.operands import move_of, spell
from memlint.tracer.records import Operation
from memlint.tracer.sightings import Sighting


class PinnedSourceOverwritten(Rule):
    """Pinned memory is written into while it is being copied to the device.

    ## What it does

    Reports, of a traced run, copies from pinned memory with `non_blocking=True` whose source was
    written into before anything had waited for the copy.

    ## Why it is wrong

    The call returns before the copy is done. What is written into the source meanwhile may or may
    not arrive on the device: the numbers there are then neither the old nor the new ones.

    ## When it is silent

    - something waited in between: an event, a stream, the device, a number that was read, a copy
      that waits;
    - the source is written into by other code than torch's, or on another thread: that is not seen.

    ## Example

    ```python
    def feed(batches, pinned, step):
        for batch in batches:
            pinned.copy_(batch)
            step(pinned.to("cuda", non_blocking=True))
    ```

    ## Use instead

    ```python
    import torch


    def feed(batches, pinned, step):
        for batch in batches:
            torch.cuda.current_stream().synchronize()
            pinned.copy_(batch)
            step(pinned.to("cuda", non_blocking=True))
    ```

    ## Fix safety

    No fix is offered: whether to wait or to take turns between two buffers is for the program to
    say.

    ## How to confirm

    The finding is an observation: copy and write were seen in this order. Whether the numbers were
    wrong depends on time.

    ## References

    - [A guide on good usage of non_blocking and pin_memory](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """

    code = "MEM215"
    name = "pinned-source-overwritten"
    severity = Severity.ERROR
    trace_only = True
    needs_device = "cuda"

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        """Copies whose source was written into before they were waited for."""
        move = move_of(operation)
        if move is None or not move.to_device or move.waits or not operation.conflicts:
            return
        written = operation.conflict_at
        yield Sighting(
            self,
            operation.site,
            f"{spell(move.source)} was written into {operation.conflicts} times while it might "
            f"still have been on its way to {move.target.device}",
            "wait for the copy before writing, or take turns between two buffers",
            self.severity,
            operation.conflicts,
            operation.steps,
            move.source.array.nbytes * operation.conflicts,
            related=((written, "it is written into here"),) if written is not None else (),
        )
