"""Which functions may copy a tensor to row-major needlessly."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.contiguous import may_be_redundant


def redundant(body: str, more: str = "") -> bool:
    text = "def f(self, x, y):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return may_be_redundant(ast.parse(text).body[0], text, f"{text}\n{more}")


@pytest.mark.parametrize(
    "body",
    [
        "return torch.zeros(3, 4).contiguous()",
        "y = (x @ y).contiguous()\nreturn y",
        "return torch.cat([x, y]).contiguous()",
        "return x[y].contiguous()",
        "x = x.t().contiguous()\nreturn [x.contiguous(), x]",
        "y = self.layer(x)\nreturn y.contiguous()",
        "y = torch.relu(torch.eye(3))\nreturn y.contiguous()",
        "y = torch.hann_window(x)\nreturn y.contiguous()",
        "return x.t().t().contiguous()",
        "x = x.transpose(1, 2).reshape(-1)\nreturn x.contiguous()",
    ],
)
def test_copies_of_what_is_dense(body: str) -> None:
    assert redundant(body)


@pytest.mark.parametrize(
    "body",
    [
        "return x.contiguous().reshape(-1)",
        "z = x.t().contiguous()\nreturn y @ z",
        "z = x.contiguous()\nz = z.flatten()\nreturn z",
        "return torch.matmul(x.contiguous(), y)",
        "return F.scaled_dot_product_attention(x, y.contiguous(), y)",
        "z = x.contiguous().t()\nreturn torch.mm(z, y)",
        "return x.contiguous() + 1",
        "return torch.cat([x.contiguous().mul(2)])",
    ],
)
def test_copies_for_what_needs_none(body: str) -> None:
    assert redundant(body)


@pytest.mark.parametrize(
    "body",
    [
        "return x.contiguous()",
        "return x.transpose(1, 2).contiguous()",
        "return x[:, 1:].contiguous()",
        "return torch.zeros(3, 4).t().contiguous()",
        "return x.contiguous().view(-1)",
        "z = x.contiguous()\nreturn z @ y + z",
        "return helper(x).contiguous()",
        "return torch.zeros(3).contiguous(memory_format=torch.channels_last)",
        "self.kept = x.contiguous()",
    ],
)
def test_copies_that_may_be_needed(body: str) -> None:
    assert not redundant(body)


def test_what_takes_a_copy_under_another_name() -> None:
    assert redundant("return product(x.contiguous(), y)", "from torch import matmul as product")
    assert redundant("return product(x.contiguous(), y)", "import torch\nproduct = torch.matmul\n")
    assert not redundant("return product(x.contiguous(), y)")
