"""Which element of an array the iterations of a parallel loop update: one each, or the same."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from memlint.analysis.elements import Element, stored_element
from memlint.analysis.events import Loop, SharedUpdate
from memlint.analysis.knowledge import SliceValue
from memlint.analysis.linear import linear
from memlint.analysis.values import (
    Const,
    Linear,
    Made,
    Ref,
    Sequence,
    Symbol,
    Tensor,
    Unknown,
    Value,
    alternatives,
    deps_of,
    made_of,
)
from memlint.analysis.walking import walk
from memlint.late_pattern import late_pattern

# What an index may be, seen from the iterations of the loop: one of each iteration's own, the
# same for all of them, one that the data say, or not known.
OWN, SAME, DATA, UNSEEN = "own", "same", "data", "unseen"
# Operations on numbers that do not keep two different ones apart.
WRAPPING = frozenset({"operator.remainder", "operator.bitwise_and"})
ARITHMETIC = frozenset(
    {"add", "subtract", "multiply", "true_divide", "floordivide", "floor_divide", "negative", "pow"}
)
ROUNDING = frozenset(
    {"int", "int8", "int16", "int32", "int64", "intp", "uint8", "uint16", "uint32", "uint64",
     "floor", "ceil", "round", "rint", "trunc", "abs", "min", "max", "minimum", "maximum", "float",
     "searchsorted", "digitize", "argmin", "argmax"}
)  # fmt: skip
# Arrays of which no two elements are alike.
DISTINCT = frozenset(
    {"arange", "argsort", "permutation", "nonzero", "flatnonzero", "where", "unique", "argwhere",
     "argpartition", "choice", "randperm", "linspace"}
)  # fmt: skip
DISTINCT_NAME = late_pattern(
    r"(^|_)(perm|permutation|order|ordering|sorted|unique|uniq|active|inverse|inv|free|unsettled|"
    r"nonzero|alive|permuted|arg_?sort)(_|\d|$)",
    re.IGNORECASE,
)
DEPTH = 8


def how_shared(update: SharedUpdate) -> str:
    """``SAME`` where iterations update one element, ``DATA`` where which one is up to the data;
    ``OWN`` or ``UNSEEN`` else."""
    if update.loop.trips == 1:
        return OWN
    element = _element(update)
    if element is None or not _comes_from_outside(element, update):
        return UNSEEN
    kinds = {_of_item(item, update) for item in element.index}
    if OWN in kinds:
        return OWN
    if UNSEEN in kinds:
        return UNSEEN
    return DATA if DATA in kinds else SAME


def _element(update: SharedUpdate) -> Element | None:
    access = update.access
    keys = tuple(
        Sequence("slice", (item.start, item.stop, item.step))
        if isinstance(item, SliceValue)
        else item
        for item in access.index
    )
    found = {
        (one.text, one.index): one
        for value in alternatives(access.value)
        if (one := stored_element(access.node, value, keys)) is not None
    }
    return next(iter(found.values())) if len(found) == 1 else None


def _comes_from_outside(element: Element, update: SharedUpdate) -> bool:
    """Whether all iterations have the array in common."""
    if update.bound is not None:
        names = {node.id for node in walk(element.node) if isinstance(node, ast.Name)}
        return not names & update.bound
    return all(
        (isinstance(one, Tensor) and one.site is not None)
        or (isinstance(one, Unknown) and one.origin in ("parameter", "numpy") and not one.made)
        for one in alternatives(element.array)
    ) and not deps_of(element.array)


def _of_item(item: Value, update: SharedUpdate) -> str:
    if isinstance(item, Sequence) and item.kind == "slice":
        return _of_parts(item.items or (), update)
    kinds = {_of_value(one, update, DEPTH) for one in alternatives(item)}
    return _worst(kinds)


def _of_parts(parts: Iterable[Value], update: SharedUpdate) -> str:
    return _worst({_of_item(part, update) for part in parts})


def _worst(kinds: set[str]) -> str:
    return next((kind for kind in (OWN, UNSEEN, DATA) if kind in kinds), SAME)


def _of_value(value: Value, update: SharedUpdate, depth: int) -> str:
    form = linear(value)
    if form is not None:
        return _of_form(form, update)
    if isinstance(value, (Const, Ref)):
        return SAME
    made = made_of(value)
    if made is not None and depth:
        return _of_made(made, update, depth)
    if isinstance(value, Unknown) and value.origin == "parameter" and not value.deps:
        return SAME
    return UNSEEN


def _of_made(made: Made, update: SharedUpdate, depth: int) -> str:
    name = made.name.rpartition(".")[2]
    if made.name == "operator.getitem":
        return UNSEEN if _is_distinct(made) else DATA
    parts = [_of_value(one, update, depth - 1) for v in made.inputs for one in alternatives(v)]
    kind = _worst(set(parts))
    if kind == DATA and any(_runs_over_part(value, update) for value in made.inputs):
        # ``out[starts[i] + k]`` for as many ``k`` as there are from there.
        return UNSEEN
    if made.name in WRAPPING:
        return DATA if kind == OWN else kind
    if name in ARITHMETIC or name in ROUNDING:
        # A whole part of the numbers may go to one iteration: ``i * width + k``.
        return UNSEEN if kind == OWN else kind
    return UNSEEN


def _is_distinct(made: Made) -> bool:
    """Whether an index is taken from an array that holds each number once."""
    array = made.inputs[0]
    origin = made_of(array)
    if origin is not None and origin.name == "operator.getitem":
        origin = made_of(origin.inputs[0])
    if origin is not None and origin.name.rpartition(".")[2] in DISTINCT:
        return True
    node = made.node.value if isinstance(made.node, ast.Subscript) else made.node
    name = getattr(node, "id", getattr(node, "attr", ""))
    return DISTINCT_NAME.search(name) is not None


def _of_form(form: Linear, update: SharedUpdate) -> str:
    """The kind of an index that is a sum of loop indices."""
    if any(symbol.kind == "thread" for symbol in form.symbols):
        return OWN
    loops = {loop.symbol: loop for loop in update.access.loops}
    parallel = update.loop.symbol
    stride = abs(form.coefficient(parallel))
    inner = [(s, abs(c)) for s, c in form.terms if s in _inside(update) and s is not parallel]
    if stride:
        overlaps = any(
            other >= stride and loops[symbol].trips != 1 and not _segment(loops[symbol], update)
            for symbol, other in inner
        )
        return SAME if overlaps else OWN
    if any(_segment(loops[symbol], update) for symbol, _ in inner):
        return OWN
    unseen = [s for s in form.symbols if s.kind == "loop" and s not in loops]
    return UNSEEN if unseen else SAME


def _inside(update: SharedUpdate) -> frozenset[Symbol]:
    """The loops that run within one iteration of the parallel one."""
    symbols = [loop.symbol for loop in update.access.loops]
    at = symbols.index(update.loop.symbol) + 1 if update.loop.symbol in symbols else 0
    return frozenset(symbols[at:])


def _segment(loop: Loop, update: SharedUpdate) -> bool:
    """Whether a loop runs over a part that is the iteration's own: ``range(ends[i], ends[i +
    1])``, ``range(i * share, (i + 1) * share)``, ``range(i, n, workers)``; a triangle is none."""
    parallel = {update.loop.symbol}
    inside = _inside(update)
    for other in update.access.loops:
        own = deps_of(other.start) & parallel and deps_of(other.stop) & parallel
        if own and other.symbol in inside and other is not loop:
            parallel.add(other.symbol)
    starts, stops = bool(deps_of(loop.start) & parallel), bool(deps_of(loop.stop) & parallel)
    if loop.kind not in ("range", "prange"):
        # Where a loop of another kind ends cannot be told.
        return loop.kind in ("while", "iterable") or starts or stops
    strided = loop.step != Const(1)
    # Loops that begin with the same number overlap there at least.
    return (starts and (stops or strided)) or (not starts and _is_open(loop.start))


def _runs_over_part(value: Value, update: SharedUpdate) -> bool:
    """Whether a number counts up to where the data of an iteration say."""
    form = linear(value)
    inside = _inside(update)
    return form is not None and any(
        loop.symbol in form.symbols and loop.symbol in inside and _is_open(loop.stop)
        for loop in update.access.loops
    )


def _is_open(bound: Value) -> bool:
    """Whether a bound may have been computed in the iteration."""
    return any(
        isinstance(one, Unknown) and not (one.origin == "parameter" and not one.deps)
        for one in alternatives(bound)
    )
