"""A sieve: texts in which a loop may compute the same thing over and over.

It looks at the syntax of a text alone, and errs on the side of yes.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterator

from memlint.analysis.changes import Changes, path_of
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
    """The calls of ``names`` in loops whose own assignments leave them as they are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (one for one in node.names if one.asname and one.name in names)
        elif isinstance(node, LOOPS):
            head = [node.test] if isinstance(node, ast.While) else [node.target]
            yield from _in_region([*head, *node.body], names)
        elif isinstance(node, COMPREHENSIONS):
            yield from _in_region([node], names)


def _in_region(region: list[ast.AST], names: frozenset[str]) -> Iterator[ast.Call]:
    calls: list[ast.Call] = []
    changes = Changes()
    for part in region:
        for node in ast.walk(part):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if called in names and not _is_numpy(node.func, called):
                    calls.append(node)
            elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
                path = path_of(node)
                if path is not None:
                    changes.rebound.add(path)
    yield from (call for call in calls if only_reads(call, changes, any_device=True))


def _is_numpy(function: ast.expr, name: str) -> bool:
    """``np.asarray(x)``, which moves nothing."""
    path = path_of(function)
    return name in ("array", "asarray") and path is not None and path[0] in ("np", "numpy")
