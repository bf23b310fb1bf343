"""Elements of arrays that loops pick one by one, and what operations make of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.linear import linear
from memlint.analysis.values import (
    Made,
    Sequence,
    Symbol,
    Tensor,
    Value,
    alternatives,
    deps_of,
    made_of,
)
from memlint.late_dataclass import dataclass

# Functions and methods that give the number they are given, perhaps in another type.
SAME_NUMBER = frozenset(
    {"builtins.float", "builtins.complex", "numpy.float32", "numpy.float64", "numpy.conj",
     "numpy.conjugate", "torch.conj", ".item", ".conj", ".conjugate", ".double", ".float"}
)  # fmt: skip
DEPTH = 8


@dataclass(frozen=True, slots=True)
class Element:
    """``array[index]``; ``node`` is the expression that is indexed, ``picked`` the subscript,
    ``tupled`` tells that several positions are given at once, which only arrays take."""

    array: Value
    node: ast.expr
    picked: ast.AST
    index: tuple[Value, ...]
    tupled: bool

    @property
    def text(self) -> str:
        """The source of the array."""
        return ast.unparse(self.node)


def element_of(value: Value) -> Element | None:
    """The element of an array that a value is; rows that were taken first are put together."""
    made = made_of(value)
    for _ in range(DEPTH):
        if made is None or made.name not in SAME_NUMBER or not made.inputs:
            break
        made = made_of(made.inputs[0])
    if made is None or made.name != "operator.getitem":
        return None
    return stored_element(made.node, made.inputs[0], made.inputs[1:])


def stored_element(node: ast.AST, base: Value, keys: tuple[Value, ...]) -> Element | None:
    """The element that a subscript at ``node`` is, by what is indexed and with what."""
    tupled = len(keys) > 1 and _is_tupled(node)
    picked = node
    while isinstance(node, ast.Subscript):
        node = node.value
    if not isinstance(node, ast.expr):
        return None
    made = made_of(base)
    if made is not None and made.name == "operator.getitem":
        outer = stored_element(made.node, made.inputs[0], made.inputs[1:])
        joined = None if outer is None else _joined(outer.index, keys)
        if outer is not None and joined is not None:
            return Element(outer.array, outer.node, picked, joined, tupled or outer.tupled)
    return Element(base, node, picked, keys, tupled)


def _is_tupled(node: ast.AST) -> bool:
    while isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Tuple):
            return True
        node = node.value
    return False


def _joined(outer: tuple[Value, ...], inner: tuple[Value, ...]) -> tuple[Value, ...] | None:
    """``x[:, j][i]`` as ``x[i, j]``; ``None`` where a slice moves on."""
    rest = list(inner)
    index: list[Value] = []
    for item in outer:
        if isinstance(item, Sequence) and item.kind == "slice":
            if any(deps_of(bound) for bound in item.items or ()) or not rest:
                return None
            item = rest.pop(0)
        index.append(item)
    return (*index, *rest)


def axes_of(element: Element, loops: frozenset[Symbol]) -> dict[Symbol, int] | None:
    """Which axis each of ``loops`` walks, one position at a time; ``None`` where an axis is
    walked in any other way, and where a loop walks two of them."""
    axes: dict[Symbol, int] = {}
    for axis, item in enumerate(element.index):
        form = linear(item)
        if form is None:
            if isinstance(item, (Sequence, Tensor)) or deps_of(item) & loops:
                return None
            if len(alternatives(item)) > 1:
                return None
            continue
        walking = form.symbols & loops
        if not walking:
            continue
        if len(walking) > 1:
            return None
        symbol = next(iter(walking))
        if form.coefficient(symbol) != 1 or symbol in axes:
            return None
        axes[symbol] = axis
    return axes


def factors(value: Value) -> Iterator[Value]:
    """What a product is of; a value that is no product is its own only factor."""
    made = made_of(value)
    for _ in range(DEPTH):
        if made is None or made.name not in SAME_NUMBER or not made.inputs:
            break
        value = made.inputs[0]
        made = made_of(value)
    if made is not None and made.name == "operator.multiply" and len(made.inputs) == 2:
        for one in made.inputs:
            yield from factors(one)
    elif made is not None and made.name == "operator.negative":
        yield from factors(made.inputs[0])
    else:
        yield value


def makings(value: Value, depth: int = DEPTH) -> Iterator[Made]:
    """The operations that a value came out of, through arithmetic and calls on numbers."""
    for one in alternatives(value):
        made = made_of(one)
        if made is None or depth == 0:
            continue
        yield made
        if made.name == "operator.getitem":
            continue
        for part in (*made.inputs, *(given for _, given in made.keywords)):
            yield from makings(part, depth - 1)
