"""Copies of an array along axes that a broadcast view would serve: ``x.repeat(n, 1, 1)``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from memlint.analysis.chains import given, integer, integers, is_number, mades, short
from memlint.analysis.values import (
    MIXED,
    Absent,
    Const,
    Linear,
    Made,
    Object,
    Ref,
    Sequence,
    Tensor,
    Unknown,
    Value,
    alternatives,
)
from memlint.late_dataclass import dataclass

# What leaves the sizes of an array as they are.
_SAME_SIZES = frozenset(
    {"to", "float", "half", "bfloat16", "double", "long", "int", "bool", "cuda", "cpu", "detach",
     "clone", "contiguous", "type", "type_as", "requires_grad", "astype", "copy", "normalize",
     "softmax", "exp", "log"}
)  # fmt: skip
_ARITHMETIC = frozenset({"add", "multiply", "mul", "div", "true_divide", "subtract", "sub"})
_REDUCTIONS = frozenset(
    {"mean", "sum", "amax", "amin", "max", "min", "std", "var", "norm", "prod", "median",
     "logsumexp", "argmax", "argmin", "any", "all"}
)  # fmt: skip
# Those of them that tell the places as well, where they are given an axis.
_EXTREMES = frozenset({"max", "min", "median"})
# Pooling into so many places, by how many axes it pools.
_POOLS = {f"adaptive_{kind}_pool{axes}d": axes for kind in ("avg", "max") for axes in (1, 2, 3)}
# Copying less is not worth a word; nor are so few numbers, however often they are repeated.
SMALL = 1 << 14
# Where the number of axes is not known, axes from the front and from the end never meet.
_ANY_RANK = 64
FEW = 16
_STEPS = 8


@dataclass(frozen=True, slots=True)
class Repetition:
    """A copy of ``array`` along axes.

    ``counts`` is how often along each axis of the result, outermost first; an axis is ``new``
    where the array does not have it.
    """

    array: Value
    counts: tuple[Value, ...]
    new: int = 0


def repetition(made: Made, *, numpy: bool) -> Repetition | None:
    """The repetition that an operation is; ``numpy`` where arrays may be of numpy."""
    name = short(made.name)
    if name == "tile" or (name == "repeat" and made.name == ".repeat"):
        return _tiled(made, numpy=numpy)
    if name == "repeat_interleave" or made.name == "numpy.repeat":
        return _interleaved(made)
    return None


def _tiled(made: Made, *, numpy: bool) -> Repetition | None:
    array, *rest = given(made) or (Absent(),)
    if not rest:
        rest = [
            value for key, value in made.keywords if key in ("reps", "dims", "sizes", "repeats")
        ]
    if made.name == ".repeat" and (made.get("axis") != Absent() or _is_numpys(array)):
        return _interleaved(made)
    if made.name == ".repeat" and numpy and len(rest) == 2 and not _is_torchs(array):
        return None
    if len(rest) == 1 and isinstance(rest[0], Sequence):
        if rest[0].items is None:
            return None
        rest = list(rest[0].items)
    if len(rest) < 2:
        return None
    rank = _rank(array)
    new = max(0, len(rest) - rank) if rank is not None else 0
    return Repetition(array, tuple(rest), new)


def _interleaved(made: Made) -> Repetition | None:
    """``np.repeat(x, n, axis=k)``: along an axis of length 1 it is the same."""
    array = given(made)[0] if given(made) else Absent()
    repeats = made.get("repeats", 1)
    axis = integer(_first(made.get("axis", 2), made.get("dim", 2)))
    rank = _rank(array)
    if axis is None or not _is_count(repeats):
        return None
    known = _ANY_RANK if rank is None else rank
    if not -known <= axis < known:
        return None
    counts: list[Value] = [Const(1)] * known
    counts[axis] = repeats
    return Repetition(array, tuple(counts))


def _first(*values: Value) -> Value:
    return next((value for value in values if not isinstance(value, Absent)), Absent())


def _is_count(value: Value) -> bool:
    """A number, and no array of numbers."""
    return is_number(value) or (isinstance(value, Unknown) and value.origin in ("int", "", MIXED))


def _is_numpys(array: Value) -> bool:
    return any(
        isinstance(one, Tensor) and one.lib in ("numpy", "cupy") for one in alternatives(array)
    )


def _is_torchs(array: Value) -> bool:
    for one in alternatives(array):
        if isinstance(one, Tensor) and one.lib == "torch":
            return True
        if isinstance(one, Object) and one.cls == "torch.nn.Parameter":
            return True
    return any(
        made.name.startswith("torch.") or short(made.name) in ("unsqueeze", "cuda", "to")
        for made in _back(array)
    )


def only_ones(found: Repetition) -> bool:
    """Whether all axes that are repeated are new, or known to have length 1."""
    repeated = [
        index
        for index, count in enumerate(found.counts)
        if index >= found.new and integer(count) != 1
    ]
    stretched = any(integer(count) != 1 for count in found.counts)
    rank = len(found.counts) - found.new
    ones = (
        {axis % rank for axis in _ones(found.array, rank) if -rank <= axis < rank} if rank else ()
    )
    return stretched and all(index - found.new in ones for index in repeated)


def is_small(found: Repetition) -> bool:
    """Whether the result is known to be small."""
    array = found.array
    sizes = next((one.sizes for one in alternatives(array) if isinstance(one, Tensor)), None)
    if sizes is None:
        return False
    array_size, counts = _product(sizes), _product(map(integer, found.counts))
    if array_size is None:
        return False
    return array_size <= FEW or (counts is not None and array_size * counts < SMALL)


def _product(numbers: Iterable[object]) -> int | None:
    total = 1
    for number in numbers:
        if not isinstance(number, int):
            return None
        total *= number
    return total


def _rank(array: Value) -> int | None:
    ranks = {len(s) if (s := _sizes(one)) is not None else None for one in alternatives(array)}
    return ranks.pop() if len(ranks) == 1 else None


def _sizes(value: Value) -> tuple[object, ...] | None:
    if isinstance(value, Tensor):
        return value.sizes
    if isinstance(value, Object) and value.cls == "torch.nn.Parameter":
        held = _first(value.fact("data"), value.fact("0"))
        return held.sizes if isinstance(held, Tensor) else None
    return None


def _ones(array: Value, rank: int) -> set[int]:
    """The axes that are known to have length 1 on every path."""
    found = [_ones_of(one, rank) for one in alternatives(array)]
    return set.intersection(*found) if found else set()


def _ones_of(value: Value, rank: int) -> set[int]:
    sizes = _sizes(value)
    if sizes is not None:
        return {axis for axis, size in enumerate(sizes) if size == 1}
    for made in _back(value):
        axes = _made_ones(made)
        if axes is not None:
            return {axis if axis >= 0 else axis + rank for axis in axes}
        arrays = _arrays(made)
        if short(made.name) in _ARITHMETIC and len(arrays) == 2:
            return _ones(arrays[0], rank) & _ones(arrays[1], rank)
    return set()


def _arrays(made: Made) -> tuple[Value, ...]:
    """The operands that are no numbers."""
    return tuple(value for value in given(made) if not is_number(value))


def _back(value: Value) -> Iterator[Made]:
    """The operations that a value came through with its sizes, the last first."""
    for _ in range(_STEPS):
        made = next(mades(value), None)
        if made is None:
            return
        yield made
        operands = given(made)
        if short(made.name) in _ARITHMETIC:
            operands = _arrays(made)
            if len(operands) != 1:
                return
        elif short(made.name) not in _SAME_SIZES or not operands:
            return
        value = operands[0]


def _made_ones(made: Made) -> set[int] | None:
    """The axes of length 1 that an operation makes; ``None`` where it hands sizes on."""
    name = short(made.name)
    if name in ("unsqueeze", "expand_dims"):
        axis = integer(_first(made.get("dim", 1), made.get("axis", 1)))
        inner = _ones_before(made)
        if axis is None:
            return set()
        return {axis} | {one + (one >= axis) for one in inner if one >= 0 and axis >= 0}
    if name == "getitem":
        extreme = _extreme_behind(made)
        return _indexed_ones(made.inputs[1:]) if extreme is None else _made_ones(extreme)
    if name in ("view", "reshape"):
        return {axis for axis, size in enumerate(_sizes_given(made)) if size == 1}
    if name in _POOLS:
        return _pooled_ones(made, _POOLS[name])
    if name in _REDUCTIONS:
        kept = _first(made.get("keepdim"), made.get("keepdims"))
        axis = integer(_first(made.get("dim", 1), made.get("axis", 1)))
        return {axis} if kept == Const(True) and axis is not None else set()
    return None if name in _SAME_SIZES | _ARITHMETIC else set()


def _extreme_behind(part: Made) -> Made | None:
    """The reduction of ``x.max(2, keepdim=True)[0]``, which gives values and places."""
    made = next(mades(part.inputs[0]), None)
    if made is None or short(made.name) not in _EXTREMES or part.inputs[1:] != (Const(0),):
        return None
    by_axis = isinstance(integer(_first(made.get("dim", 1), made.get("axis", 1))), int)
    return made if by_axis else None


def _sizes_given(made: Made) -> tuple[int | None, ...]:
    """The sizes that ``x.view(n, 1, -1)`` asks for."""
    by_name = _first(made.get("shape"), made.get("size"))
    return integers(given(made)[1:] if isinstance(by_name, Absent) else (by_name,))


def _pooled_ones(made: Made, axes: int) -> set[int]:
    """The axes that are pooled into one number."""
    size = made.get("output_size", 1)
    if integer(size) is not None:
        return set(range(-axes, 0)) if integer(size) == 1 else set()
    if not isinstance(size, Sequence) or size.items is None or len(size.items) != axes:
        return set()
    return {place - axes for place, one in enumerate(size.items) if integer(one) == 1}


def _ones_before(made: Made) -> set[int]:
    """Of ``x.unsqueeze(0).unsqueeze(1)`` the axis of the first."""
    before = next(mades(given(made)[0]), None) if given(made) else None
    if before is None or short(before.name) not in ("unsqueeze", "expand_dims", "getitem"):
        return set()
    return _made_ones(before) or set()


def _indexed_ones(keys: tuple[Value, ...]) -> set[int]:
    """The axes of length 1 of ``x[None, :, None]`` and ``x[:, :1]``."""
    places = [place for place, key in enumerate(keys) if key == Const("...")]
    if not places:
        return set(_ones_in_order(keys)[0])
    behind, complete = _ones_in_order(keys[: places[0] : -1])
    found = set(_ones_in_order(keys[: places[0]])[0])
    return found | {-1 - axis for axis in behind} if complete else found


def _ones_in_order(keys: tuple[Value, ...]) -> tuple[list[int], bool]:
    """The axes of length 1 that keys make one after the other, and whether all were known."""
    found: list[int] = []
    axis = 0
    for key in keys:
        if is_newaxis(key) or (isinstance(key, Sequence) and _is_one_long(key)):
            found.append(axis)
        elif isinstance(key, (Const, Linear)):
            continue  # takes an axis away
        elif not isinstance(key, Sequence):
            return found, False
        axis += 1
    return found, True


def _is_one_long(key: Sequence) -> bool:
    """``:1``, ``-1:`` and ``i : i + 1``."""
    if key.kind != "slice" or key.items is None or len(key.items) != 3:
        return False
    start, stop, step = key.items
    if step not in (Const(None), Const(1)):
        return False
    if stop == Const(None):
        return start == Const(-1)
    if start in (Const(None), Const(0)):
        return stop == Const(1)
    first, last = integer(start), integer(stop)
    if first is not None and last is not None:
        return last - first == 1 and (first < 0) == (last < 0)
    return (
        isinstance(start, Linear)
        and isinstance(stop, Linear)
        and start.terms == stop.terms
        and stop.offset - start.offset == 1
    )


def is_newaxis(key: Value) -> bool:
    """``None`` in a subscript."""
    return (isinstance(key, Const) and key.value is None) or (
        isinstance(key, Ref) and key.name.endswith(".newaxis")
    )


def arguments_text(node: ast.AST) -> list[ast.expr] | None:
    """The counts of ``x.repeat(a, b)`` and ``x.repeat((a, b))`` as they are written."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    given_args: list[ast.expr] = list(node.args)
    if len(given_args) == 1 and isinstance(given_args[0], (ast.Tuple, ast.List)):
        given_args = list(given_args[0].elts)
    if any(isinstance(one, ast.Starred) for one in given_args):
        return None
    return given_args
