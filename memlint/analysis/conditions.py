"""Under what names a piece of code stands: conditions, functions, classes around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.uses import uses_in
from memlint.analysis.walking import walk


def named_conditions(node: ast.AST, tree: ast.Module) -> Iterator[str]:
    """The names, attributes and texts in the conditions around a node in its function."""
    uses = uses_in(tree)
    inner = node
    for above in uses.ancestors(node):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        if isinstance(above, (ast.If, ast.IfExp)) and inner is not above.test:
            yield from words_of(above.test)
        elif isinstance(above, ast.match_case):
            yield from words_of(above.pattern)
        inner = above


def words_of(node: ast.AST) -> Iterator[str]:
    """The names, attributes and texts in a piece of code, and what it imports and defines."""
    for one in walk(node):
        match one:
            case (
                ast.Name(id=word)
                | ast.Attribute(attr=word)
                | ast.Constant(value=str() as word)
                | ast.alias(name=word)
                | ast.FunctionDef(name=word)
            ):
                yield word


def names_around(node: ast.AST, tree: ast.Module) -> Iterator[str]:
    """The names of the functions and classes around a node."""
    for above in uses_in(tree).ancestors(node):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield above.name


def unwrapped_again(node: ast.AST, tree: ast.Module) -> bool:
    """Whether ``x = wrap(x)`` is followed by ``x = x.module`` in the same scope."""
    uses = uses_in(tree)
    above = uses.parent(node)
    if not isinstance(above, ast.Assign) or len(above.targets) != 1:
        return False
    wrapped = ast.unparse(above.targets[0])
    scope = uses.scope_of(node)
    return any(
        isinstance(one, ast.Assign)
        and one.lineno > above.lineno
        and isinstance(one.value, ast.Attribute)
        and one.value.attr == "module"
        and ast.unparse(one.value.value) == wrapped
        for one in walk(scope)
    )


def scope_text(node: ast.AST, tree: ast.Module) -> str:
    """The function, class or module around a node, as text."""
    return ast.unparse(uses_in(tree).scope_of(node))


def assigned_in(scope: ast.AST, name: str) -> Iterator[ast.expr]:
    """What is assigned to a name anywhere in a function or module."""
    for one in walk(scope):
        if isinstance(one, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in one.targets
        ):
            yield one.value
