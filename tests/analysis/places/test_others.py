"""Which functions may loop over elements, sum up pairs, or keep small views."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.element_loop import may_compute_by_elements
from memlint.analysis.places.kept_view import may_keep_view
from memlint.analysis.places.pairwise import may_sum_columns
from memlint.rule import UnitTest


def holds(test: UnitTest, body: str, more: str = "") -> bool:
    text = "def f(self, x, y):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return test(ast.parse(text).body[0], text, f"{text}\n{more}")


@pytest.mark.parametrize(
    ("test", "body"),
    [
        (may_compute_by_elements, "for i in range(len(x)):\n    y[i] = x[i] * 2"),
        (may_compute_by_elements, "def g():\n    for v in x:\n        y += v.item()"),
        (may_compute_by_elements, "return sum(v * v for v in x)"),
        (may_sum_columns, "return ((x[:, None] - y[None]) ** 2).sum(-1)"),
        (may_sum_columns, "return np.linalg.norm(x - y, axis=2)"),
        (may_sum_columns, "return x.norm(2, dim=axis)"),
        (may_keep_view, "for p in x:\n    frame = load(p)\n    y.append(frame[:8])"),
        (may_keep_view, "frame = load(x)\nhead = frame.T[0, :n]\nself.head = head"),
        (may_keep_view, "return {k: load(k)[:8] for k in x}"),
        (may_keep_view, "a, self.b = x, load(x).narrow(0, 0, 4)"),
    ],
)
def test_places(test: UnitTest, body: str) -> None:
    assert holds(test, body)


@pytest.mark.parametrize(
    ("test", "body"),
    [
        (may_compute_by_elements, "for i in range(len(x)):\n    y.append(x[i])"),
        (may_compute_by_elements, "for i in range(len(x.shape)):\n    y += x.shape[i]"),
        (may_compute_by_elements, "return sum(len(v) for v in x)"),
        (may_sum_columns, "return ((x - y) ** 2).sum()"),
        (may_sum_columns, "return x.mean(dim=1) + y.norm(1, 0)"),
        (may_keep_view, "for p in x:\n    y.append(p.split('/')[-1])"),
        (may_keep_view, "self.head = x[:8]"),
        (may_keep_view, "frame = load(x)\nreturn frame[:8]"),
        (may_keep_view, "frame = load(x)\nself.head = frame[:8].sum() + 1"),
    ],
)
def test_no_places(test: UnitTest, body: str) -> None:
    assert not holds(test, body)
