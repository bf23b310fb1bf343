"""The sieve of one-hot matrices must let pass whatever may be a factor, and little else."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.one_hot import may_multiply, may_multiply_elsewhere


def function(body: str) -> ast.stmt:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return ast.parse(f"def f(self, i, n, table):\n{lines}").body[0]


def passes(body: str, source: str = "") -> bool:
    return may_multiply(function(body), "", source)


@pytest.mark.parametrize(
    "body",
    [
        "return F.one_hot(i, n).float() @ table",
        "hot = one_hot(i)\nhot = hot.to(table.dtype)\nreturn torch.mm(hot.view(-1, n), table)",
        "return np.eye(n)[i] @ table",
        "rows = torch.eye(n)\nreturn rows[i].matmul(table)",
        "return torch.zeros(9, n).scatter_(1, i, 1).float() @ table",
        "z = torch.zeros(9, n)\nz.scatter_(1, i, value=1.0)\nreturn torch.matmul(z, table)",
        "z = np.zeros((9, n))\nz[np.arange(9), i] = 1\nreturn z @ table",
        "return self.project(F.one_hot(i, n).float())",
        "return torch.einsum('bn,nd->bd', F.one_hot(i, n), table)",
        "return F.one_hot(i, n).float()",
    ],
)
def test_factors_pass(body: str) -> None:
    assert passes(body)


def test_imported_by_another_name() -> None:
    body = "return encode(i, n) @ table"
    assert passes(body, "from torch.nn.functional import one_hot as encode")
    assert not passes(body)


@pytest.mark.parametrize(
    "body",
    [
        "mask = F.one_hot(i, n).permute(2, 1, 0)\nreturn torch.where(mask)",
        "mask = F.one_hot(i, n)\nreturn (mask * table).sum()",
        "return np.eye(n) @ table",
        "return np.eye(n)[0] @ table",
        "z = torch.zeros(9, n)\nz.scatter_(1, i, 0.5)\nreturn z @ table",
        "z = torch.zeros(9, n)\nz.scatter_add_(1, i, table)\nreturn z @ table",
        "return table[i]",
    ],
)
def test_masks_and_lookups_do_not(body: str) -> None:
    assert not passes(body)


def test_callers_matter_to_what_leaves_and_to_how_many_classes() -> None:
    def depends(body: str) -> bool:
        return may_multiply_elsewhere(function(body), "", "")

    assert depends("return F.one_hot(self.i, self.n)")
    assert depends("y = F.one_hot(self.i, n) @ table\nreturn y")
    assert not depends("y = F.one_hot(self.i, self.n) @ table\nreturn y")
