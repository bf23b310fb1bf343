"""Code that expects an error: what is tried, and what a test says will raise."""

from __future__ import annotations

import ast

from memlint.analysis.walking import walk

_EXPECTING = frozenset({"raises", "suppress", "assertRaises", "assertRaisesRegex"})


def error_is_expected(scope: ast.AST, node: ast.AST) -> bool:
    """Whether an error at ``node`` in ``scope`` is caught there, or waited for."""
    line = getattr(node, "lineno", 0)
    return any(
        _expects(one) and one.body[0].lineno <= line <= (one.body[-1].end_lineno or 0)
        for one in walk(scope)
        if isinstance(one, (ast.Try, ast.With))
    )


def _expects(statement: ast.Try | ast.With) -> bool:
    if isinstance(statement, ast.Try):
        return bool(statement.handlers)
    entered = [item.context_expr for item in statement.items]
    return any(
        isinstance(one, ast.Call)
        and getattr(one.func, "attr", getattr(one.func, "id", "")) in _EXPECTING
        for one in entered
    )
