from __future__ import annotations

import ast

import pytest

from memlint.source.model import Source
from memlint.source.statements import normalised, statement_of

PROGRAM = """\
import a
@deco(1)
def outer(x):
    class Inner:
        def method(self):
            return [
                f(y)  # why
                for y in self.z
            ]
    def nested(): g(x)
    for i in range(
        h(3),
    ):
        k(i)
    else:
        l(i)
    match x:
        case [p]:
            m(p)
    try:
        pass
    except e(x) as error:
        n(error)
q(1)
"""


@pytest.mark.parametrize(
    ("call", "qualname", "text"),
    [
        ("deco", "outer", "def outer(x):"),
        ("f", "outer.<locals>.Inner.method", "return[f(y)for y in self.z]"),
        ("g", "outer.<locals>.nested", "g(x)"),
        ("h", "outer", "for i in range(h(3)):"),
        ("k", "outer", "k(i)"),
        ("l", "outer", "l(i)"),
        ("m", "outer", "m(p)"),
        ("e", "outer", "except e(x)as error:"),
        ("n", "outer", "n(error)"),
        ("q", "<module>", "q(1)"),
    ],
)
def test_the_innermost_statement_of_a_call(call: str, qualname: str, text: str) -> None:
    tree = ast.parse(PROGRAM)
    node = next(
        n for n in ast.walk(tree)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == call
    )  # fmt: skip
    statement = statement_of(tree, node)
    assert (statement.qualname, statement.text(Source("x.py", PROGRAM))) == (qualname, text)


def test_a_compound_statement_is_its_own_header() -> None:
    tree = ast.parse(PROGRAM)
    loop = next(n for n in ast.walk(tree) if isinstance(n, ast.For))
    assert statement_of(tree, loop).node is loop
    match = next(n for n in ast.walk(tree) if isinstance(n, ast.Match))
    text = statement_of(tree, match).text(Source("x.py", PROGRAM))
    assert text.startswith("match x:")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f(a,b)", "f(\n    a,  # first\n    b,\n)"),
        ("x = a+b", "x = a + \\\n  b"),
        ("return x", "return   x  # c"),
        ("s = 'a  b'", "s='a  b'"),
    ],
)
def test_layout_does_not_count(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("s = 'a b'", "s = 'a  b'"), ("notx", "not x"), ("s = '# a'", "s = '# b'"), ("a-b", "a+b")],
)
def test_meaning_counts(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)
