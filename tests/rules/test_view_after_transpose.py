from __future__ import annotations

import pytest

from memlint.findings import Applicability, Confidence, Finding
from tests.rules.linting import fixed, found, only

RULE = "view-after-transpose"


def program(body: str) -> str:
    return f"import torch\n\n\ndef run(x):\n    {body}\n"


def one(body: str) -> Finding:
    return only(program(body), RULE)


def test_a_parameter_is_assumed_to_be_dense() -> None:
    finding = one("return x.transpose(1, 2).view(x.size(0), -1)")
    assert finding.confidence is Confidence.MEDIUM
    assert finding.message.endswith("(if what comes in is row-major)")


def test_a_tensor_made_here_is_known() -> None:
    finding = one("y = torch.zeros(3, 4).t(); return y.view(-1)")
    assert finding.confidence is Confidence.HIGH
    (place,) = finding.related
    assert place.message == "the axes are exchanged here"


def test_in_a_chain_the_place_is_where_the_view_stands() -> None:
    finding = one("return (\n        x.transpose(1, 2)\n        .view(x.size(0), -1)\n    )")
    assert finding.location.line == 7


# Programs that torch refuses, and programs that it runs, on a tensor of this shape.
SHAPE = (2, 3, 4)
REFUSED = [
    "x.transpose(1, 2).view(x.size(0), -1)",
    "x.permute(2, 0, 1).view(-1)",
    "x[0].t().view(-1)",
    "torch.relu(x.permute(0, 2, 1)).view(x.shape[0], -1)",
    "x.transpose(1, 2).eq(0).view(2, 12)",
    "(x.mT * 2 + 1).view(-1)",
    "x.movedim(0, 2).clone().view(-1)",
    "x.transpose(0, 1).double().view(6, 4)",
]
ACCEPTED = [
    "x.transpose(1, 2).view(2, 2, 2, 3)",
    "x.permute(1, 2, 0).permute(2, 0, 1).view(-1)",
    "x.permute(2, 0, 1).view(4, 6)",
    "x.transpose(1, 2).contiguous().view(2, -1)",
    "x[:1].transpose(0, 1).view(-1)",
    "x.transpose(1, 2).softmax(-1).view(-1)",
    "x.transpose(1, 2).view(2, 1, 4, 1, 3)",
    "torch.stack([x.mT, x.mT]).view(-1)",
]


@pytest.mark.parametrize("expression", REFUSED)
def test_what_torch_refuses_is_reported_and_its_fix_gives_the_values(expression: str) -> None:
    torch = pytest.importorskip("torch")
    body = f"b, t, c = x.shape; return {expression}"
    finding = one(body)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE
    mended = fixed(program(body), finding.fix)
    assert found(mended, RULE) == []
    x = torch.arange(24.0).reshape(SHAPE)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        _run(program(body), x)
    dense = program(body.replace(".view(", ".contiguous().view("))
    after, expected = _run(mended, x), _run(dense, x)
    assert torch.equal(after, expected)
    assert (after.dtype, after.shape) == (expected.dtype, expected.shape)


@pytest.mark.parametrize("expression", ACCEPTED)
def test_what_torch_runs_is_not_reported(expression: str) -> None:
    torch = pytest.importorskip("torch")
    body = f"b, t, c = x.shape; return {expression}"
    assert found(program(body), RULE) == []
    _run(program(body), torch.arange(24.0).reshape(SHAPE))


def _run(text: str, x: object):  # type: ignore[no-untyped-def]
    names: dict[str, object] = {}
    exec(text, names)
    return names["run"](x)  # type: ignore[operator]
