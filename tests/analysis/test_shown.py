"""Parts of programs as messages show them."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.shown import LONGEST, shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.to( device )", "`x.to(device)`"),
        ("f(a,\n  b)", "`f(a, b)`"),
        ("f('''a\n\n   b''')", "`f('a\\n\\n   b')`"),
    ],
)
def test_an_expression_stands_on_one_line(text: str, expected: str) -> None:
    expected = " ".join(expected.split())
    assert shown(ast.parse(text).body[0]) == expected


def test_a_long_expression_is_cut() -> None:
    text = shown(ast.parse(f"f({'x, ' * 50}y)").body[0])
    assert text.startswith("`f(x, x, ")
    assert text.endswith("...`")
    assert len(text) == LONGEST + 2
