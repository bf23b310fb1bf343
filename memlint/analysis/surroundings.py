"""The loops and branches that an expression stands in, and what takes it, by syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While | ast.comprehension

LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_BRANCHES = (ast.If, ast.IfExp, ast.Try, ast.ExceptHandler, ast.BoolOp, ast.match_case)
_KEEPERS = frozenset({"append", "appendleft", "extend", "add", "insert", "put", "send", "submit"})


class Surroundings:
    """What stands around the expressions of a tree; ``parent`` gives that of a node."""

    def __init__(self, parent: Callable[[ast.AST], ast.AST | None]) -> None:
        self.parent = parent

    def ancestors(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """The ancestors of a node up to its function, each with the child that leads to it."""
        child, parent = node, self.parent(node)
        while parent is not None and not isinstance(parent, (*_FUNCTIONS, ast.ClassDef)):
            yield parent, child
            child, parent = parent, self.parent(parent)

    def loops(self, node: ast.AST) -> Iterator[tuple[Loop, ast.AST]]:
        """The loops around a node in its function, innermost first, with the child in them."""
        for parent, child in self.ancestors(node):
            if isinstance(parent, LOOPS):
                first = getattr(parent, "iter", None)
                if child is not first and not any(child is one for one in parent.orelse):
                    yield parent, child
            elif isinstance(parent, COMPREHENSIONS) and child is not parent.generators[0]:
                yield parent.generators[0], child

    def region(self, loop: Loop) -> list[ast.AST]:
        """What each iteration of a loop runs."""
        if isinstance(loop, ast.While):
            return [loop.test, *loop.body]
        if isinstance(loop, ast.comprehension):
            parent = self.parent(loop)
            return [] if parent is None else [parent]
        return [loop.target, *loop.body]

    def whole(self, node: ast.AST) -> ast.ListComp | ast.DictComp | None:
        """The comprehension of one loop whose results an expression computes."""
        around = self.parent(node)
        if not isinstance(around, (ast.ListComp, ast.DictComp)) or len(around.generators) > 1:
            return None
        result = around.value if isinstance(around, ast.DictComp) else around.elt
        return around if result is node else None

    def always_runs(self, node: ast.AST) -> bool:
        """Whether no branch of its function stands around a node."""
        return not any(isinstance(above, _BRANCHES) for above, _ in self.ancestors(node))

    def is_returned(self, node: ast.expr) -> bool:
        """Whether a function gives an expression back as it is, for its caller to use."""
        return isinstance(self.parent(node), ast.Return)

    def used_up(self, node: ast.expr, is_kept: Callable[[ast.Assign], bool]) -> bool:
        """Whether each iteration needs a result of its own: it is kept, or written into.

        ``is_kept`` tells of an assignment whether it keeps its value for long.
        """
        for parent, child in self.ancestors(node):
            match parent:
                case ast.Attribute(attr=name):
                    if name.endswith("_") and not name.endswith("__"):
                        return True
                case ast.Call(func=func) if child is func:
                    pass
                case ast.Call(func=ast.Attribute(attr=name)):
                    return name in _KEEPERS or (name.endswith("_") and name != "copy_")
                case ast.Assign():
                    return is_kept(parent)
                case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                    return True
                case ast.Yield() | ast.YieldFrom() | ast.Return() | ast.AugAssign():
                    return True
                case (
                    ast.Tuple() | ast.List() | ast.Dict() | ast.Set() | ast.IfExp()
                    | ast.Subscript() | ast.NamedExpr() | ast.Starred()
                ):  # fmt: skip
                    pass
                case _:
                    return False
        return False

    def runs_in_most(
        self, branch: ast.AST, loop: Loop, node: ast.AST, is_steady: Callable[[ast.If], bool]
    ) -> bool:
        """Whether nearly each iteration comes by a node, and another one may follow it.

        ``is_steady`` tells of a condition whether it is the same in all iterations.
        """
        for parent, child in self.ancestors(node):
            if parent is loop:
                break
            if isinstance(parent, ast.ExceptHandler) or (
                isinstance(parent, ast.If) and child is not parent.test and not is_steady(parent)
            ):
                return False
            if isinstance(parent, ast.IfExp) and child is not parent.test:
                return False
            for body in _bodies(parent):
                if child in body and any(map(_leaves, body[body.index(child) :])):
                    return False
        statements: Sequence[ast.AST] = [] if isinstance(loop, ast.comprehension) else loop.body
        return branch not in statements or not any(
            map(_leaves, statements[statements.index(branch) :])
        )


def stores_elsewhere(statement: ast.Assign) -> bool:
    """Whether an assignment stores into anything but variables."""
    return any(not isinstance(target, (ast.Name, ast.Tuple)) for target in statement.targets)


def _bodies(node: ast.AST) -> Iterator[list[ast.AST]]:
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list):
            yield body


def _leaves(statement: ast.AST) -> bool:
    return isinstance(statement, (ast.Return, ast.Break, ast.Raise))
