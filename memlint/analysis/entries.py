"""Functions that look at what a list holds before they use it."""

from __future__ import annotations

import ast


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
        for node in ast.walk(function)
    )


def _looks_into(argument: ast.expr, name: str) -> bool:
    match argument:
        case ast.Subscript(value=ast.Name(id=found)):
            return found == name
        case ast.GeneratorExp(elt=ast.Call(func=ast.Name(id="isinstance")), generators=generators):
            iterated = generators[0].iter
            return isinstance(iterated, ast.Name) and iterated.id == name
    return False
