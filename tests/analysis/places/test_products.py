"""Sieves for products and pairs: what they let through, and what they need not."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.diagonal import may_multiply_diagonal
from memlint.analysis.places.element_loop import computes_with_what_is_given
from memlint.analysis.places.followed import may_be_followed
from memlint.analysis.places.kept_view import is_given_anything, may_keep_view
from memlint.analysis.places.matrix_loop import may_compute_product
from memlint.analysis.places.pairwise import may_sum_columns, sums_what_is_given
from memlint.rule import UnitTest

NEST = "for i in range(n):\n    for j in range(n):\n        for k in range(n):\n            "


def holds(test: UnitTest, body: str, more: str = "") -> bool:
    text = "def f(self, x, y):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return test(ast.parse(text).body[0], text, f"{text}\n{more}")


@pytest.mark.parametrize(
    ("test", "body", "more"),
    [
        (may_multiply_diagonal, "return torch.diag(x)", ""),
        (may_multiply_diagonal, "return spread(x) @ y", "from numpy import diag as spread"),
        (may_multiply_diagonal, "return made_by(np.diag, x)", ""),
        (may_multiply_diagonal, "p = x @ y\nreturn p.trace()", ""),
        (may_compute_product, NEST + "c[i, j] += x[i, k] * y[k, j]", ""),
        (may_compute_product, "for i, j, k in product(a, b, c):\n    z += x[i, k] * y[k, j]", ""),
        (
            may_compute_product,
            "dot = lambda i, j: sum(x[i][k] * y[k][j] for k in r)\n"
            "return [[dot(i, j) for i in r] for j in r]",
            "",
        ),
        (may_sum_columns, "d = x[:, None] - y\nd *= d\nreturn d.sum(-1)", ""),
        (may_sum_columns, "return between(x, y).abs().sum(-1)", "def between(a, b): ..."),
        (may_sum_columns, "return self.gaps.norm(dim=-1)", "self.gaps = a[:, None] - b"),
        (may_keep_view, "self.head = cut(load(x))", "def cut(a):\n    return a[:3]"),
        (may_keep_view, "for f in (load(p) for p in x):\n    y[f] = f[:8, :8]", ""),
        (sums_what_is_given, "d = x.pow(2)\nreturn d.sum(-1)", ""),
        (computes_with_what_is_given, "a = x\nfor v in a:\n    y += v * v", ""),
        (
            computes_with_what_is_given,
            "for v in self.a:\n    t += v * v",
            "",
        ),
        (is_given_anything, "return 1", ""),
    ],
)
def test_places(test: UnitTest, body: str, more: str) -> None:
    assert holds(test, body, more)


@pytest.mark.parametrize(
    ("test", "body", "more"),
    [
        (may_multiply_diagonal, "return torch.triu(x, diagonal=1) @ y", ""),
        (may_multiply_diagonal, "diag = x.sum(0)\nx.setdiag(diag)", ""),
        (may_multiply_diagonal, "return x.diagonal(offset=1) + f(y)", ""),
        (may_compute_product, "for i in range(n):\n    c[i] += x[i] * y[i]", ""),
        (may_compute_product, NEST + "c[i, j] += x[i, k] + y[k, j]", ""),
        (may_sum_columns, "x = x.to(float)\nreturn x.pow(2).mean(-1)", ""),
        (may_sum_columns, "return self.norm(x)", ""),
        (may_sum_columns, "return (x + y).pow(2).sum(-1)", ""),
        (may_keep_view, "for i in range(len(x)):\n    w = f(x)\n    y.append(w[i])", ""),
        (may_keep_view, "self.layer = Linear(x, dims[0])\nself.x = x", ""),
        (sums_what_is_given, "d = torch.zeros(3) - 1\nreturn d.pow(2).sum(-1)", ""),
        (computes_with_what_is_given, "a = np.zeros(9)\nfor v in a:\n    t += v * v", ""),
    ],
)
def test_no_places(test: UnitTest, body: str, more: str) -> None:
    assert not holds(test, body, more)


@pytest.mark.parametrize(
    ("call", "source", "followed"),
    [
        ("helper(x)", "def helper(a): ...", True),
        ("tools.helper(x)", "from project import tools", True),
        ("helper(x)", "from .tools import *", True),
        ("np.abs(x)", "import numpy as np", False),
        ("F.relu(x)", "import torch.nn.functional as F", False),
        ("x.helper()", "import numpy as np", False),
    ],
)
def test_followed(call: str, source: str, followed: bool) -> None:
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    assert may_be_followed(node.func, source) is followed
