"""Optional imports: ``try: import numba`` with stand-ins where it is not installed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.interpreter.state import Variables
from memlint.analysis.values import Class, Function, Ref

FAILURES = {"ImportError", "ModuleNotFoundError"}


def without_stand_ins(
    node: ast.Try, handler: ast.ExceptHandler, imported: Variables | None, state: Variables | None
) -> Variables | None:
    """The state after ``handler``, in which a name that the ``try`` imports means the import.

    A finding speaks of the program as it runs where the library is installed; a function, a
    class or a builtin that takes the place of what is missing tells nothing of that. Flags,
    ``None`` and other libraries stay: programs ask for them, or use them as they are.
    """
    if imported is None or state is None or not _catches_missing(handler):
        return state
    stands_in = {
        name: imported[name]
        for name in _imported_names(node.body)
        if isinstance(imported.get(name), Ref) and _is_stand_in(state.get(name))
    }
    return {**state, **stands_in}


def _catches_missing(handler: ast.ExceptHandler) -> bool:
    caught = handler.type
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(isinstance(kind, ast.Name) and kind.id in FAILURES for kind in kinds)


def _imported_names(body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            for alias in statement.names:
                yield alias.asname or alias.name.partition(".")[0]


def _is_stand_in(value: object) -> bool:
    if isinstance(value, Ref):
        return value.name.startswith("builtins.")
    return isinstance(value, (Function, Class))
