"""Edits of calls: what was there stays as it was."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.edits import call_with_keyword, call_without_keyword, followed_by
from memlint.rule import Replacement
from memlint.source.model import Source


def edited(text: str) -> Replacement | None:
    (statement,) = ast.parse(text).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    return call_with_keyword(Source("program.py", text), statement.value, "pin", "True")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()", "f(pin=True)"),
        ("f(a)", "f(a, pin=True)"),
        ("f( a )", "f( a, pin=True )"),
        ("f(a,)", "f(a, pin=True,)"),
        ("f(a, b=(2))", "f(a, b=(2), pin=True)"),
        ("f((x for x in y), 1)", "f((x for x in y), 1, pin=True)"),
        ("f(a,\n  b=2)", "f(a,\n  b=2, pin=True)"),
        ("f(\n    a, b=2\n)", "f(\n    a, b=2, pin=True\n)"),
        ("f(\n    a,\n    b=2,\n)", "f(\n    a,\n    b=2,\n    pin=True,\n)"),
        ("f(\n    a,\n    b=2  # two\n)", "f(\n    a,\n    b=2,  # two\n    pin=True\n)"),
        ("f(\n    a,\n    b=2,  # two\n)", "f(\n    a,\n    b=2,  # two\n    pin=True,\n)"),
        ("f(\r\n    a,\r\n)", "f(\r\n    a,\r\n    pin=True,\r\n)"),
        ("f('größe', b)", "f('größe', b, pin=True)"),
        ("m.n[0](a)(b)", "m.n[0](a)(b, pin=True)"),
    ],
)
def test_a_keyword_goes_last_in_the_style_of_the_call(before: str, after: str) -> None:
    edit = edited(before)
    assert edit is not None
    assert edit.content == after
    ast.parse(edit.content)


def test_a_keyword_that_is_there_gets_the_new_value_alone() -> None:
    edit = edited("f(a, pin = False, b=1)")
    assert edit is not None
    assert edit.content == "True"
    assert isinstance(edit.node, ast.Constant)
    assert edit.node.value is False


@pytest.mark.parametrize("text", ["f(*a)", "f(a, **b)", "f(x for x in y)"])
def test_no_edit_where_the_call_does_not_show_all_or_takes_no_more(text: str) -> None:
    assert edited(text) is None


def test_a_call_is_followed_by_another() -> None:
    text = "net = (net\n    .cuda())\n"
    call = next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    edit = followed_by(Source("program.py", text), call, ".eval()")
    assert edit is not None
    assert edit.content == "net\n    .cuda().eval()"


def without(text: str) -> str | None:
    call = next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    edit = call_without_keyword(Source("program.py", text), call, "pin")
    return edit.content if edit is not None else None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(a, pin=True)", "f(a)"),
        ("f(a, pin=g(1, b=2), c=3)", "f(a, c=3)"),
        ("f(a, pin = {1: 2}, )", "f(a, )"),
        ("f(\n    a,\n    pin=x\n    + y,\n)", "f(\n    a,\n)"),
        ("f(a, g(pin=1), pin=2)", "f(a, g(pin=1))"),
    ],
)
def test_a_keyword_goes_with_the_comma_before_it(before: str, after: str) -> None:
    assert without(before) == after
    ast.parse(after)


@pytest.mark.parametrize(
    "text", ["f(a)", "f(pin=1)", "f(pin=1, b=2)", "f(a, **{'pin': 1})", "f(a,  # why\n  pin=1)"]
)
def test_a_keyword_that_is_not_there_first_or_commented_stays(text: str) -> None:
    assert without(text) is None
