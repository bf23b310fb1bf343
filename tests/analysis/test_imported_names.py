"""What names stand for by the imports in a text."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.imported_names import full_name

SOURCE = """
import torch, numpy as np
import torch.nn.functional as F
from torch import matmul as product, nn
from einops import (  # by name
    rearrange,
    repeat as widen,
)
from .helpers import load
cat = torch.cat  # short

def f(x):
    from numpy import eye
    y = x.first
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch.zeros", "torch.zeros"),
        ("np.random.rand", "numpy.random.rand"),
        ("F.relu", "torch.nn.functional.relu"),
        ("product", "torch.matmul"),
        ("nn.Linear", "torch.nn.Linear"),
        ("rearrange", "einops.rearrange"),
        ("widen", "einops.repeat"),
        ("load", ".helpers.load"),
        ("cat", "torch.cat"),
        ("eye", "numpy.eye"),
        ("x.t", "x.t"),
        ("y", "y"),
        ("f(x).view", "view"),
        ("table[0]", "table"),
    ],
)
def test_full_names(text: str, expected: str) -> None:
    assert full_name(ast.parse(text, mode="eval").body, SOURCE) == expected
