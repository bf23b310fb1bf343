"""Chains of operations, read backwards from a value: what made it, what made that, and so on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.events import Called
from memlint.analysis.values import (
    Absent,
    Const,
    Linear,
    Made,
    Object,
    Ref,
    Sequence,
    Tensor,
    Value,
    alternatives,
    made_of,
)
from memlint.late_pattern import late_pattern

# The operator ``@`` in a text: a decorator stands at the head of a line, and no blank follows it.
# Letters and signs come first, here and below: a search for them is much faster than one for what
# may precede them.
MATMUL = late_pattern(
    r"@(?:[=\s\\]|(?:(?<=[\w\])\"']@)|(?<=[\w\])\"'][ \t]@)|(?<=[\w\])\"'][ \t]{2}@))[\w(\[])"
)
PRODUCT = late_pattern(r"matmul|mm\b(?:(?<!\w..)|(?<=bmm)(?<!\w...))|dot\b(?<!\w...)")
DEPTH = 14
# Branches and joins multiply ways; beyond so many steps a chain is not followed.
MOST_STEPS = 200

NAMESPACES = (
    "torch.nn.functional.",
    "torch.special.",
    "torch.linalg.",
    "torch.",
    "numpy.linalg.",
    "numpy.",
    "cupy.",
    "operator.",
    ".",
)


def short(name: str) -> str:
    """The name of an operation of arrays, however it is written: ".softmax", "torch.softmax"
    and "torch.nn.functional.softmax" are "softmax"; in-place forms lose their mark."""
    for prefix in NAMESPACES:
        if name.startswith(prefix):
            last = name[len(prefix) :]
            return last.rstrip("_") if "." not in last else name
    return "einsum" if name == "einops.einsum" else name


def operation_of(called: Called) -> Made:
    """The operation that an event tells of."""
    return Made(called.name, called.node, called.operands, tuple(called.args.keywords.items()))


def mades(value: Value) -> Iterator[Made]:
    """The operations that may have given a value."""
    for one in alternatives(value):
        made = made_of(one)
        if made is not None:
            yield made


def layer_of(made: Made) -> str:
    """The class of the library's layer that a call is of, "" for all others."""
    if made.name == "call" and made.inputs:
        for one in alternatives(made.inputs[0]):
            if isinstance(one, Object):
                return one.cls
    return ""


def callee_text(made: Made) -> str:
    """The last name of what is called, as it is written."""
    func = made.node.func if isinstance(made.node, ast.Call) else None
    return getattr(func, "attr", getattr(func, "id", ""))


def given(made: Made) -> tuple[Value, ...]:
    """The operands: without the callee of a call nobody can see into."""
    return made.inputs[1:] if made.name == "call" else made.inputs


def integer(value: Value) -> int | None:
    """The number that a value is known to be."""
    if isinstance(value, Const) and type(value.value) is int:
        return value.value
    return None


def integers(values: tuple[Value, ...]) -> tuple[int | None, ...]:
    """Numbers that are given one by one or in a sequence; ``None`` for those not known."""
    if len(values) == 1 and isinstance(values[0], Sequence):
        values = values[0].items or ()
    return tuple(map(integer, values))


def is_number(value: Value) -> bool:
    """Whether a value is a Python number, whatever its value."""
    if isinstance(value, (Linear, Ref)):
        return True
    return isinstance(value, Const) and type(value.value) in (int, float)


def swaps(made: Made) -> bool | None:
    """Whether an operation exchanges the last axis with another one, as ``k.transpose(-2, -1)``
    does; ``None`` for one of ``(1, 2)`` where the rank is not known."""
    name = short(made.name)
    if name in ("T", "mT", "H", "mH", "t", "adjoint"):
        return True
    exchanged = axes_exchanged(made)
    if exchanged is not None:
        if not exchanged:
            return "numpy" in made.name
        return _exchanges_last(exchanged, rank_of(made.inputs[0]) if made.inputs else None)
    if name == "permute":
        order = order_of(made)
        return len(order) > 1 and order[-1] not in (len(order) - 1, -1, None)
    if made.name == "einops.rearrange":
        return _rearrange_swaps(made)
    return False


_EXCHANGES = {
    "transpose": ("dim0", "dim1"),
    "swapdims": ("dim0", "dim1"),
    "swapaxes": ("axis0", "axis1", "axis2"),
    "movedim": ("source", "destination"),
    "moveaxis": ("source", "destination"),
}


def axes_exchanged(made: Made) -> tuple[int | None, ...] | None:
    """The two axes that an operation exchanges, which may not be known; none where it is given
    none, ``None`` where it is no exchange."""
    name = short(made.name)
    keys = _EXCHANGES.get(name)
    if keys is None:
        return None
    by_name = tuple(value for key, value in made.keywords if key in keys)
    axes = integers(by_name or made.inputs[1:])
    if len(axes) != 2:
        return ()
    first, second = axes
    if "move" in name and (first is None or second is None or abs(first - second) != 1):
        return None
    return axes


def order_of(made: Made) -> tuple[int | None, ...]:
    """The order of axes that a ``permute`` is given."""
    by_name = made.get("dims")
    return integers(made.inputs[1:] if isinstance(by_name, Absent) else (by_name,))


def _exchanges_last(axes: tuple[int | None, ...], rank: int | None) -> bool | None:
    if None in axes:
        return False
    if rank is not None:
        return rank - 1 in {axis % rank for axis in axes if axis is not None}
    if -1 in axes or 3 in axes:
        return True
    return None if set(axes) == {1, 2} else False


def rank_of(value: Value) -> int | None:
    """The number of axes of an array, where all that it may be agree on it."""
    ranks = {one.layout.rank if isinstance(one, Tensor) else None for one in alternatives(value)}
    return ranks.pop() if len(ranks) == 1 else None


def rearrangement(made: Made) -> tuple[list[str], list[str]] | None:
    """The axes of an einops pattern on both sides, groups as "(h w)"."""
    pattern = made.get("pattern", 1)
    if not isinstance(pattern, Const) or not isinstance(pattern.value, str):
        return None
    sides = [_axes(side) for side in pattern.value.split("->")]
    return (sides[0], sides[1]) if len(sides) == 2 else None


def _axes(side: str) -> list[str]:
    found: list[str] = []
    for word in side.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            found.append("(")
        elif found and found[-1].startswith("(") and not found[-1].endswith(")"):
            found[-1] += ")" if word == ")" else (" " if found[-1] != "(" else "") + word
        else:
            found.append(word)
    return found


def _rearrange_swaps(made: Made) -> bool:
    sides = rearrangement(made)
    if sides is None or not all(sides):
        return False
    left, right = (side[-1].strip("()").split()[-1:] for side in sides)
    return left != right
