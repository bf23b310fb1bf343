from __future__ import annotations

import pytest

from memlint.findings import Confidence, Severity
from tests.rules.linting import found, only

RULE = "concat-in-loop"


def loop(body: str, head: str = "for x in stream:", before: str = "out = torch.empty(0)") -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"""import numpy as np
import torch

def collect(stream, f, n):
    {before}
    {head}
{lines}    return out
"""


@pytest.mark.parametrize(
    "body",
    [
        "out = torch.cat([out, x])",
        "out = torch.cat((x, out), dim=0).contiguous()",
        "out = torch.cat([out] + [x])",
        "out = torch.cat(tensors=[out, x])",
        "out = np.append(out, x)",
        "out = out if x is None else torch.cat([out, x])",
        "longer = torch.cat([out, x])\nout = longer",
        "old = out\nout = torch.cat([old, x])",
        "if f(x):\n    out = torch.cat([out, x])",
        "try:\n    out = torch.cat([out, x])\nexcept RuntimeError:\n    out = x",
        "for y in x:\n    out = torch.cat([out, y])",
        "if (longer := torch.cat([out, x])) is not None:\n    out = longer",
    ],
)
def test_reported(body: str) -> None:
    finding = only(loop(body), RULE)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.HIGH)


@pytest.mark.parametrize(
    "body",
    [
        "out = torch.cat([out[1:], x])",
        "out = torch.cat([out, x])[-10:]",
        "out = torch.cat([out, x])\nout = out[-10:]",
        "out = torch.cat([out, x])\nif len(out) > 10:\n    out = out[1:]",
        "out = f(torch.cat([out, x]))",
        "out = x\nout = torch.cat([out, x + 1])",
        "y = torch.cat([out, x])",
        "out = torch.cat([out, out])",
        "out = torch.cat([out, x])\nbreak",
        "out = torch.cat([out, x])\nif f(x):\n    out = torch.empty(0)",
    ],
)
def test_silent(body: str) -> None:
    assert found(loop(body), RULE) == []


@pytest.mark.parametrize(
    "head", ["for x in (1, 2, 3):", "for i in range(4):", "for layer in layers:"]
)
def test_silent_in_short_loops(head: str) -> None:
    assert found(loop("out = torch.cat([out, f(n)])", head), RULE) == []


def test_decoding_is_info() -> None:
    text = loop("out = torch.cat([out, f(out)])", "while out.shape[0] < n:")
    assert only(text, RULE).severity is Severity.INFO


def test_a_method_that_is_called_over_and_over_is_told_at_medium_confidence() -> None:
    text = """import torch

class Meter:
    def __init__(self):
        self.seen = torch.empty(0)

    def update(self, x):
        self.seen = torch.cat([self.seen, x])
"""
    assert only(text, RULE).confidence is Confidence.MEDIUM
    assert found(text.replace("def update", "def rebuild"), RULE) == []
