"""Casts to wider numbers on the host, right before a move to a device."""

from __future__ import annotations

import ast

from memlint.analysis.births import taken_only_by
from memlint.analysis.events import Called
from memlint.analysis.knowledge import ITEMSIZE, dtype_of
from memlint.analysis.knowledge.factories import FACTORIES
from memlint.analysis.knowledge.images import KEEPING_DTYPE, READERS, TO_ARRAY
from memlint.analysis.placement import HOST, moves_off_host
from memlint.analysis.uses import Uses
from memlint.analysis.values import (
    Absent,
    Bound,
    Const,
    Made,
    Ref,
    Sequence,
    Tensor,
    Value,
    alternatives,
    devices_of,
    made_of,
    plain,
)
from memlint.late_dataclass import dataclass
from memlint.rule import Replacement
from memlint.source.model import Source

_CASTS = {
    ".float": "float32", ".double": "float64", ".long": "int64", ".int": "int32",
    ".half": "float16", ".bfloat16": "bfloat16",
}  # fmt: skip
_ELEMENTWISE = frozenset(
    {"operator.true_divide", "operator.multiply", "operator.subtract", "operator.add", ".div",
     ".div_", ".mul", ".mul_", ".sub", ".sub_", ".add", ".add_", ".clamp", ".permute",
     ".unsqueeze", ".contiguous", ".transpose", ".view", ".reshape", "operator.getitem"}
)  # fmt: skip
# The same as a text shows them.
CAST_METHODS = frozenset(name[1:] for name in _CASTS)
ELEMENTWISE_METHODS = frozenset(name[1:] for name in _ELEMENTWISE if name.startswith("."))
# Of these it is what comes first that tells where the result lies.
_OF_ONE_ARRAY = KEEPING_DTYPE - {"torch.cat", "torch.stack"}
_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Widening:
    """``move`` moves what ``cast`` made of numbers of dtype ``narrow``; ``pure`` where nothing
    happens between the two.  ``cast`` is ``None`` where the move converts on its way."""

    move: Called
    cast: Made | None
    narrow: str
    wide: str
    pure: bool

    @property
    def factor(self) -> int:
        """How many times the bytes go over the bus."""
        return ITEMSIZE[self.wide] // ITEMSIZE[self.narrow]


def widening_of(move: Called, uses: Uses) -> Widening | None:
    """The widening cast that a move comes after, or does itself."""
    node = move.node
    if move.receiver is None or not isinstance(node, ast.Call) or not _to_device(move, node):
        return None
    if move.name == ".to" and (target := _dtype_given(move)) is not None:
        if not isinstance(move.args.get("non_blocking", 2), Absent):
            return None
        return _widening(move, None, dtype_on_host(move.receiver), target, pure=True)
    value, taker, pure = move.receiver, node, True
    for _ in range(_DEPTH):
        made = _only_made(value)
        if made is None or not made.inputs or not isinstance(made.node, ast.expr):
            return None
        if not taken_only_by(made.node, taker, uses):
            return None
        target = _cast_to(made)
        if target is not None:
            return _widening(move, made, dtype_on_host(made.inputs[0]), target, pure=pure)
        others = made.inputs[1:]
        if made.name not in _ELEMENTWISE or any(isinstance(one, Tensor) for one in others):
            return None
        value, taker, pure = made.inputs[0], made.node, False  # type: ignore[assignment]
    return None


def _widening(
    move: Called, cast: Made | None, narrow: str | None, wide: str, *, pure: bool
) -> Widening | None:
    if narrow not in ITEMSIZE or wide not in ITEMSIZE or ITEMSIZE[wide] <= ITEMSIZE[narrow]:
        return None
    return Widening(move, cast, narrow, wide, pure)


def _to_device(move: Called, node: ast.Call) -> bool:
    if move.name == ".cuda":
        return True
    keyword = next((k.value for k in node.keywords if k.arg == "device"), None)
    shown = keyword if keyword is not None else node.args[0] if node.args else None
    given = move.args.get("device", 0)
    if isinstance(given, Absent) or dtype_of(given) is not None:
        return False
    return moves_off_host(given, shown)


