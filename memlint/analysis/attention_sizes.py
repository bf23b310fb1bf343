"""How large the scores of attention are: too small to matter, or bounded by how they are taken."""

from __future__ import annotations

from memlint.analysis.attention import Attention
from memlint.analysis.attention_steps import CASTS, softmax_input
from memlint.analysis.chains import given, mades, short
from memlint.analysis.events import Enclosing
from memlint.analysis.values import (
    Made,
    Object,
    Sequence,
    Symbol,
    Tensor,
    Value,
    alternatives,
    deps_of,
)

SHORTEST = 128
_STEPS = 6


def is_short(found: Attention) -> bool:
    """Whether the number of keys is known and too small to matter."""
    for one in alternatives(softmax_input(found.softmax)):
        if isinstance(one, Tensor) and one.sizes:
            last = one.sizes[-1]
            if isinstance(last, int) and last <= SHORTEST:
                return True
    return False


def is_learned(key: Value) -> bool:
    """Whether the keys are a parameter, of which there are as many for any sequence."""
    for _ in range(_STEPS):
        if any(isinstance(one, Object) for one in alternatives(key)):
            return True
        made = next(mades(key), None)
        if made is None or not given(made):
            return False
        if short(made.name) not in CASTS | {"t", "T", "mT", "transpose", "expand", "unsqueeze"}:
            return False
        key = given(made)[0]
    return False


def is_chunked(found: Attention, loop: Enclosing | None) -> bool:
    """Whether queries are taken slice by slice in a loop, which bounds the memory; heads that
    are taken one by one from queries and keys alike do not."""
    if loop is None or loop.loop.kind != "range":
        return False
    symbol = loop.loop.symbol
    pieces = [made for made in mades(found.query) if short(made.name) == "getitem"]
    return any(_by_slice(made, symbol) for made in pieces) or (
        bool(pieces) and not any(_picks(made, symbol) for made in _pieces_of(found.key))
    )


def _pieces_of(value: Value) -> list[Made]:
    found: list[Made] = []
    for _ in range(_STEPS):
        made = next(mades(value), None)
        if made is None or not given(made):
            break
        found.append(made)
        value = given(made)[0]
    return [made for made in found if short(made.name) == "getitem"]


def _by_slice(made: Made, symbol: Symbol) -> bool:
    return any(
        isinstance(key, Sequence) and symbol in deps_of(part)
        for key in made.inputs[1:]
        if isinstance(key, Sequence)
        for part in key.items or ()
    )


def _picks(made: Made, symbol: Symbol) -> bool:
    return any(symbol in deps_of(key) for key in made.inputs[1:])
