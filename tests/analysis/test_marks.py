"""Marks spread as values do."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from memlint.analysis.marks import OUTER, Marks, MarkWalk


def returned(body: str) -> set[str]:
    """The marks of what a function returns, where ``mark()`` has one."""

    def step(node: ast.expr, of: Callable[[ast.expr], Marks]) -> Marks | None:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "mark"
        ):
            return frozenset({"marked"})
        return frozenset() if isinstance(node, ast.Constant) else None

    walker = MarkWalk(step)
    walker.run(ast.parse("def f(x):\n" + "".join(f"    {one}\n" for one in body.splitlines())))
    return set(walker.state["f"])


@pytest.mark.parametrize(
    "body",
    [
        "y = mark()\nreturn y",
        "y = 1\nif x:\n    y = mark()\nreturn y",
        "y = 1\nfor i in x:\n    z = y\n    y = mark()\nreturn z",
        "rows = []\nrows.append(mark())\nreturn rows[0]",
        "rows = {}\nrows['a'] = mark()\nreturn rows",
        "a, b = 1, mark()\nreturn b",
        "x.kept = mark()\nreturn x.kept",
        "try:\n    y = mark()\nexcept E:\n    pass\nreturn y",
        "return [one for one in [mark()]]",
        "if (y := mark()):\n    return y",
        "with mark() as y:\n    return y",
        "f = lambda: mark()\nreturn f()",
        "match x:\n    case 1:\n        y = mark()\nreturn y",
    ],
)
def test_marks_arrive(body: str) -> None:
    assert "marked" in returned(body)


@pytest.mark.parametrize(
    "body",
    [
        "y = mark()\ny = 1\nreturn y",
        "a, b = 1, mark()\nreturn a",
        "y = 1\nif x:\n    y = mark()\n    return 1\nreturn y",
        "def inner():\n    y = mark()\ny = 1\nreturn y",
    ],
)
def test_marks_do_not(body: str) -> None:
    assert "marked" not in returned(body)


def test_what_a_function_does_not_set_is_told_by_its_path() -> None:
    assert returned("return x") == {OUTER + "x"}
    assert returned("return self.kept") == {OUTER + "self.kept"}
    assert returned("y = x.first\nx = 1\nreturn y") == {OUTER + "x.first"}
