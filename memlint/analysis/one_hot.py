"""One-hot matrices, however they are made."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.chains import given, integer, mades, short
from memlint.analysis.einsum import equation_of, operands_of
from memlint.analysis.uses import Use, Uses, dotted
from memlint.analysis.values import Absent, Const, Linear, Made, Sequence, Tensor, Value
from memlint.late_dataclass import dataclass

SAME = frozenset(
    {"to", "float", "double", "half", "bfloat16", "astype", "cuda", "type", "type_as", "contiguous",
     "view", "reshape", "flatten", "detach", "long", "squeeze"}
)  # fmt: skip
FEW = 16
_STEPS = 6


@dataclass(frozen=True, slots=True)
class OneHot:
    """A matrix with a single one in each row: ``indices`` say where, ``classes`` how wide."""

    maker: Made
    indices: Value
    classes: Value


def one_hot(value: Value) -> OneHot | None:
    """The one-hot matrix that a value is, up to casts and reshapes."""
    for _ in range(_STEPS):
        made = next(mades(value), None)
        if made is None:
            return None
        found = maker(made)
        if found is not None:
            return found
        if short(made.name) not in SAME or not given(made):
            return None
        value = given(made)[0]
    return None


def maker(made: Made) -> OneHot | None:
    """``F.one_hot(i, n)``, ``np.eye(n)[i]`` and ``torch.zeros(b, n).scatter_(1, i, 1)``."""
    name = short(made.name)
    if name == "one_hot":
        return OneHot(made, made.get("tensor", 0), made.get("num_classes", 1))
    if name == "getitem" and len(made.inputs) == 2:
        identity = next(mades(made.inputs[0]), None)
        index = made.inputs[1]
        if identity is None or short(identity.name) not in ("eye", "identity"):
            return None
        if len(given(identity)) != 1 or isinstance(index, (Const, Linear, Sequence)):
            return None
        return OneHot(made, index, given(identity)[0])
    if name == "scatter" and made.name in (".scatter_", ".scatter"):
        return _scattered(made)
    return None


def rows_and_table(product: Made) -> tuple[Value, ...]:
    """The two factors of a product that sums over the last axis of the first."""
    if short(product.name) != "einsum":
        return product.inputs[:2]
    equation, arrays = equation_of(product), operands_of(product)
    if equation is None or len(arrays) != 2 or len(equation.operands) != 2:
        return ()
    for index in (0, 1):
        rows, table = equation.operands[index], equation.operands[1 - index]
        if rows and equation.contracted() == {rows[-1]} and set(rows) & set(table) == {rows[-1]}:
            return arrays[index], arrays[1 - index]
    return ()


def _scattered(made: Made) -> OneHot | None:
    base = next(mades(made.inputs[0]), None)
    value = made.get("value", 3)
    if isinstance(value, Absent):
        value = made.get("src", 3)
    if base is None or short(base.name) != "zeros" or value not in (Const(1), Const(1.0)):
        return None
    if integer(made.get("dim", 1)) not in (1, -1):
        return None
    sizes = _sizes(base)
    return OneHot(made, made.get("index", 2), sizes[-1]) if len(sizes) == 2 else None


def written(value: Value, uses: Uses) -> OneHot | None:
    """The one-hot matrix that zeros become by one write: ``z.scatter_(1, i, 1)`` or
    ``z[numpy.arange(n), i] = 1``."""
    for _ in range(_STEPS):
        made = next(mades(value), None)
        if made is None or not isinstance(made.node, ast.expr) or uses.parent(made.node) is None:
            return None
        if short(made.name) == "zeros":
            base = made
            break
        if short(made.name) not in SAME or not given(made):
            return None
        value = given(made)[0]
    else:
        return None
    sizes = _sizes(base)
    if len(sizes) != 2:
        return None
    writes = [use for use in _all_uses(base.node, uses) if _writes(use)]
    if len(writes) != 1 or not _sets_ones(writes[0], uses):
        return None
    return OneHot(base, Absent(), sizes[-1])


def _all_uses(node: ast.AST, uses: Uses) -> Iterator[Use]:
    """The uses of an array, also of what casts make of it."""
    pending = [node]
    for _ in range(_STEPS):
        if not pending:
            return
        one = pending.pop()
        if not isinstance(one, ast.expr):
            return
        for use in uses.of(one):
            yield use
            if use.kind == "receiver" and use.name in SAME:
                pending.append(use.node)


def _writes(use: Use) -> bool:
    if use.kind in ("written", "updated"):
        return True
    return use.kind == "receiver" and use.name.endswith("_") and not use.name.endswith("__")


def _sets_ones(write: Use, uses: Uses) -> bool:
    """Whether a write stores a one in each row."""
    match write.node:
        case ast.Call(func=ast.Attribute(attr="scatter_"), args=args, keywords=keywords):
            named = {one.arg: one.value for one in keywords}
            axis = args[0] if args else named.get("dim")
            one = args[2] if len(args) > 2 else named.get("value", named.get("src"))
            return _number(axis) in (1, -1) and _number(one) == 1
        case ast.Subscript(slice=ast.Tuple(elts=[ast.Call(func=func), _])):
            above = uses.parent(write.node)
            return (
                dotted(func).rpartition(".")[2] == "arange"
                and isinstance(above, ast.Assign)
                and _number(above.value) == 1
            )
    return False


def _number(node: ast.expr | None) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
    return None


def _sizes(zeros: Made) -> tuple[Value, ...]:
    sizes = given(zeros) or (zeros.get("size"),)
    if isinstance(sizes[0], Sequence):
        return sizes[0].items or ()
    return sizes


def is_narrow(found: OneHot, other: Value) -> bool:
    """Whether there are known to be few classes."""
    classes = integer(found.classes)
    if classes is not None:
        return classes <= FEW
    if isinstance(other, Tensor) and other.sizes and len(other.sizes) > 1:
        rows = other.sizes[-2]
        return isinstance(rows, int) and rows <= FEW
    return False
