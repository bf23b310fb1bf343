"""einops: axes split, moved and merged by a pattern."""

from __future__ import annotations

from memlint.analysis import axes
from memlint.analysis.knowledge.model import Call, Table, rows, table
from memlint.analysis.knowledge.numbers import size_of
from memlint.analysis.knowledge.results import fresh, perhaps_view
from memlint.analysis.values import Const, Value


def rearrange(call: Call) -> Value | None:
    """``rearrange(x, pattern, **lengths)``."""
    base, pattern = call.tensor, call.get("pattern", at=1)
    if base is None:
        return None
    if not (isinstance(pattern, Const) and isinstance(pattern.value, str)):
        return perhaps_view(call, base, axes.OPAQUE, None)
    lengths = {name: size_of(value) for name, value in call.args.keywords.items()}
    lengths.pop("pattern", None)
    layout, copies = axes.rearrange(base.layout, pattern.value, lengths)
    return perhaps_view(call, base, layout, copies)


def unknown(call: Call) -> Value | None:
    """``reduce`` and ``repeat``: only the place of the result is known."""
    base = call.tensor
    return None if base is None else fresh(call, axes.OPAQUE, of=(base,))


FUNCTIONS: Table = table(
    rows(
        rearrange,
        "einops.rearrange",
        "x, 'b t (h d) -> b h t d', h=2",
        "x, 'b c h w -> b h w c'",
        "x, 'b c h w -> b (h w) c'",
        "x, 'b h w -> b (h w)'",
        "x, 'h w -> w h'",
        "x, 'b t d -> (b t) d'",
        "x, 'b (t p) d -> b t p d', p=3",
    ),
    rows(unknown, "einops.reduce", "x, 'b t d -> b d', 'mean'"),
)
"""Functions by their full names."""
