"""What a function says of the entries of its lists: by annotations, or by asking for types."""

from __future__ import annotations

import ast
import re

from memlint.analysis.values import Unknown, Value
from memlint.analysis.walking import walk
from memlint.late_pattern import late_pattern

_ARRAY = r"(?:np\.|numpy\.|npt\.|numpy\.typing\.)?(?:ndarray|NDArray)(?:\[.*\])?"
ARRAY = late_pattern(_ARRAY)
LIST_OF_ARRAYS = late_pattern(
    rf"(?:typing\.|t\.)?(?:list|List|Sequence|Tuple|tuple|Iterable)\[{_ARRAY}(?:, \.\.\.)?\]"
)


def annotated(
    function: ast.FunctionDef | ast.AsyncFunctionDef, shown: ast.expr, pattern: re.Pattern[str]
) -> bool:
    """Whether ``shown`` is a parameter whose annotation is what ``pattern`` says."""
    if not isinstance(shown, ast.Name):
        return False
    spec = function.args
    for one in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
        if one.arg == shown.id and one.annotation is not None:
            return pattern.fullmatch(ast.unparse(one.annotation).strip("'")) is not None
    return False


def is_untouched(value: Value) -> bool:
    """Whether a value is a parameter as it came in."""
    return isinstance(value, Unknown) and value.origin in ("parameter", "numpy")


def tests_entries(function: ast.AST, name: str) -> bool:
    """Whether ``function`` asks for the type of the entries of ``name``.

    ``isinstance(xs[0], np.ndarray)``, ``all(isinstance(x, list) for x in xs)``: lists of one
    kind go one way and lists of another kind the other way then.
    """
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("isinstance", "type", "all", "any")
        and any(_looks_into(argument, name) for argument in node.args)
        for node in walk(function)
    )


def _looks_into(argument: ast.expr, name: str) -> bool:
    match argument:
        case ast.Subscript(value=ast.Name(id=found)):
            return found == name
        case ast.GeneratorExp(elt=ast.Call(func=ast.Name(id="isinstance")), generators=generators):
            iterated = generators[0].iter
            return isinstance(iterated, ast.Name) and iterated.id == name
    return False
