from __future__ import annotations

import pytest

from memlint.findings import Applicability, Confidence, Finding
from tests.rules.linting import fixed, found, only

RULE = "redundant-contiguous"


def program(body: str) -> str:
    return f"import torch\nimport torch.nn.functional as F\n\n\ndef run(x, w):\n    {body}\n"


def one(body: str) -> Finding:
    return only(program(body), RULE)


def test_what_is_made_dense_is_known_to_be() -> None:
    finding = one("return torch.zeros(3, 4).contiguous() + x + w")
    assert finding.confidence is Confidence.HIGH
    assert finding.message.startswith("`torch.zeros(3, 4)` is row-major already:")


def test_what_is_joined_is_assumed_to_be() -> None:
    finding = one("return torch.cat([x, w]).contiguous()")
    assert finding.confidence is Confidence.MEDIUM
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


@pytest.mark.parametrize(
    "body",
    [
        "y = w.t().contiguous(); return x @ y, y",
        "y = w.t().contiguous(); y[0] = 0; return x @ y",
        "y = w.t().contiguous(); return [row @ y for row in x]",
        "return w.t().contiguous().view(-1)",
        "return x.contiguous() @ w",
        "return w[::2, ::2].contiguous() @ x",
        "return torch.cat([x, w]).contiguous(memory_format=torch.channels_last)",
        "return F.scaled_dot_product_attention(x, w.mT.contiguous(), w)",
    ],
)
def test_silent(body: str) -> None:
    assert found(program(body), RULE) == []


# Expressions over a batch of matrices ``x`` and a matrix ``w``.
SAFE = [
    "return x @ w.t().contiguous()",
    "y = w.t().contiguous(); return torch.matmul(x, y)",
    "return F.linear(x, w.t().contiguous().t())",
    "return torch.einsum('bij,jk->bik', x, w.t().contiguous())",
    "return torch.bmm(x, x.transpose(1, 2).contiguous())",
    "b, t, c = x.shape; return x.transpose(1, 2).contiguous().reshape(b, -1)",
    "y = torch.ones(3, 4); return torch.stack([y, y.neg()]).contiguous() * x[0, 0]",
    "y = torch.eye(4); return (y @ y.mT).softmax(-1).contiguous()",
]


@pytest.mark.parametrize("body", SAFE)
def test_safe_fixes_change_nothing(body: str) -> None:
    torch = pytest.importorskip("torch")
    finding = one(body)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE
    mended = fixed(program(body), finding.fix)
    assert "contiguous" not in mended
    x, w = torch.randn(2, 3, 4), torch.randn(4, 4)
    before, after = _run(program(body), x, w), _run(mended, x, w)
    assert torch.allclose(before, after, atol=1e-5)
    assert (before.dtype, before.shape, before.stride()) == (
        after.dtype,
        after.shape,
        after.stride(),
    )


def _run(text: str, *arguments: object):  # type: ignore[no-untyped-def]
    names: dict[str, object] = {}
    exec(text, names)
    return names["run"](*arguments)  # type: ignore[operator]
