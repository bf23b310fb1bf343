"""Dense copies made for an operation that works element by element, which needs none.

The result has the order of axes of its operands, so what is done with it has to be looked at.
"""

from __future__ import annotations

import ast

from memlint.analysis import axes
from memlint.analysis.axes import Layout
from memlint.analysis.copies import Copy, copies_among, only_taken_by
from memlint.analysis.uses import Use, Uses
from memlint.analysis.values import Const, Tensor, Value, alternatives

_UNARY = (
    "abs neg square relu exp log sqrt rsqrt sin cos tanh sigmoid erf reciprocal sign log1p expm1"
)
_BINARY = "add sub mul div pow clamp"
_ACTIVATIONS = "relu gelu silu elu selu softplus mish leaky_relu hardtanh sigmoid tanh"
_METHODS = frozenset(f"{_UNARY} {_BINARY}".split())
_FUNCTIONS = frozenset(_ACTIVATIONS.split()) | _METHODS
_OPERATORS = ("add", "subtract", "multiply", "true_divide", "pow", "negative")
ELEMENTWISE = frozenset(
    {f".{name}" for name in _METHODS}
    | {f"torch.{name}" for name in _METHODS}
    | {f"torch.nn.functional.{name}" for name in _ACTIVATIONS.split()}
    | {f"operator.{name}" for name in _OPERATORS}
)
"""Operations of Called events that work element by element."""
_ARITHMETIC = frozenset({"Add", "Sub", "Mult", "Div", "Pow", "USub"})
_COMPARISONS = frozenset({"Eq", "NotEq", "Lt", "LtE", "Gt", "GtE"})
_PRODUCTS = frozenset({"matmul", "mm", "bmm", "einsum", "baddbmm", "addmm"})
# Whose results do not have the layout of what they are computed from.
_REDUCTIONS = frozenset(
    {"sum", "mean", "amax", "amin", "max", "min", "norm", "std", "var", "all", "any", "prod",
     "count_nonzero", "item"}
)  # fmt: skip
_TORCH = frozenset({"torch", "F", "nn.functional", "torch.nn.functional", "torch.linalg"})
_FOLLOWED = 4


def taken_element_by_element(
    copy: Copy, consumer: ast.expr, operands: tuple[Value, ...], uses: Uses
) -> bool | None:
    """Whether an elementwise ``consumer`` does as well without a copy: surely, in all likelihood
    (``None``), or not as far as is known."""
    sources = alternatives(copy.source)
    strided = [one for one in sources if isinstance(one, Tensor) and _ordered(one.layout)]
    if len(strided) != len(sources):
        return False
    others = [one for one in operands if copy not in copies_among((one,))]
    if all(axes.natural(one.layout) for one in strided):
        return _stays_row_major(strided, others)
    orders = {_order(one.layout) for one in strided}
    if len(orders) != 1 or None in orders:
        return False
    alike = all(_same_order(one, orders.copy().pop(), consumer, uses) for one in others)
    return alike and _layout_is_unseen(consumer, uses, _FOLLOWED)


def _ordered(layout: Layout) -> bool:
    """Strided, with each element in one place."""
    if axes.contiguous(layout) is not False:
        return False
    if layout.axes is None:
        return layout.loose is not None and not (layout.loose.broadcast or layout.loose.units)
    return all(axis.memory is not None or axis.size == 1 for axis in layout.axes)


def _stays_row_major(strided: list[Tensor], others: list[Value]) -> bool | None:
    """Of rows with gaps between them, the result is row-major with or without the copy."""
    arrays = [one for one in others if not isinstance(one, Const)]
    if not all(isinstance(one, Tensor) and axes.natural(one.layout) for one in arrays):
        return False
    layouts = [one.layout for one in arrays if isinstance(one, Tensor)]
    results = [axes.elementwise([one.layout, *layouts]) for one in strided]
    if not all(axes.contiguous(one) is True for one in results):
        return False
    return None if any(one.assumed for one in strided) else True


def _order(layout: Layout) -> object:
    if layout.axes is None:
        return layout.loose.swaps if layout.loose is not None else None
    return axes.stride_order(layout)


def _same_order(value: Value, order: object, consumer: ast.expr, uses: Uses) -> bool:
    """Whether another operand is a number, or lies in memory as the array does once its own
    copy, which nothing else takes, is left out."""
    if isinstance(value, Const):
        return True
    for one in copies_among((value,)):
        if only_taken_by(one, consumer, uses):
            value = one.source
    return all(
        isinstance(one, Tensor) and (one.layout.rank == 0 or _order(one.layout) == order)
        for one in alternatives(value)
    )


def _layout_is_unseen(node: ast.expr, uses: Uses, depth: int) -> bool:
    """Whether a result goes only where its layout makes no difference."""
    taken = uses.of(node)
    return bool(taken) and all(_is_indifferent(one, uses, depth) for one in taken)


def _is_indifferent(use: Use, uses: Uses, depth: int) -> bool:
    node = use.node
    match use.kind:
        case "operand" if isinstance(node, ast.BinOp) and use.name == "MatMult":
            return True
        case "operand" if use.name in _ARITHMETIC | _COMPARISONS and isinstance(node, ast.expr):
            return _with_numbers(node, use) and _goes_on(node, uses, depth)
        case "receiver" if isinstance(node, ast.Call) and not _given_out(node):
            return _takes_any_layout(use, use.name, node.args, uses, depth)
        case "argument" if isinstance(node, ast.Call) and not _given_out(node):
            owner, _, name = use.name.rpartition(".")
            rest = [one for one in node.args if one is not use.value]
            if owner not in _TORCH:
                return False
            return name == "linear" or _takes_any_layout(use, name, rest, uses, depth)
    return False


def _takes_any_layout(use: Use, name: str, rest: list[ast.expr], uses: Uses, depth: int) -> bool:
    """Whether a function or method gives the same, the layout included, for any layout of one
    of its arguments; ``rest`` are the others."""
    assert isinstance(use.node, ast.Call)
    if name in _PRODUCTS or (name in _REDUCTIONS and all(map(_is_number, rest))):
        return True
    plain = name in _FUNCTIONS and not use.node.keywords and all(map(_is_number, rest))
    return plain and _goes_on(use.node, uses, depth)


def _goes_on(node: ast.expr, uses: Uses, depth: int) -> bool:
    return depth > 0 and _layout_is_unseen(node, uses, depth - 1)


def _with_numbers(node: ast.expr, use: Use) -> bool:
    match node:
        case ast.BinOp(left=left, right=right):
            return _is_number(right if left is use.value else left)
        case ast.Compare(left=left, comparators=[right]):
            return _is_number(right if left is use.value else left)
        case ast.UnaryOp():
            return True
    return False


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def _given_out(call: ast.Call) -> bool:
    return any(one.arg in ("out", None) for one in call.keywords)
