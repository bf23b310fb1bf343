"""The sieve of permuted images must let pass what may become row-major, and little else."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.permuted import may_densify, may_hand_on


def function(body: str) -> ast.stmt:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return ast.parse(f"def forward(self, x, table):\n{lines}").body[0]


def passes(body: str, source: str = "") -> bool:
    return may_densify(function(body), "", source)


@pytest.mark.parametrize(
    "body",
    [
        "return self.conv(x.permute(0, 3, 1, 2).contiguous())",
        "return self.conv(torch.permute(x, (0, -1, 1, 2)).contiguous())",
        "y = x.movedim(-1, 1)\ny = self.act(y)\ny = y.contiguous()\nreturn self.conv(y)",
        "y = x.permute(0, 4, 1, 2, 3)\nreturn self.conv(torch.cat([y, table], 1))",
        "y = x.permute(0, 3, 1, 2)\nreturn self.conv(table + y)",
        "y = x.permute(0, 3, 1, 2).flatten(2)\nreturn self.conv(y.view(1, 2, 3, 4))",
        "y = x.permute(0, 3, 1, 2)\n"
        "return self.conv(y.clone(memory_format=torch.contiguous_format))",
    ],
)
def test_what_is_made_row_major_passes(body: str) -> None:
    assert passes(body)
    assert not may_hand_on(function("return x.permute(0, 2, 3, 1).contiguous()"), "", "")


@pytest.mark.parametrize(
    "body",
    [
        "return self.conv(x.permute(0, 2, 3, 1).contiguous())",
        "return self.conv(F.interpolate(x.permute(0, 3, 1, 2)))",
        "return F.interpolate(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1).view(1, -1, 8)",
        "return x.permute(0, 3, 1, 2).reshape(n, -1, c)",
        "return x.permute(0, 3, 1, 2).contiguous()",
        "y = x.permute(0, 3, 1, 2)\nreturn self.conv(y + table)",
        "return x.contiguous()",
    ],
)
def test_what_keeps_the_format_or_leaves_does_not(body: str) -> None:
    assert not passes(body)


@pytest.mark.parametrize(
    "source",
    ["y = self.norm(x).contiguous()\n", "y = dense(x, torch.contiguous_format)\n"],
)
def test_what_others_may_copy_passes(source: str) -> None:
    body = "return x.permute(0, 3, 1, 2)"
    assert passes(body, source)
    assert may_hand_on(function(body), "", source)


@pytest.mark.parametrize(
    "source",
    [
        "q = q.transpose(1, 2).contiguous()\n",
        "y = zeros_like(x, memory_format=torch.legacy_contiguous_format)\n",
        "y = self.norm(x)\n",
    ],
)
def test_copies_of_moved_axes_are_none_of_what_is_handed_on(source: str) -> None:
    assert not passes("return x.permute(0, 3, 1, 2)", source)