def _dtype_given(move: Called) -> str | None:
    """The dtype that ``x.to(device, dtype)`` asks for besides."""
    return dtype_of(move.args.get("dtype", 1))


def _cast_to(made: Made) -> str | None:
    if made.name in _CASTS:
        return _CASTS[made.name]
    if made.name in (".to", ".type") and len(made.inputs) == 2 and not made.keywords:
        return dtype_of(made.inputs[1])
    return None


def _only_made(value: Value) -> Made | None:
    found = alternatives(value)
    return made_of(found[0]) if len(found) == 1 else None


def dtype_on_host(value: Value) -> str | None:
    """The dtype of an array in host memory, where that or where it was read from tells."""
    for _ in range(_DEPTH):
        value = plain(value) if isinstance(value, Bound) else value
        if isinstance(value, Tensor):
            if value.sizes == ():
                return None
            if value.dtype is not None:
                return value.dtype if _lies_on_host(value) else None
        made = _only_made(value)
        if made is None:
            return None
        if made.name in READERS:
            return None if _reads_as_it_is(made) else "uint8"
        given = [v for k, v in made.keywords if k == "dtype"]
        if given:
            return dtype_of(given[0]) if _lies_on_host(value) else None
        if made.name not in KEEPING_DTYPE | TO_ARRAY or not made.inputs:
            return None
        if len(made.inputs) > 1 and made.name in TO_ARRAY:
            return dtype_of(made.inputs[1])
        value = made.inputs[0]
        if isinstance(value, Sequence):
            value = value.items[0] if value.items else value.element
    return None


def _lies_on_host(value: Value, depth: int = 0) -> bool:
    """Whether an array is known to lie in host memory, by what it was made of."""
    return depth < _DEPTH and all(
        (
            isinstance(one, Tensor)
            and (one.lib == "numpy" or bool(one.devices and one.devices <= HOST))
        )
        or _made_on_host(one, depth)
        for one in alternatives(value)
    )


def _made_on_host(value: Value, depth: int) -> bool:
    if isinstance(value, Sequence):
        return all(_lies_on_host(one, depth + 1) for one in value.items or (value.element,))
    made = made_of(plain(value) if isinstance(value, Bound) else value)
    if made is None or devices_of(value) or made.name in (".cuda", ".type", ".type_as"):
        return False
    if made.name == ".to" and dtype_of(made.get("dtype", 1)) is None:
        return False
    if made.name in READERS or made.name == "torch.from_numpy" or made.name.startswith("numpy."):
        return True
    if any(key == "device" for key, _ in made.keywords):
        return False
    if made.name in FACTORIES or made.name == "torch.tensor":
        return not any(isinstance(one, Tensor) and one.lib != "numpy" for one in made.inputs)
    arrays = made.inputs[:1] if made.name in _OF_ONE_ARRAY else made.inputs
    arrays = tuple(one for one in arrays if not isinstance(one, (Const, Ref)))
    return bool(arrays) and all(_lies_on_host(one, depth + 1) for one in arrays)


def _reads_as_it_is(made: Made) -> bool:
    """``cv2.imread(path, cv2.IMREAD_UNCHANGED)`` may give 16 bits."""
    return made.name == "cv2.imread" and any(
        isinstance(one, Const)
        or (isinstance(one, Ref) and "UNCHANGED" in one.name)
        or (isinstance(one, Ref) and "ANYDEPTH" in one.name)
        for one in made.inputs[1:]
    )


def moved_first(found: Widening, source: Source) -> Replacement | None:
    """The move before the cast, where both stand in one expression and nothing between."""
    move, cast = found.move.node, found.cast
    assert isinstance(move, ast.Call)
    if cast is None or not found.pure or not isinstance(move.func, ast.Attribute):
        return None
    inner = cast.node
    if move.func.value is not inner or not isinstance(inner, ast.Call):
        return None
    if not isinstance(inner.func, ast.Attribute):
        return None
    whole, middle = source.segment(move), source.segment(inner)
    base = source.segment(inner.func.value)
    if not whole.startswith(middle) or not middle.startswith(base):
        return None
    return Replacement(move, base + whole[len(middle) :] + middle[len(base) :])
