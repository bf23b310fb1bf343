"""MEM515 attention-math-fallback."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.findings import Severity
from memlint.rule import Rule
from memlint.tracer.operands import is_large, spell
from memlint.tracer.records import Operand, Site, StoredScores
from memlint.tracer.sightings import Sighting


class AttentionMathFallback(Rule):
    """torch's own attention falls back to plain products and a softmax.

    ## What it does

    Reports, of a traced run, calls of `scaled_dot_product_attention` that no fused kernel took: the
    scores of all pairs were written to memory, and read again. Where the last axis of queries or
    keys is not the fastest in memory, which the fused kernels need, it says so.

    ## Why it is slow

    The fused kernels keep the scores in fast memory. Without them a call with n queries and m keys
    writes and reads n x m numbers per head several times, and training keeps them for backward.

    ## When it is silent

    - a fused kernel ran;
    - weights are dropped, on a CPU: no kernel for it does so;
    - the scores have less than 64 KiB.

    ## Example

    ```python
    import torch

    import memlint

    q, k, v = torch.randn(3, 2, 4, 32, 512).transpose(-2, -1)
    with memlint.trace():
        torch.nn.functional.scaled_dot_product_attention(q, k, v)
    ```

    ## Use instead

    ```python
    import torch

    import memlint

    q, k, v = torch.randn(3, 2, 4, 512, 32)
    with memlint.trace():
        torch.nn.functional.scaled_dot_product_attention(q, k, v)
    ```

    ## Fix safety

    No fix is offered: the layout, the mask or the type that keeps the kernels out is made
    elsewhere.

    ## How to confirm

    The finding is an observation: the softmax of the fallback was seen.

    ## References

    - [torch.nn.functional.scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    """

    code = "MEM515"
    name = "attention-math-fallback"
    severity = Severity.WARNING
    trace_only = True

    def observe(self, attention: StoredScores) -> Iterator[Sighting]:
        """StoredScores that no fused kernel took."""
        scores = attention.softmax.operands[0]
        if not attention.is_fallback or not is_large(scores):
            return
        if attention.drops and scores.kind == "cpu":
            return
        operation = attention.softmax
        nbytes = 2 * scores.array.nbytes * operation.count
        odd = _odd_input(attention)
        related: tuple[tuple[Site, str], ...] = ()
        reason, help = "", "call it as a fused kernel takes it: see its documentation"
        if odd is not None:
            operand, born = odd
            reason = f": the last axis of {spell(operand)} is not the fastest in memory"
            help = "make queries, keys and values dense in their last axis"
            related = ((born, "its axes are exchanged here"),) if born is not None else ()
        yield Sighting(
            self,
            operation.site,
            f"no fused kernel took this attention{reason}",
            help,
            self.severity,
            operation.count,
            operation.steps,
            nbytes,
            related=related,
            totals="; {nbytes_a_step} of scores were written and read in a step",
        )


def _odd_input(attention: StoredScores) -> tuple[Operand, Site | None] | None:
    """The query whose last axis is not the fastest; keys come transposed here."""
    for one in attention.inputs[:1]:
        operand = one.operands[0]
        if not operand.array.has_strides:
            continue
        if operand.array.shape[-1] > 1 and operand.array.strides[-1] != 1:
            return operand, one.births.get(0)
    return None
