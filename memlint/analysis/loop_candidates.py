"""A sieve: texts in which a loop may compute the same thing over and over.

It looks at the syntax of a text alone, and errs on the side of yes.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterator

from memlint.analysis.changes import Changes, FunctionNode, as_argument, called_name, path_of
from memlint.analysis.invariance import COMPREHENSIONS, LOOPS, only_reads


def may_repeat(names: frozenset[str]) -> Callable[[str], bool]:
    """A test whether a text calls one of ``names`` in a loop that seems to leave its arguments
    as they are, or imports one under another name."""

    word = re.compile(rf"\b(?:{'|'.join(sorted(names))})\b(?:\(| as )")

    def test(text: str) -> bool:
        if not ("for " in text or "while " in text) or word.search(text) is None:
            return "import " in text and word.search(text) is not None
        try:
            tree = ast.parse(textwrap.dedent(text))
        except SyntaxError:
            return True
        return any(True for _ in candidates(tree, names))

    return test


def candidates(tree: ast.AST, names: frozenset[str]) -> Iterator[ast.AST]:
    """The calls of ``names`` in loops whose own assignments leave them as they are, also through
    a function that the loop calls."""
    nodes = list(ast.walk(tree))
    every = [node for node in nodes if isinstance(node, ast.Call)]
    calls = [node for node in every if _is_one(node, names)]
    functions = _functions(nodes, calls)
    lines = {node.lineno for node in calls}
    lines.update(node.lineno for node in every if called_name(node) in functions)
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            yield from (one for one in node.names if one.asname and one.name in names)
        elif isinstance(node, (*LOOPS, *COMPREHENSIONS)):
            if lines.isdisjoint(range(node.lineno, (node.end_lineno or node.lineno) + 1)):
                continue
            if isinstance(node, COMPREHENSIONS):
                yield from _in_region([node], names, functions)
            else:
                head = [node.test] if isinstance(node, ast.While) else [node.target]
                yield from _in_region([*head, *node.body], names, functions)


_Functions = dict[str, list[tuple[FunctionNode, list[ast.Call]]]]


def _functions(nodes: list[ast.AST], calls: list[ast.Call]) -> _Functions:
    """The functions that make some of these calls, by their own name."""
    found: _Functions = {}
    for node in nodes if calls else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            last = node.end_lineno or node.lineno
            own = [one for one in calls if node.lineno <= one.lineno <= last]
            if own:
                found.setdefault(node.name, []).append((node, own))
    return found


def _in_region(
    region: list[ast.AST], names: frozenset[str], functions: _Functions
) -> Iterator[ast.expr]:
    nodes = [node for part in region for node in ast.walk(part)]
    changes = Changes()
    for node in nodes:
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            path = path_of(node)
            if path is not None:
                changes.rebound.add(path)
    for node in nodes:
        if isinstance(node, (ast.ListComp, ast.DictComp)) and node not in region:
            result = node.value if isinstance(node, ast.DictComp) else node.elt
            moves = isinstance(result, ast.Call) and _is_one(result, names)
            if moves and only_reads(node, changes, any_device=True):
                yield node
        if not isinstance(node, ast.Call):
            continue
        if _is_one(node, names) and only_reads(node, changes, any_device=True):
            yield node
        for function, calls in functions.get(called_name(node), ()):
            for call in calls:
                moved = as_argument(call, function, node)
                if moved is not None and only_reads(moved, changes, any_device=True):
                    yield moved


def _is_one(node: ast.Call, names: frozenset[str]) -> bool:
    name = called_name(node)
    return name in names and not _is_numpy(node.func, name)


def _is_numpy(function: ast.expr, name: str) -> bool:
    """``np.asarray(x)``, which moves nothing."""
    path = path_of(function)
    return name in ("array", "asarray") and path is not None and path[0] in ("np", "numpy")
