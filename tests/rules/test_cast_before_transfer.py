from __future__ import annotations

import pytest

from memlint.findings import Applicability, Severity
from tests.rules.linting import fixed, found, only

RULE = "cast-before-transfer"


def program(expression: str, dtype: str = "torch.uint8") -> str:
    return f"""import torch


def run(device, target):
    x = torch.tensor(target, dtype={dtype})
    y = {expression}
    return y
"""


@pytest.mark.parametrize(
    ("before", "after", "dtype"),
    [
        ("x.float().to(device)", "x.to(device).float()", "torch.uint8"),
        (
            "x.long().to(device, non_blocking=True)",
            "x.to(device, non_blocking=True).long()",
            "torch.int32",
        ),
        ("x.t().double().to(device=device)", "x.t().to(device=device).double()", "torch.float16"),
        ("x.to(torch.float32).to(device)", "x.to(device).to(torch.float32)", "torch.bool"),
    ],
)
def test_the_move_comes_first_and_changes_no_values(before: str, after: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    text = program(before, dtype)
    finding = only(text, RULE)
    assert finding.severity is Severity.INFO
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE
    changed = fixed(text, finding.fix)
    assert f"y = {after}\n" in changed
    assert found(changed, RULE) == []
    results = []
    for version in (text, changed):
        names: dict[str, object] = {}
        exec(compile(version, RULE, "exec"), names)
        results.append(names["run"]("cpu", [[1, 0, 1]] * 4))  # type: ignore[operator]
    assert results[0].dtype == results[1].dtype
    assert results[0].stride() == results[1].stride()
    assert torch.equal(*results)


def test_the_message_says_how_many_bytes() -> None:
    assert "4 times the bytes" in only(program("x.float().to(device)"), RULE).message
    assert "2 times the bytes" in only(program("x.float().to(device)", "torch.int16"), RULE).message


@pytest.mark.parametrize(
    "expression",
    [
        "(x.float() / 255).to(device)",
        "x.to(device, torch.float32)",
        "x.float().unsqueeze(0).cuda()",
    ],
)
def test_no_fix_where_more_is_done_on_the_way(expression: str) -> None:
    assert only(program(expression), RULE).fix is None


@pytest.mark.parametrize(
    "expression",
    [
        "x.to(device).float()",
        'x.float().to("cpu")',
        "x.float().to(target)",
        "x.to(device, torch.float32, non_blocking=True)",
        "x.byte().to(device)",
        "(x.float(), x.float().mean())[0]",
    ],
)
def test_silent(expression: str) -> None:
    assert found(program(expression), RULE) == []


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        ("x.half().to(device)", "torch.float32"),
        ("x.float().to(device)", "torch.float32"),
        ("x.float().to(device)", "target"),
        ("x.int().to(device)", "torch.int64"),
    ],
)
def test_silent_where_it_gets_no_wider(expression: str, dtype: str) -> None:
    assert found(program(expression, dtype), RULE) == []
