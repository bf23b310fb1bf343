from __future__ import annotations

from typing import Any

import pytest

from memlint.findings import Applicability
from tests.rules.linting import fixed, found, only

RULE = "small-view-pins-base"


def program(array: str, view: str) -> str:
    return f"""import numpy as np
import torch

def keep(n):
    kept = []
    for _ in range(n):
        frame = {array}
        kept.append({view})
    return kept
"""


def run(text: str) -> Any:
    scope: dict[str, Any] = {}
    exec(compile(text, "program.py", "exec"), scope)
    return scope["keep"](3)


@pytest.mark.parametrize("view", ["frame[:8, :8]", "frame[0]", "frame[2:4]"])
@pytest.mark.parametrize(
    "array", ["np.ones((200, 300), dtype=np.float32)", "torch.arange(60_000).reshape(200, 300)"]
)
def test_the_fix_keeps_values_dtype_and_shape(array: str, view: str) -> None:
    torch = pytest.importorskip("torch")
    text = program(array, view)
    finding = only(text, RULE)
    if finding.fix is None:
        pytest.skip("no fix is offered here")
    assert finding.fix.applicability is Applicability.SAFE
    changed = fixed(text, finding.fix)
    assert found(changed, RULE) == []
    for before, after in zip(run(text), run(changed), strict=True):
        assert (before.dtype, before.shape) == (after.dtype, after.shape)
        assert torch.equal(torch.as_tensor(before), torch.as_tensor(after))
        if isinstance(after, torch.Tensor):
            assert after.untyped_storage().nbytes() == after.nbytes
        else:
            assert after.base is None
