from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlint.findings import Applicability, Finding
from tests.rules.linting import fixed, found, only

RULE = "save-view-storage"


def program(payload: str) -> str:
    return f"""import torch

def export(path):
    table = torch.arange(1_000_000.0).reshape(10_000, 100)
    torch.save({payload}, path)
"""


def mended(text: str) -> tuple[Finding, str]:
    finding = only(text, RULE)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE
    changed = fixed(text, finding.fix)
    assert found(changed, RULE) == []
    return finding, changed


def run(text: str, path: Path) -> Any:
    torch = pytest.importorskip("torch")
    scope: dict[str, Any] = {}
    exec(compile(text, "program.py", "exec"), scope)
    scope["export"](path)
    return torch.load(path)


@pytest.mark.parametrize(
    "payload", ["table[:10]", "table[3]", "{'rows': table[2:5, :7]}", "[table.narrow(0, 2, 3)]"]
)
def test_the_fix_writes_the_same_values_in_a_smaller_file(payload: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    text = program(payload)
    _, changed = mended(text)
    whole, part = tmp_path / "whole.pt", tmp_path / "part.pt"
    before, after = run(text, whole), run(changed, part)
    if isinstance(before, dict):
        assert before.keys() == after.keys()
        before, after = list(before.values()), list(after.values())
    pairs = zip(before, after, strict=True) if isinstance(before, list) else [(before, after)]
    for one, other in pairs:
        assert torch.equal(one, other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
    assert part.stat().st_size < whole.stat().st_size / 100


def test_no_fix_where_the_part_stands_elsewhere() -> None:
    text = program("rows").replace("    torch.save", "    rows = table[:10]\n    torch.save")
    assert only(text, RULE).fix is None


@pytest.mark.parametrize("payload", ["table", "table[1:]", "(table, table[:10])", "table[[1, 2]]"])
def test_silent(payload: str) -> None:
    assert found(program(payload), RULE) == []
