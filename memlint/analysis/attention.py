"""Attention that is written out: ``softmax(q @ k.T) @ v`` as a chain of operations.

What made the operands of a product tells that it may be the second one of attention; that
the scores and the weights go nowhere else is then asked of the program's text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memlint.analysis.attention_axes import contracts_keys, over_keys, query_and_key
from memlint.analysis.attention_steps import (
    AFTER,
    BEFORE,
    BIASES,
    PRODUCTS,
    SCALES,
    factors,
    is_product,
    is_softmax,
    softmax_input,
)
from memlint.analysis.chains import (
    DEPTH,
    MOST_STEPS,
    callee_text,
    given,
    is_number,
    layer_of,
    mades,
    short,
)
from memlint.analysis.einsum import Equation, equation_of
from memlint.analysis.values import Made, Tensor, Value, alternatives
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

_DROPOUT = late_pattern(r"drop", re.IGNORECASE)
# Factors of scores that are no mere scale.
_GATES = late_pattern(r"mask|bias|gate|weight|decay|dist|adj|pos|prior|edge", re.IGNORECASE)
_MAXIMA = frozenset({"max", "amax"})


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
    operands = factors(output) if short(output.name) in PRODUCTS else ()
    if len(operands) != 2:
        return None
    for index in (0, 1):
        for way in _ways(operands[index], is_softmax, _keeps_weights):
            if not contracts_keys(output, index, way.target, way.passed):
                continue
            found = _from_softmax(output, way, operands[1 - index])
            if found is not None:
                return found
    return None


def _from_softmax(output: Made, weights: _Way, value: Value) -> Attention | None:
    softmax = weights.target
    for way in _ways(softmax_input(softmax), is_product, _keeps_scores):
        scores = way.target
        pair = query_and_key(scores)
        if pair is None or not over_keys(softmax, scores):
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
    if name in SCALES or name in BIASES:
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
    if name in SCALES:
        return not others or not _is_scale(others[0], step)
    if name in BIASES:
        if others and _is_maximum(others[0], scores):
            return False  # the softmax is the same without it
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


def _is_maximum(value: Value, scores: Made) -> bool:
    """Whether a value is the greatest of the scores: ``s - s.max(-1, keepdim=True).values``."""
    return any(
        _leads_to(given(made)[0], scores)
        for made in _before(value, 3)
        if short(made.name) in _MAXIMA and given(made)
    )


def _is_computed(bias: Value, of_query: frozenset[ast.AST]) -> bool:
    """Whether a bias is itself a product, or made from the queries: it is as large as the
    scores then, and has to be made by each call."""
    return any(is_product(made) or made.node in of_query for made in _before(bias, DEPTH))


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


def written_equation(made: Made) -> Equation | None:
    """The equation of an ``einsum``; ``None`` for other products."""
    return equation_of(made) if short(made.name) == "einsum" else None
