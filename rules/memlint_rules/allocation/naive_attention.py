"""MEM508 naive-attention."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from math import sqrt
from typing import Any, ClassVar

from memlint.analysis.attention import Attention, attention
from memlint.analysis.attention_sizes import is_chunked, is_learned, is_short
from memlint.analysis.chains import MATMUL, PRODUCT, operation_of
from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.fused_attention import is_meant, may_be_naive, replacement_text
from memlint.analysis.shown import shown
from memlint.analysis.uses import uses_in
from memlint.analysis.weights_path import outputs_only
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size, Weighed
from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, DraftFix, Needs, Related, Replacement, Rule
from memlint.tracer.operands import spell
from memlint.tracer.records import StoredScores
from memlint.tracer.sightings import FuseAttention, Sighting

HELP = (
    "use `torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=..., "
    "dropout_p=p if self.training else 0.0, scale=...)`; its boolean mask is true where a key "
    "may be seen"
)
# Second derivatives, and forward-mode ones: the fused kernels have none.
_HIGHER_DERIVATIVES = late_pattern(
    r"create_graph\s*=\s*True|functional\.(hessian|jvp|hvp|vhp)|\bfunctorch\b|torch\.func\b|"
    r"\bforward_ad\b"
)
FEWEST_POSITIONS = 128
"""Of what runs: scores of fewer positions stay in caches."""


class NaiveAttention(Rule):
    """Attention is written out, so that its matrix of weights exists in memory.

    ## What it does

    Reports a softmax over the products of queries and keys whose result is multiplied with the
    values and used for nothing else: `softmax(q @ k.transpose(-2, -1)) @ v`, with scaling,
    masks, additive biases, casts and dropout in between, as `@`, `matmul`, `bmm`, `baddbmm` or
    `einsum`, also where a helper function of the same file computes a part of it.

    ## Why it is slow

    Scores and weights have one number for each pair of a query and a key, for each head. They
    are written to memory and read again by each of the steps, and training keeps some of them
    for the backward pass. `scaled_dot_product_attention` computes the same in blocks that stay
    on the chip where a fused kernel supports the device, the precision and the mask; its memory
    then grows with the length of the sequence, not with its square.

    For one batch of 8 heads, 4096 positions and width 64 on two cores of an AMD Zen 3 (PyTorch
    2.14, float32), the written-out form took 0.99 s and 1031 MiB more memory, the fused one 0.26
    s and 12 MiB; with a causal mask 1.36 against 0.18 s. Below some 128 positions there is
    little to gain.

    ## When it is silent

    - the weights or the scores are also returned, stored, logged or handed to anything that is
      not known to be a part of attention;
    - the scores are treated in a way that a mask and a factor cannot express (`tanh`, `topk`,
      mixing of heads, products with a gate, position terms that are computed from the queries);
    - the function, its class or a class derived from it mentions a fused kernel, which is then
      chosen in another branch;
    - the keys are known to be no more than 128, there is one query (a mean over the sequence, for
      one), or channels are compared; a bias that is gathered from a table of relative positions,
      and names like `WindowAttention`, `window_size` and `chunk_size`, tell of short sequences too;
    - the keys are a parameter, or the same for the whole batch: there are as many for any sequence;
    - queries are taken slice by slice in a loop, or the function is a test;
    - the file asks for second derivatives, which fused kernels do not have;
    - the softmax does not run over the keys.

    ## Example

    ```python
    import math

    import torch


    def attend(q, k, v):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        return torch.softmax(scores, dim=-1) @ v
    ```

    ## Use instead

    ```python
    import torch.nn.functional as F


    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v)
    ```

    ## Fix safety

    The call is shown, never applied: `dropout_p` has to follow the training mode, a boolean mask
    means the opposite of that of `masked_fill`, the scale is `1 / sqrt(d)` unless it is given,
    rows whose keys are all masked give other values, and fused kernels round differently.

    ## How to confirm

    A trace replays the forward pass against `scaled_dot_product_attention` on the same shapes,
    where nothing but a factor lies between the products. Or compare the peak of allocated memory
    (`torch.cuda.max_memory_allocated`) of one step, and its time, for the longest sequence that is
    used. A profile shows `aten::_softmax` on a tensor of shape (batch, heads, queries, keys)
    between two matrix products. `memlint bench naive-attention` measures it on your machine.

    ## References

    - [scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    - [FlashAttention: fast and memory-efficient exact attention with IO-awareness](https://arxiv.org/abs/2205.14135)
    """

    code = "MEM508"
    name = "naive-attention"
    severity = Severity.INFO
    applicability = Applicability.DISPLAY
    calls: ClassVar[frozenset[str]] = frozenset(
        {"operator.matmul", "torch.matmul", "torch.bmm", "torch.mm", "torch.einsum",
         "torch.functional.einsum", "einops.einsum", ".matmul", ".bmm", ".mm"}
    )  # fmt: skip
    since = ("torch", (2, 0))
    needs = Needs(
        {"torch"},
        {"softmax", "Softmax"},
        {MATMUL, PRODUCT, "einsum"},
        units=[{MATMUL, PRODUCT, "einsum"}],
        values=[{"softmax", "Softmax"}],
        nearest=True,
        places=may_be_naive,
    )

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Keep the tree, to ask it where values go."""
        self._tree = start.tree
        self._told: set[ast.AST] = set()
        yield from ()

    def check(self, product: Called) -> Iterator[Draft]:
        """A product that may be the second one of attention."""
        found = attention(operation_of(product))
        if found is None or found.softmax.node in self._told or not self._matters(product, found):
            return
        self._told.add(found.softmax.node)
        uses, place = uses_in(self._tree), found.softmax.node
        if uses.scope_of(place) is not uses.scope_of(found.output.node):
            place = found.output.node  # a helper may compute the softmax of others too
        yield self.finding(
            place,
            f"{shown(found.softmax.node)}, over the products of queries and keys, is written to "
            "memory only to be multiplied with the values: scores and weights take queries x keys "
            "numbers for each head, which grows with the square of the sequence",
            HELP,
            confidence=Confidence.HIGH,
            related=[
                Related(found.scores.node, "the scores are computed here"),
                Related(found.output.node, "and the weights are used here only"),
            ],
            fix=_fix(product, found),
        )

    def _matters(self, product: Called, found: Attention) -> bool:
        source, uses = product.source, uses_in(self._tree)
        if source.holds(_HIGHER_DERIVATIVES) or is_learned(found.key):
            return False
        if is_chunked(found, product.context.innermost()) or is_short(found):
            return False
        if is_meant(found, uses, source):
            return False
        return outputs_only(found, uses)

    def observe(self, attention: StoredScores) -> Iterator[Sighting]:
        """Scores of all pairs that go through memory."""
        operation = attention.softmax
        scores = operation.operands[0]
        if attention.is_fallback or min(scores.array.shape[-2:]) < FEWEST_POSITIONS:
            return
        nbytes = scores.array.nbytes * operation.count
        yield Sighting(
            self,
            operation.site,
            f"the scores of this attention, {spell(scores)}, are written to memory and read again",
            "`scaled_dot_product_attention` computes the same without storing the scores",
            self.severity,
            operation.count,
            operation.steps,
            nbytes,
            claims=(FuseAttention(attention),) if attention.before is not None else (),
            totals=", {nbytes_a_step} a step",
        )

    @bench(
        "computes the attention of 2 heads of width 64",
        as_is="softmax(q @ k.T / d) @ v",
        alternative="scaled_dot_product_attention(q, k, v)",
        needs=("torch",),
        sizes=Sizes("positions", quick=512, full=(128, 512, 2048)),
        dtypes=("float32", "bfloat16", "float16"),
    )
    def bench_time(self, size: Size) -> Pair:
        """Without a mask."""
        from torch.nn.functional import scaled_dot_product_attention

        def operands() -> tuple[Any, ...]:
            return _heads(size)

        what = f"{size.dtype}, 1 x 2 x {size.number} x 64"
        return Pair(_written_out, scaled_dot_product_attention, operands, what, settle=size.settle)

    @bench(
        "computes the attention of 2 heads of width 64 to earlier positions",
        as_is="with masked_fill",
        alternative="scaled_dot_product_attention with is_causal=True",
        needs=("torch",),
        sizes=Sizes("positions", quick=512, full=(128, 512, 2048)),
        dtypes=("float32", "bfloat16", "float16"),
        quick=False,
    )
    def bench_causal(self, size: Size) -> Pair:
        """With a causal mask, which is made once."""
        import torch

        def masked(q: Any, k: Any, v: Any, later: Any) -> Any:
            return _written_out(q, k, v, later)

        def fused(q: Any, k: Any, v: Any, later: Any) -> Any:
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

        def operands() -> tuple[Any, ...]:
            shape = (size.number, size.number)
            later = torch.ones(shape, dtype=torch.bool, device=size.device).triu(1)
            return (*_heads(size), later)

        what = f"{size.dtype}, 1 x 2 x {size.number} x 64, causal"
        return Pair(masked, fused, operands, what, settle=size.settle)

    @bench(
        "computes the attention of 2 heads of width 64 in training",
        as_is="softmax(q @ k.T / d) @ v",
        alternative="scaled_dot_product_attention(q, k, v)",
        needs=("torch",),
        sizes=Sizes("positions", quick=512, full=(128, 512, 2048)),
        dtypes=("float32", "bfloat16", "float16"),
    )
    def bench_memory(self, size: Size) -> Weighed:
        """What is kept for the backward pass, beside queries, keys and values."""
        from torch.nn.functional import scaled_dot_product_attention

        from memlint.bench.saved import SavedTensors

        heads = tuple(one.requires_grad_() for one in _heads(size))

        def weighed(attend: Any) -> float:
            saved = SavedTensors()
            with saved.watching():
                output = attend(*heads)
            return float(saved.nbytes(held=[output], besides=heads))

        return Weighed(
            lambda: weighed(_written_out),
            lambda: weighed(scaled_dot_product_attention),
            "bytes held until the backward pass",
            f"{size.dtype}, 1 x 2 x {size.number} x 64",
        )


def _heads(size: Size) -> tuple[Any, Any, Any]:
    from memlint.bench.tensors import normal

    q, k, v = (normal(size, 1, 2, size.number, 64, seed=seed) for seed in range(3))
    return q, k, v


def _written_out(q: Any, k: Any, v: Any, masked: Any = None) -> Any:
    scores = q @ k.transpose(-2, -1) / sqrt(q.shape[-1])
    if masked is not None:
        scores = scores.masked_fill(masked, float("-inf"))
    return scores.softmax(-1) @ v  # memlint: ignore[naive-attention]


def _fix(product: Called, found: Attention) -> DraftFix | None:
    text = replacement_text(found, product.source)
    if text is None:
        return None
    return DraftFix(
        "let one call compute it",
        (Replacement(found.output.node, text),),
        Applicability.DISPLAY,
    )
