"""Attention that is written out: ``softmax(q @ k.T) @ v`` as a chain of operations.

What made the operands of a product tells that it may be the second one of attention; that
the scores and the weights go nowhere else is then asked of the program's text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from memlint.analysis.chains import (
    DEPTH,
    MOST_STEPS,
    callee_text,
    given,
    integer,
    integers,
    is_number,
    layer_of,
    mades,
    rearrangement,
    short,
    swaps,
)
from memlint.analysis.einsum import Equation, equation_of, operands_of
from memlint.analysis.values import (
    Absent,
    Const,
    Made,
    Object,
    Sequence,
    Tensor,
    Value,
    alternatives,
)

PRODUCTS = frozenset({"matmul", "bmm", "mm", "einsum"})
SCORES = PRODUCTS | {"baddbmm"}
# What may happen to the weights, or to a query or key, without a change of the method.
_CASTS = frozenset(
    {"to", "type", "type_as", "float", "half", "bfloat16", "double", "cuda", "contiguous"}
)
_SHAPES = frozenset(
    {"reshape", "view", "flatten", "unflatten", "squeeze", "unsqueeze", "transpose", "permute", "T",
     "mT", "t", "swapaxes", "swapdims", "movedim", "expand", "view_as", "reshape_as"}
)  # fmt: skip
AFTER = _CASTS | _SHAPES | {"dropout", "masked_fill", "nan_to_num", "imasked_fill"}
_SCALES = frozenset(
    {"multiply", "true_divide", "imultiply", "itrue_divide", "mul", "div", "divide"}
)
_BIASES = frozenset({"add", "iadd", "subtract", "isubtract", "sub"})
BEFORE = _CASTS | _SHAPES | _SCALES | _BIASES | {"masked_fill", "where"}
_OF_QUERIES = (
    _CASTS | _SHAPES | _SCALES | _BIASES
    | {"normalize", "clone", "chunk", "split", "unbind", "getitem", "relu", "dropout", "norm"}
)  # fmt: skip
_DROPOUT = re.compile(r"drop", re.IGNORECASE)
_SOFTMAX = re.compile(r"softmax$", re.IGNORECASE)
# Factors of scores that are no mere scale.
_GATES = re.compile(r"mask|bias|gate|weight|decay|dist|adj|pos|prior|edge", re.IGNORECASE)
_QUERY = re.compile(r"(^|_)(q|qs|query|queries|theta)(_|$|\d)|^q|query", re.IGNORECASE)
_KEY = re.compile(r"(^|_)(k|ks|key|keys|phi)(_|$|\d)|^k|key", re.IGNORECASE)
SHORTEST = 128


@dataclass(frozen=True, slots=True)
class Attention:
    """A product that may be the second of attention, and what leads to it.

    ``output``, ``softmax`` and ``scores`` are the three operations, ``nodes`` all that lies
    between the scores and the output; ``value`` is what is multiplied with the weights.
    """

    output: Made
    softmax: Made
    scores: Made
    query: Value
    key: Value
    value: Value
    nodes: frozenset[ast.AST]


@dataclass(frozen=True, slots=True)
class _Way:
    """A way back from an operand to an operation that is looked for."""

    target: Made
    passed: tuple[Made, ...]


def attention(output: Made) -> Attention | None:
    """The attention that ``output`` may be the second product of."""
    if short(output.name) not in PRODUCTS:
        return None
    operands = operands_of(output) if short(output.name) == "einsum" else output.inputs
    if len(operands) != 2:
        return None
    for index in (0, 1):
        for way in _ways(operands[index], is_softmax, _keeps_weights):
            if not _contracts_keys(output, index, way):
                continue
            found = _from_softmax(output, way, operands[1 - index])
            if found is not None:
                return found
    return None


def is_softmax(made: Made) -> bool:
    """A function, method or layer."""
    return short(made.name) == "softmax" or layer_of(made) == "torch.nn.Softmax"


def is_product(made: Made) -> bool:
    """What may give scores."""
    return short(made.name) in SCORES


def _from_softmax(output: Made, weights: _Way, value: Value) -> Attention | None:
    softmax = weights.target
    for given_scores in given(softmax)[:1] or (softmax.get("input"),):
        for way in _ways(given_scores, is_product, _keeps_scores):
            scores = way.target
            pair = _query_and_key(scores)
            if pair is None or not _over_keys(softmax, scores):
                continue
            if any(_is_custom(step, scores, pair[0]) for step in way.passed):
                continue
            nodes = {made.node for made in (*way.passed, *weights.passed)}
            return Attention(output, softmax, scores, *pair, value, frozenset(nodes))
    return None


# Ways back


def _ways(value: Value, wanted: object, passes: object) -> Iterator[_Way]:
    spent = 0
    stack: list[tuple[Value, tuple[Made, ...]]] = [(value, ())]
    seen: set[int] = set()
    while stack and spent < MOST_STEPS:
        spent += 1
        one, passed = stack.pop()
        for made in mades(one):
            if wanted(made):  # type: ignore[operator]
                yield _Way(made, passed)
            elif len(passed) < DEPTH and id(made) not in seen:
                seen.add(id(made))
                stack.extend((v, (*passed, made)) for v in passes(made))  # type: ignore[operator]


def _keeps_weights(made: Made) -> tuple[Value, ...]:
    """The operand that comes through as the weights."""
    if short(made.name) in AFTER or _is_dropout(made):
        return given(made)[:1]
    return ()


def _keeps_scores(made: Made) -> tuple[Value, ...]:
    """The operands that may come through as the scores."""
    name = short(made.name)
    if name == "where":
        return made.inputs[1:]
    if name in _SCALES or name in _BIASES:
        return made.inputs[:2]
    return made.inputs[:1] if name in BEFORE else ()


def _is_dropout(made: Made) -> bool:
    layer = layer_of(made)
    if layer:
        return layer.rpartition(".")[2] in ("Dropout", "Identity", "Dropout1d", "Dropout2d")
    return made.name == "call" and bool(_DROPOUT.search(callee_text(made)))


# Scores


def _is_custom(step: Made, scores: Made, query: Value) -> bool:
    """Whether a step between scores and softmax is neither a scale nor an additive mask."""
    name = short(step.name)
    others = [v for v in step.inputs[:2] if not _leads_to(v, scores)]
    if name in _SCALES:
        return not others or not _is_scale(others[0], step)
    if name in _BIASES:
        of_query = _nodes(query)
        return not others or any(_is_computed(one, of_query) for one in others)
    return False


def _leads_to(value: Value, scores: Made) -> bool:
    return any(way.target is scores for way in _ways(value, is_product, _keeps_scores))


def _is_scale(value: Value, step: Made) -> bool:
    """A number, or what is not known to be an array and is not named like one."""
    if is_number(value):
        return True
    if any(isinstance(one, Tensor) and one.sizes and len(one.sizes) > 1 for one in
           alternatives(value)):  # fmt: skip
        return False
    return not any(_GATES.search(name) for name in _other_names(step))


def _other_names(step: Made) -> Iterator[str]:
    """The names in the operand of a scale that stand at its end."""
    match step.node:
        case ast.BinOp(left=left, right=right):
            sides: tuple[ast.expr, ...] = (left, right)
        case ast.AugAssign(value=value):
            sides = (value,)
        case ast.Call(args=args):
            sides = tuple(args)
        case _:
            sides = ()
    for side in sides:
        if isinstance(side, ast.Name):
            yield side.id
        elif isinstance(side, ast.Attribute):
            yield side.attr
        elif isinstance(side, (ast.Subscript, ast.Call)):
            base = side.value if isinstance(side, ast.Subscript) else side.func
            yield getattr(base, "attr", getattr(base, "id", ""))


def _is_computed(bias: Value, of_query: frozenset[ast.AST]) -> bool:
    """Whether a bias is itself a product, or made from the queries: it is as large as the
    scores then, and has to be made by each call."""
    return any(is_product(made) or made.node in of_query for made in _before(bias))


def _nodes(value: Value) -> frozenset[ast.AST]:
    return frozenset(made.node for made in _before(value, 4) if short(made.name) != "getitem")


def _before(value: Value, depth: int = DEPTH // 2) -> Iterator[Made]:
    """The operations that a value was made by, up to some steps back."""
    seen: set[int] = set()
    stack = [(value, 0)]
    while stack and len(seen) < MOST_STEPS:
        one, steps = stack.pop()
        for made in mades(one):
            if id(made) not in seen and steps < depth:
                seen.add(id(made))
                yield made
                stack.extend((v, steps + 1) for v in given(made))


# Axes


def _query_and_key(scores: Made) -> tuple[Value, Value] | None:
    """The operands of a product, if it compares each query with each key."""
    name = short(scores.name)
    if name == "einsum":
        return _einsum_query_and_key(scores)
    operands = scores.inputs[1:3] if name == "baddbmm" else scores.inputs[:2]
    if len(operands) != 2:
        return None
    query, key = operands
    if _is_single(query):
        return None
    of_query, of_key = _turns(query), _turns(key)
    # Heads may be moved before the sequence in both.
    heads = min(of_query.unsure, of_key.unsure)
    turned = of_query.total - heads, of_key.total - heads
    if turned == (0, 1):
        return None if _ends_in_space(query) else (query, key)
    if turned == (1, 0):
        return query, key
    if turned == (0, 0) and _named(scores, _QUERY, 0) and _named(scores, _KEY, 1):
        return query, key
    return None


def _einsum_query_and_key(scores: Made) -> tuple[Value, Value] | None:
    equation, operands = equation_of(scores), operands_of(scores)
    if equation is None or len(operands) != 2 or len(equation.operands) != 2:
        return None
    if any(len(set(part)) != len(part) for part in equation.operands):
        return None
    left, right = map(frozenset, equation.operands)
    queries, keys = (left - right) & set(equation.result), (right - left) & set(equation.result)
    if not (queries and keys and equation.contracted() <= left & right and equation.contracted()):
        return None
    if any(_ends_in_space(value) or _is_single(value) for value in operands[:1]):
        return None
    return operands[0], operands[1]


def _over_keys(softmax: Made, scores: Made) -> bool:
    """Whether the softmax runs over the keys of each query."""
    axis = _axis(softmax)
    if axis is None:
        return False
    equation = equation_of(scores) if short(scores.name) == "einsum" else None
    if equation is not None:
        rank = len(equation.result)
        if not -rank <= axis < rank:
            return False
        left, right = map(frozenset, equation.operands)
        return equation.result[axis] in left ^ right
    if axis == -1:
        return True
    rank_known = {"bmm": 3, "baddbmm": 3, "mm": 2}.get(short(scores.name))
    if rank_known is not None:
        return axis == rank_known - 1
    return axis == 3


def _axis(softmax: Made) -> int | None:
    if layer_of(softmax):
        layer = next(v for v in alternatives(softmax.inputs[0]) if isinstance(v, Object))
        given_axis = layer.fact("dim")
        return integer(layer.fact("0") if isinstance(given_axis, Absent) else given_axis)
    by_name = softmax.get("dim", 1)
    return integer(softmax.get("axis") if isinstance(by_name, Absent) else by_name)


def _contracts_keys(output: Made, index: int, weights: _Way) -> bool:
    """Whether the product sums over the axis of the softmax of the weights, which it has at
    ``index``."""
    turned = sum(swaps(one) is not False for one in weights.passed) % 2 == 1
    if short(output.name) != "einsum":
        return turned == (index == 1)
    equation, axis = equation_of(output), _axis(weights.target)
    if equation is None or len(equation.operands) != 2 or turned or axis is None:
        return False
    indices, values = equation.operands[index], equation.operands[1 - index]
    if not -len(indices) <= axis < len(indices):
        return False
    return equation.contracted() == {indices[axis]} and indices[axis] in values


@dataclass(frozen=True, slots=True)
class _Turns:
    """How often the last axis was exchanged on the way to an operand; ``unsure`` times with
    what may be another one."""

    total: int
    unsure: int


def _turns(value: Value) -> _Turns:
    one = next(mades(value), None)
    total = unsure = 0
    for _ in range(DEPTH):
        if one is None:
            break
        turned = swaps(one)
        total += turned is not False
        unsure += turned is None
        if not _goes_on(one):
            break
        one = next((m for v in given(one)[:1] for m in mades(v)), None)
    return _Turns(total, unsure)


def _goes_on(made: Made) -> bool:
    return (
        short(made.name) in _OF_QUERIES
        or made.name == "einops.rearrange"
        or (
            bool(layer_of(made))
            and layer_of(made).rpartition(".")[2] in ("LayerNorm", "Dropout", "Identity", "RMSNorm")
        )
    )


def _ends_in_space(value: Value) -> bool:
    """Whether the last axis of the queries is flattened space: channels are compared then."""
    for made in mades(value):
        one: Made | None = made
        for _ in range(DEPTH):
            if one is None:
                break
            if one.name == "einops.rearrange":
                sides = rearrangement(one)
                return sides is not None and bool(sides[1]) and sides[1][-1].count(" ") > 0
            if short(one.name) in ("view", "reshape"):
                return _flattens(one)
            if short(one.name) == "flatten":
                return integer(one.get("start_dim", 1)) in (2, -2, 3) and isinstance(
                    one.get("end_dim", 2), (Absent, Const)
                )
            if swaps(one) or not _goes_on(one):
                break
            one = next((m for v in given(one)[:1] for m in mades(v)), None)
    return False


def _flattens(made: Made) -> bool:
    """``x.view(b, c, -1)`` and ``x.view(b, c, h * w)``."""
    sizes = made.inputs[1:]
    if len(sizes) == 1 and isinstance(sizes[0], Sequence):
        sizes = sizes[0].items or ()
    if len(sizes) != 3:
        return False
    if integer(sizes[-1]) == -1:
        return integers(sizes).count(-1) == 1
    return any(short(m.name) == "multiply" for m in mades(sizes[-1]))


def _is_single(query: Value) -> bool:
    """Whether there is known to be one query only, or one number for each."""
    for _ in range(DEPTH):
        if any(_has_one_row(one) for one in alternatives(query)):
            return True
        made = next(mades(query), None)
        if made is None:
            return False
        name = short(made.name)
        if name == "unsqueeze":
            return integer(made.get("dim", 1)) in (1, -2)
        if name == "unbind":
            return integer(made.get("dim", 1)) == -1
        if name == "getitem":
            return any(isinstance(k, Const) and k.value is None for k in made.inputs[1:])
        if name not in _CASTS | _SCALES:
            return False
        query = next(iter(given(made)), Absent())
    return False


def _has_one_row(value: Value) -> bool:
    return isinstance(value, Tensor) and bool(
        value.sizes and len(value.sizes) > 1 and value.sizes[-2] == 1
    )


def _named(scores: Made, pattern: re.Pattern[str], side: int) -> bool:
    node = scores.node
    if isinstance(node, ast.BinOp):
        operand: ast.expr = (node.left, node.right)[side]
    elif isinstance(node, ast.Call) and len(node.args) == 2:
        operand = node.args[side]
    else:
        return False
    name = getattr(operand, "id", getattr(operand, "attr", ""))
    return bool(pattern.search(name))


def is_short(softmax_input: Value) -> bool:
    """Whether the number of keys is known and too small to matter."""
    for one in alternatives(softmax_input):
        if isinstance(one, Tensor) and one.sizes:
            last = one.sizes[-1]
            if isinstance(last, int) and last <= SHORTEST:
                return True
    return False


def written_equation(made: Made) -> Equation | None:
    """The equation of an ``einsum``; ``None`` for other products."""
    return equation_of(made) if short(made.name) == "einsum" else None
