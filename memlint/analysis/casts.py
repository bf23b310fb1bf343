"""Whether a tensor is given another dtype before anything else is done with it."""

from __future__ import annotations

import ast
import re

from memlint.analysis.uses import Use, Uses, dotted
from memlint.late_pattern import late_pattern

CASTS = frozenset(
    {"float", "half", "bfloat16", "double", "int", "long", "short", "bool", "byte", "char", "type",
     "type_as", "astype", "item", "tolist"}
)  # fmt: skip
# What hands the numbers on as they are.
SAME = frozenset(
    {"unsqueeze", "squeeze", "view", "reshape", "permute", "transpose", "t", "contiguous", "cuda",
     "cpu", "pin_memory", "flatten", "expand", "repeat", "clone", "detach", "to", "requires_grad_",
     "copy", "ravel", "swapaxes", "unflatten"}
)  # fmt: skip
# Where float64 is kept on purpose, or where the tensor's dtype plays no part.
INDIFFERENT = late_pattern(
    r"(^|\.)(copy_|assert\w*|allclose|isclose|gradcheck|gradgradcheck|equal|array_equal)$|linalg\.|special\.|"
    r"cholesky|(^|\.)(inverse|pinverse|svd|eigh?|lstsq|solve|slogdet|logdet|float32|float16)$"
)
_DEVICE = late_pattern(
    r"device|cuda|cpu|gpu|^dev$|rank|non_blocking|copy|memory_format", re.IGNORECASE
)
# Functions that give an array of what they are given.
PUT_TOGETHER = frozenset({"Variable", "Parameter", "stack", "cat", "concat", "hstack", "vstack"})
DEPTH = 6


def is_cast_at_once(node: ast.expr, uses: Uses, depth: int = 0) -> bool:
    """Whether all that takes the value of ``node`` casts it, or does not mind its dtype."""
    above = uses.parent(node)
    if isinstance(above, (ast.ListComp, ast.GeneratorExp)) and above.elt is node:
        return depth < DEPTH and is_cast_at_once(above, uses, depth + 1)
    taken = uses.of(node)
    return bool(taken) and all(_is_cast(use, uses, depth) for use in taken)


def _is_cast(use: Use, uses: Uses, depth: int) -> bool:
    last = use.name.rpartition(".")[2]
    if use.kind == "receiver":
        if last in CASTS or (last == "to" and _names_dtype(use.node)):
            return True
        if last in SAME and depth < DEPTH and isinstance(use.node, ast.expr):
            return is_cast_at_once(use.node, uses, depth + 1)
        return INDIFFERENT.search(last) is not None
    if use.kind in ("attribute", "item") and isinstance(use.node, ast.expr) and depth < DEPTH:
        if last in ("shape", "dtype", "size", "ndim", "nbytes"):
            return True
        if use.kind == "item" or last in ("T", "mT", "data"):
            return is_cast_at_once(use.node, uses, depth + 1)
    if use.kind == "argument" and last in PUT_TOGETHER and isinstance(use.node, ast.expr):
        return depth < DEPTH and is_cast_at_once(use.node, uses, depth + 1)
    if use.kind == "argument":
        return INDIFFERENT.search(use.name) is not None or _casts_argument(use)
    if use.kind == "stored" and isinstance(use.node, ast.Assign):
        return all(isinstance(target, ast.Subscript) for target in use.node.targets)
    return use.kind in ("tested", "formatted")


def _casts_argument(use: Use) -> bool:
    """``torch.tensor(x, dtype=...)``, ``np.asarray(x, np.float32)``."""
    call = use.node
    if not isinstance(call, ast.Call):
        return False
    if use.name.rpartition(".")[2] in ("FloatTensor", "Tensor", "HalfTensor", "len", "print"):
        return True
    return any(k.arg == "dtype" for k in call.keywords)


def goes_into_doubles(node: ast.expr, uses: Uses) -> bool:
    """Whether a tensor is given to a model that was turned into float64."""
    taken = {use.name for use in uses.of(node) if use.kind == "argument" and use.name}
    return bool(taken) and bool(taken & _doubled(uses))


def _doubled(uses: Uses) -> set[str]:
    """The names of what the program turns into float64."""
    found: set[str] = set()
    for call in (*uses.calls_of("double"), *uses.calls_of("to")):
        if not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr == "to" and not _DOUBLE.search(ast.unparse(call)):
            continue
        found.add(dotted(call.func.value))
        found.update(uses.names_of(call))
        above = uses.parent(call)
        if isinstance(above, ast.Assign):
            found.update(map(dotted, above.targets))
    return found - {""}


_DOUBLE = late_pattern(r"\b(torch\.)?(float64|double)\b")


def _names_dtype(call: ast.AST) -> bool:
    """Whether ``.to(...)`` is given something other than a device."""
    if not isinstance(call, ast.Call):
        return False
    given = [ast.unparse(one) for one in call.args]
    given += [k.arg or "**" for k in call.keywords]
    return any(not _DEVICE.search(one) and one not in ("True", "False") for one in given)
