"""Diagonal matrices in products, and diagonals of products."""

from __future__ import annotations

import ast
import re

from memlint.analysis.chains import given, mades, rank_of, short, swaps
from memlint.analysis.values import Absent, Made, Object, Tensor, Value, alternatives
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

PRODUCTS = frozenset({"matmul", "mm", "bmm", "dot"})
_MAKERS = frozenset({"diag", "diag_embed", "diagflat"})
_SAME = frozenset(
    {"to", "float", "double", "half", "bfloat16", "astype", "cuda", "type", "type_as", "contiguous"}
)
_EXTRACTS = frozenset({"diag", "diagonal", "trace"})
SMALL = 16
# What vectors are called that become the diagonal of a matrix.
_VECTOR = late_pattern(
    r"^(s|S|d|D|w|v|e|u|lam(bda)?s?_?|lmbda|sigmas?|sv|sing\w*|eig\w*|evals?\w*|degs?|degrees?|"
    r"weights?|scales?|stds?|std_?dev\w*|vals?|values|vec\w*|diag\w*|alphas?|betas?|gammas?|gains?|norms?|"
    r"(\w*_)?(inv|isqrt|sqrt|degree|deg|weights?|scales?|stds?|eigvals?|eigenvalues|evals|vals|"
    r"values|vec|vector|norms?|diag|rates?|sums?|probs|counts?|lengths|var|vars|variances?|"
    r"precision|precisions|mask|signs?))_?$"
)
# What small numbers are called that are added to them.
_NUMBER = late_pattern(
    r"^_*(eps(ilon)?|tol|tiny|jitter|ridge|damp(ing)?|shrinkage|reg|lambd?a?_reg)_*$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class DiagonalFactor:
    """A product one of whose factors is a diagonal matrix; ``left`` where that is the first."""

    maker: Made
    vector: Value
    other: Value
    left: bool


def diagonal_factor(product: Made) -> DiagonalFactor | None:
    """The diagonal factor of a product, if it has one."""
    factors = product.inputs[:2]
    if short(product.name) not in PRODUCTS or len(factors) != 2:
        return None
    for index in (0, 1):
        maker = _maker(factors[index])
        if maker is not None and given(maker):
            vector = given(maker)[0]
            if short(maker.name) != "diag" or is_vector(vector, maker):
                return DiagonalFactor(maker, vector, factors[1 - index], index == 0)
    return None


def _maker(value: Value) -> Made | None:
    for _ in range(4):
        made = next(mades(value), None)
        if made is None:
            return None
        if short(made.name) in _MAKERS and made.name != ".diagonal":
            return made
        if short(made.name) not in _SAME or not given(made):
            return None
        value = given(made)[0]
    return None


def is_vector(value: Value, maker: Made) -> bool:
    """Whether ``diag`` is given a vector: by its rank, or by its name."""
    rank = rank_of_array(value)
    if rank is not None:
        return rank == 1
    if len(given(maker)) > 1 or maker.keywords:
        return False
    node = _argument(maker)
    names = list(_names(node)) if node is not None else []
    return bool(names) and all(map(_VECTOR.match, names))


def rank_of_array(value: Value) -> int | None:
    """The number of axes of an array or a parameter."""
    for one in alternatives(value):
        if isinstance(one, Object) and one.cls == "torch.nn.Parameter":
            return rank_of(one.fact("data") if one.fact("0") == Absent() else one.fact("0"))
    return rank_of(value)


def _argument(maker: Made) -> ast.expr | None:
    match maker.node:
        case ast.Call(func=ast.Attribute(value=inner)) if maker.name.startswith("."):
            return inner
        case ast.Call(args=[first, *_]):
            return first
    return None


def _names(node: ast.expr) -> list[str]:
    """The arrays that an expression of elementwise operations is made of."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return [] if _NUMBER.match(name) else [name]
        case ast.BinOp(left=left, right=right) if not isinstance(node.op, ast.MatMult):
            return _names(left) + _names(right)
        case ast.UnaryOp(operand=operand):
            return _names(operand)
        case ast.Constant():
            return []
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "torch" | "numpy")), args=args):
            return [name for one in args for name in _names(one)]
        case ast.Call(func=ast.Attribute(value=inner)):
            return _names(inner)
    return ["?"]


def is_small(value: Value) -> bool:
    """Whether a vector is known to be short, or a matrix to have a short side."""
    for one in alternatives(value):
        array = one.fact("0") if isinstance(one, Object) else one
        if isinstance(array, Tensor) and any(
            isinstance(size, int) and size <= SMALL for size in (array.sizes or ())[-2:]
        ):
            return True
    return False


# Diagonals of products


def product_under_diagonal(extract: Made) -> Made | None:
    """The product of two matrices of which an operation reads the diagonal only."""
    if short(extract.name) not in _EXTRACTS or not given(extract):
        return None
    product = next(mades(given(extract)[0]), None)
    if product is None or short(product.name) not in PRODUCTS - {"bmm"}:
        return None
    if len(given(extract)) > 1 or any(
        key in ("offset", "k", "diagonal") for key, _ in extract.keywords
    ):
        return None
    if len(product.inputs) != 2 or any(rank_of(one) not in (2, None) for one in product.inputs):
        return None
    if short(extract.name) == "diag" and not _is_matrix(product):
        return None
    return product


def _is_matrix(product: Made) -> bool:
    """Whether a product is known to be no vector."""
    if short(product.name) == "mm":
        return True
    second = product.inputs[1]
    if rank_of(second) == 2 and rank_of(product.inputs[0]) == 2:
        return True
    turned = next(mades(second), None)
    return turned is not None and swaps(turned) is not False
