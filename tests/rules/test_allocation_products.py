"""Fixes of products that do more than they have to compute the same numbers."""

from __future__ import annotations

from typing import Any

import pytest

from memlint.findings import Applicability
from tests.rules.linting import fixed, found, only


def run(program: str) -> Any:
    space: dict[str, Any] = {}
    exec(compile(program, "program.py", "exec"), space)
    return space["result"]


def mended(program: str, rule: str) -> str:
    finding = only(program, rule)
    assert finding.fix is not None
    changed = fixed(program, finding.fix)
    assert found(changed, rule) == []
    return changed


@pytest.mark.parametrize(
    "product",
    [
        "np.diag(d) @ m",
        "m.T @ np.diag(1.0 / d)",
        "np.diag(m @ k.T)",
        "np.trace(m @ k.T)",
        "(m @ k.T).diagonal()",
        "np.trace(np.dot(m.T, k))",
    ],
)
def test_diagonals(product: str) -> None:
    numpy = pytest.importorskip("numpy")
    program = f"""import numpy as np

rng = np.random.default_rng(0)
d, m, k = np.linspace(1.0, 2.0, 50), np.ones((50, 30)), np.full((50, 30), 0.5)
m += rng.random()
result = {product}
"""
    before, after = run(program), run(mended(program, "diag-matmul"))
    assert numpy.allclose(before, after)
    assert numpy.shape(before) == numpy.shape(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = u @ np.diag(s)", "y = u * s"),
        ("y = (u @ np.diag(s)).sum()", "y = (u * s).sum()"),
        ("y = np.linalg.norm(u @ np.diag(s))", "y = np.linalg.norm(u * s)"),
        ("y = 1 + u @ np.diag(s)", "y = 1 + u * s"),
        ("y = u @ np.diag(s) @ u.T", "y = (u * s) @ u.T"),
        ("y = 1 / (u @ np.diag(s))", "y = 1 / (u * s)"),
        (
            "y = np.trace(u @ v) / np.trace(v @ v)",
            "y = (u * v.T).sum() / (v * v.T).sum()",
        ),
    ],
)
def test_parentheses_stand_where_they_are_needed(before: str, after: str) -> None:
    head = "import numpy as np\n\n\ndef f(u, v, s):\n    "
    assert mended(head + before + "\n", "diag-matmul") == head + after + "\n"


@pytest.mark.parametrize(
    "product",
    [
        "F.one_hot(i, 40).float() @ w",
        "torch.matmul(F.one_hot(i, 40).to(w.dtype), w)",
        "torch.eye(40)[i] @ w",
    ],
)
def test_one_hot_rows(product: str) -> None:
    torch = pytest.importorskip("torch")
    program = f"""import torch
import torch.nn.functional as F

i = torch.arange(60) % 40
w = torch.arange(280.0).reshape(40, 7)
result = {product}
"""
    before, after = run(program), run(mended(program, "onehot-matmul"))
    assert torch.equal(before, after)
    assert before.dtype == after.dtype


@pytest.mark.parametrize(
    "repeated",
    [
        "row.repeat(500, 1)",
        "row.repeat((500, 1))",
        "vector.repeat(500, 1)",
        "row.tile(500, 1)",
        "table[-1:].repeat(500, 1)",
        "vector.view(1, -1).repeat(500, 1)",
        "torch.gather(table, 1, (table[:, :1] > 2).long().repeat(1, 300))",
    ],
)
def test_repetitions(repeated: str) -> None:
    torch = pytest.importorskip("torch")
    program = f"""import torch

row, vector, table = torch.arange(300.0)[None], torch.arange(300.0), torch.ones(500, 300)
result = table + {repeated}
"""
    rule = "repeat-instead-of-expand"
    finding = only(program, rule)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert torch.equal(run(program), run(mended(program, rule)))


@pytest.mark.parametrize(
    ("scores", "output"),
    [
        ("q @ k.transpose(-2, -1) * 0.125", "w @ v"),
        ("torch.matmul(q, k.transpose(-2, -1)) / 8.0", "torch.matmul(w, v)"),
        ("q @ k.mT", "w @ v"),
        ('torch.einsum("bhid,bhjd->bhij", q, k)', 'torch.einsum("bhij,bhjd->bhid", w, v)'),
    ],
)
def test_attention_that_is_shown(scores: str, output: str) -> None:
    torch = pytest.importorskip("torch")
    program = f"""import torch

torch.manual_seed(0)
q, k, v = torch.randn(2, 3, 200, 64), torch.randn(2, 3, 300, 64), torch.randn(2, 3, 300, 32)
w = torch.softmax({scores}, dim=-1)
result = {output}
"""
    finding = only(program, "naive-attention")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.DISPLAY
    changed = fixed(program, finding.fix)
    assert "scaled_dot_product_attention(q, k, v, scale=" in changed
    assert torch.allclose(run(program), run(changed), atol=1e-5)
