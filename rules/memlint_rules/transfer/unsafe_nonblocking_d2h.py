"""MEM203 unsafe-nonblocking-d2h."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.edits import call_with_keyword
from memlint.analysis.events import HostCopy
from memlint.analysis.places.host_copy import may_copy_to_host
from memlint.analysis.watched import HOST_COPIES, SWITCH
from memlint.findings import Applicability, Confidence, Severity
from memlint.rule import Draft, DraftFix, Needs, Related, Rule
from memlint.tracer.operands import move_of
from memlint.tracer.records import Operation
from memlint.tracer.sightings import Sighting

HELP = (
    "drop `non_blocking=True`, or wait for the copy before the host reads it "
    "(`torch.cuda.synchronize()`, or an event that is recorded after the copy)"
)


class UnsafeNonblockingD2h(Rule):
    """The host reads a tensor that is still being copied from the device.

    ## What it does

    Reports `x.to("cpu", non_blocking=True)` and `host.copy_(x, non_blocking=True)` where the host
    reads the result with no `synchronize()` on the way there, or where the function hands it
    out (returns it, keeps it in an attribute) with neither that nor an event recorded.

    ## Why it is wrong

    Such a copy is only queued. The call returns at once, with a tensor whose memory holds
    whatever it held before, and the numbers arrive when the device gets to the copy. Reading it
    earlier gives old or partly written values, without any error, and mostly not in a small
    test. Copies *to* the device are safe, since kernels on the same stream come after them; the
    host is on no stream. `.to("cpu", non_blocking=True)` makes its result in pinned memory, so
    that it does run on its own.

    ## When it is silent

    - `torch.cuda.synchronize()`, `event.synchronize()`, `stream.synchronize()`, or another call
      that waits for the device, comes first on every path;
    - the result is only copied on to a device, or only asked for its shape;
    - an event is recorded after the copy, where the function hands the result out;
    - `non_blocking` is not known to be true, or the destination not known to be the host.

    ## Example

    ```python
    import torch


    def first_token(scores):
        best = scores.argmax(-1).to("cpu", non_blocking=True)
        return best.tolist()
    ```

    ## Use instead

    ```python
    import torch


    def first_token(scores):
        best = scores.argmax(-1).to("cpu")
        return best.tolist()
    ```

    ## Fix safety

    Safe: with `non_blocking=False` the host waits for the copy, as the program supposes; the
    values can only become right. To keep the overlap, record an event after the copy and
    synchronize with it before the read.

    ## How to confirm

    Queue enough work before the copy (`torch.cuda._sleep(10**9)`) and compare what is read with
    `x.cpu()`. An event that is recorded right after the copy has `query() == False` at the read.

    ## References

    - [A guide on good usage of non_blocking and pin_memory()](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    - [pytorch issue 140296](https://github.com/pytorch/pytorch/issues/140296)
    - [pytorch issue 86264](https://github.com/pytorch/pytorch/issues/86264)
    """

    code = "MEM203"
    name = "unsafe-nonblocking-d2h"
    severity = Severity.ERROR
    needs_device = "cuda"
    applicability = Applicability.SAFE
    needs = Needs(
        {"torch"},
        {SWITCH},
        {'"cpu', "'cpu", "copy_("},
        units=[{SWITCH}],
        nearest=True,
        places=may_copy_to_host,
        callers=may_copy_to_host,
    )
    calls = frozenset({HOST_COPIES})

    def check_copy(self, copy: HostCopy) -> Iterator[Draft]:
        """A copy to the host that is read, or left to others, before it is done."""
        read = copy.read
        yield self.finding(
            copy.node,
            _message(copy),
            HELP,
            confidence=Confidence.HIGH if read is not None else Confidence.MEDIUM,
            related=[Related(read, "read here")] if read is not None else [],
            fix=_fix(copy),
        )

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        """Copies to the host that were read before anything had waited for them."""
        move = move_of(operation)
        if move is None or not move.to_host or move.waits or not operation.conflicts:
            return
        read = operation.conflict_at
        yield Sighting(
            self,
            operation.site,
            f"the host read this copy {operation.conflicts} times before anything had waited for "
            "it: it may have seen what was in memory before",
            "leave `non_blocking=True` out, or wait before reading: "
            "`torch.cuda.current_stream().synchronize()`",
            self.severity,
            operation.conflicts,
            operation.steps,
            move.source.array.nbytes * operation.conflicts,
            related=((read, "it is read here"),) if read is not None else (),
        )


def _message(copy: HostCopy) -> str:
    if copy.read is not None:
        return (
            "this copy to the host is only queued, and nothing waits for it before the host reads "
            "the result: it may read old or partly written values"
        )
    return (
        "this copy to the host is only queued, and its result outlives the function with neither "
        "an event nor a `synchronize()`: whoever reads it may read old or partly written values"
    )


def _fix(copy: HostCopy) -> DraftFix | None:
    call = copy.node
    if not isinstance(call, ast.Call):
        return None
    given = next((k.value for k in call.keywords if k.arg == "non_blocking"), None)
    if not isinstance(given, ast.Constant):
        return None
    edit = call_with_keyword(copy.source, call, "non_blocking", "False")
    if edit is None:
        return None
    return DraftFix("wait for the copy: `non_blocking=False`", (edit,), Applicability.SAFE)
