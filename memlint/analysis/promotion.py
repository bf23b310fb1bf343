"""Arrays of float32 that become float64 by what they meet."""

from __future__ import annotations

import ast

from memlint.analysis.knowledge.float64 import STRONG_SCALARS
from memlint.analysis.knowledge.kinds import dtype_of
from memlint.analysis.named_values import annotation_of
from memlint.analysis.precision import Precision, precision_of
from memlint.analysis.uses import Uses
from memlint.analysis.values import (
    Const,
    Linear,
    Made,
    Tensor,
    Value,
    alternatives,
    deps_of,
    made_of,
)

OPERATORS = tuple(f"operator.{name}" for name in ("add", "subtract", "multiply", "true_divide"))
CALCULATIONS = frozenset({*OPERATORS, "operator.pow", "operator.floor_divide", "builtins.max",
                          "builtins.min", "builtins.abs"})  # fmt: skip
# What gives a number of Python, whatever it is given.
NUMBERS = frozenset({"builtins.len", "builtins.int", "builtins.float"})
# What gives an array of the dtype that it is given.
ARRAYS = frozenset({"numpy.asarray", "numpy.array", "numpy.ascontiguousarray", "numpy.asanyarray"})
# Makers whose dtype can be given by its name alone.
MAKING = frozenset(f"numpy.{name}" for name in ("linspace", "logspace", "geomspace", "tri", "eye"))
DEPTH = 6


def is_single(value: Value, uses: Uses, depth: int = DEPTH) -> bool:
    """Whether a value is an array of float32, not a number."""
    return depth > 0 and all(_one_is_single(one, uses, depth) for one in alternatives(value))


def _one_is_single(value: Value, uses: Uses, depth: int) -> bool:
    made = made_of(value)
    if made is not None and _is_promoted(made, uses, depth):
        return False
    if isinstance(value, Tensor) and (value.dtype is not None or made is None):
        return value.lib == "numpy" and value.dtype == "float32" and value.sizes != ()
    if made is None:
        return False
    if made.name in MAKING:
        return dtype_of(made.get("dtype")) == "float32"
    if made.name in ARRAYS:
        return dtype_of(made.get("dtype", 1)) == "float32"
    if made.name in OPERATORS and len(made.inputs) == 2:
        kinds = {precision_of(one) for one in made.inputs}
        single = any(is_single(one, uses, depth - 1) for one in made.inputs)
        return single and kinds <= {Precision.SINGLE, Precision.WEAK}
    return False


def _is_promoted(made: Made, uses: Uses, depth: int) -> bool:
    """Whether an operation made float64 of a float32 array already: that was told there."""
    if depth == 0 or made.name not in OPERATORS:
        return False
    if any(promotes(one, uses) for one in made.inputs):
        return True
    inner = (made_of(one) for one in made.inputs)
    return any(_is_promoted(one, uses, depth - 1) for one in inner if one is not None)


def promotes(value: Value, uses: Uses) -> str:
    """Why a float32 array that meets ``value`` is float64 afterwards, if it is."""
    for one in alternatives(value):
        made = made_of(one)
        if made is None:
            return ""
        if made.name == "numpy.arange" and precision_of(one) is Precision.INTEGER:
            return "the other operand is an array of 64-bit integers"
        if made.name in STRONG_SCALARS and _is_scalar(made, uses):
            name = "np." + made.name.removeprefix("numpy.")
            return f"`{name}(...)` is a 64-bit scalar, which counts with its dtype since NumPy 2"
    return ""


def _is_scalar(made: Made, uses: Uses) -> bool:
    if made.name in ("numpy.float64", "numpy.int64"):
        return True
    written = made.node.args if isinstance(made.node, ast.Call) else []
    return bool(made.inputs) and (
        all(map(_is_number, made.inputs)) or all(_is_written_number(one, uses) for one in written)
    )


def _is_written_number(node: ast.expr, uses: Uses) -> bool:
    """Whether an expression is one of numbers and constants: ``2 / np.pi``."""
    match node:
        case ast.Constant(value=value):
            return type(value) in (int, float)
        case ast.BinOp(left=left, right=right):
            return _is_written_number(left, uses) and _is_written_number(right, uses)
        case ast.UnaryOp(operand=operand):
            return _is_written_number(operand, uses)
        case ast.Attribute(value=ast.Name(id="np" | "numpy" | "math"), attr=name):
            return name in ("pi", "e", "euler_gamma", "tau")
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"))):
            return True
        case ast.Name():
            return annotation_of(node, uses) in ("int", "float")
    return False


def _is_number(value: Value, depth: int = DEPTH) -> bool:
    """Whether a value is a number of Python, or computed from such numbers."""
    if isinstance(value, (Const, Linear)):
        return True
    made = made_of(value)
    if made is None:
        deps = deps_of(value)
        return bool(deps) and all(one.kind == "size" for one in deps)
    if depth == 0:
        return False
    if made.name in NUMBERS:
        return True
    return made.name in CALCULATIONS and all(_is_number(one, depth - 1) for one in made.inputs)
