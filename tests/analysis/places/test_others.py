"""Which functions may loop over elements, sum up pairs, keep small views, or run stacks."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.element_loop import may_compute_by_elements
from memlint.analysis.places.kept_view import may_keep_view
from memlint.analysis.places.pairwise import may_sum_columns
from memlint.analysis.places.stack import may_run_stack
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
        (may_run_stack, "for i, block in enumerate(self.blocks):\n    x = block(x)"),
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
        (may_run_stack, "for block in self.blocks:\n    x = block.run(x)"),
        (may_run_stack, "return self.blocks(x)"),
    ],
)
def test_no_places(test: UnitTest, body: str) -> None:
    assert not holds(test, body)


def test_a_sequence_of_a_list_is_a_stack() -> None:
    made = "self.blocks = nn.Sequential(*[Block() for _ in range(12)])"
    by_function = "def stack():\n    return nn.Sequential(\n        *parts)\nself.blocks = stack()"
    assert holds(may_run_stack, "return self.blocks(x)", made)
    assert holds(may_run_stack, "return self.blocks(x)", by_function)
    assert not holds(may_run_stack, "return self.head(x)", made)
    assert not holds(may_run_stack, "return self.blocks(x)", "self.blocks = nn.Sequential(a, b)")


def test_dense_views_of_channels_last_images_are_no_stack() -> None:
    body = "for block in self.blocks:\n    x = block(x)"
    assert not holds(may_run_stack, body, "x = x.to(memory_format=torch.channels_last)")
