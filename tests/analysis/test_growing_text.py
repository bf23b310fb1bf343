"""The sieve must let pass whatever may be an accumulation."""

from __future__ import annotations

import pytest

from memlint.analysis.growing_text import may_accumulate


@pytest.mark.parametrize(
    "text",
    [
        "    out = np.append(out, x)\n",
        "    other = 1\n    out = np.append(\n        out, x\n    )\n",
        "    out = x if out is None else torch.cat((out, x))\n",
        "    self.rows: Tensor = torch.vstack([self.rows, x])\n",
        "    out['x'] = torch.cat([out['x'], x])\n",
        "def push(buf, x):\n    return torch.cat([buf, x])\n",
        "def push(self, x):\n    k = torch.cat([self.k, x])\n    self.k, self.v = k, x\n",
        "    longer = torch.cat([path, x])\n    path = longer\n",
        "    out = np.r_[out, x]\n",
        "    out = torch.cat([out] + parts)\n",
        "from torch import cat as join\n",
        "    a, b = torch.cat([a, x]), torch.cat([b, y])\n",
    ],
)
def test_passes(text: str) -> None:
    assert may_accumulate(text)


@pytest.mark.parametrize(
    "text",
    [
        "def rotate(x):\n    a, b = x.chunk(2)\n    return torch.cat([-b, a])\n",
        "    out = torch.cat(parts)\n",
        "    rows.append(out)\n",
        "    y = torch.cat([q, k], dim=-1)\n",
    ],
)
def test_turns_down(text: str) -> None:
    assert not may_accumulate(text)
