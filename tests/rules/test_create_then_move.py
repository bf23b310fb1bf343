from __future__ import annotations

import pytest

from memlint.analysis.knowledge.factories import EXACT, FACTORIES, RANDOM, ROUNDED
from memlint.findings import Applicability, Finding, Severity
from tests.rules.linting import fixed, found, only

RULE = "create-then-move"


def program(expression: str, head: str = "import torch") -> str:
    return f"{head}\n\n\ndef run(n, x, device, dtype):\n    y = {expression}\n    return y\n"


def one(expression: str) -> Finding:
    return only(program(expression), RULE)


def mended(expression: str) -> str:
    finding = one(expression)
    assert finding.fix is not None
    changed = fixed(program(expression), finding.fix)
    assert found(changed, RULE) == []
    return changed.partition("y = ")[2].partition("\n")[0]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.zeros(2, n).to(device)", "torch.zeros(2, n, device=device)"),
        ("torch.ones(n).cuda()", 'torch.ones(n, device="cuda")'),
        ("torch.eye(n).cuda(0)", "torch.eye(n, device=0)"),
        ("torch.arange(n).to(x.device, non_blocking=True)", "torch.arange(n, device=x.device)"),
        ("torch.full((n,), 2).to(device=x.device)", "torch.full((n,), 2, device=x.device)"),
        ("torch.zeros(n).unsqueeze(0).to(device)", "torch.zeros(n, device=device).unsqueeze(0)"),
        (
            "torch.tril(torch.ones(n, n)).bool().to(device)",
            "torch.tril(torch.ones(n, n, device=device)).bool()",
        ),
        ("torch.zeros(n).type_as(x)", "torch.zeros(n, device=x.device, dtype=x.dtype)"),
    ],
)
def test_the_factory_makes_it_on_the_device(before: str, after: str) -> None:
    assert mended(before) == after
    fix = one(before).fix
    assert fix is not None
    assert fix.applicability is Applicability.SAFE


@pytest.mark.parametrize(
    "expression",
    [
        "torch.zeros(2, n).to(device)",
        "torch.full((n,), 0.5).to(x.device)",
        "torch.arange(1, n, 2).to(device=device)",
        "torch.eye(n).unsqueeze(0).repeat(2, 1, 1).to(device)",
        "torch.triu(torch.ones(n, n), diagonal=1).bool().to(x.device)",
        "torch.ones(n, 2).type_as(x)",
        "torch.zeros(n, dtype=torch.long).t().contiguous().to(device)",
    ],
)
def test_a_safe_fix_changes_no_values(expression: str) -> None:
    torch = pytest.importorskip("torch")
    fix = one(expression).fix
    assert fix is not None
    assert fix.applicability is Applicability.SAFE
    results = []
    for text in (program(expression), fixed(program(expression), fix)):
        names: dict[str, object] = {}
        exec(compile(text, RULE, "exec"), names)
        run = names["run"]
        results.append(run(4, torch.ones(3, dtype=torch.float64), "cpu", None))  # type: ignore[operator]
    before, after = results
    assert before.dtype == after.dtype
    assert before.device == after.device
    assert torch.equal(before, after)


@pytest.mark.parametrize(
    "expression",
    [
        "torch.randn(n).to(device)",
        "torch.randperm(n).cuda()",
        "torch.empty(n).normal_().to(device)",
        "torch.linspace(0, 1, n).to(device)",
        "torch.arange(0, 1, 0.1).to(device)",
        "(torch.arange(n) / n).to(device)",
        "torch.zeros(n, requires_grad=True).to(device)",
        # ``.cuda(None)`` is the current card, ``device=None`` the host.
        "torch.zeros(n).cuda(device)",
    ],
)
def test_where_the_numbers_may_be_others_the_fix_is_unsafe(expression: str) -> None:
    fix = one(expression).fix
    assert fix is not None
    assert fix.applicability is Applicability.UNSAFE


def test_random_numbers_are_said_to_be_others() -> None:
    assert "will be others" in one("torch.rand(n).to(device)").message
    assert "will be others" not in one("torch.zeros(n).to(device)").message
    assert one("torch.zeros(n).to(device)").severity is Severity.INFO


@pytest.mark.parametrize(
    "expression", ["torch.zeros(n).to(device, dtype)", "torch.zeros(n).to(x.device, x.dtype)"]
)
def test_no_fix_where_the_move_converts_too(expression: str) -> None:
    assert one(expression).fix is None


@pytest.mark.parametrize(
    "expression",
    [
        "torch.zeros(n).to(dtype)",
        'torch.zeros(n).to("cpu")',
        "torch.zeros(n, device=device).to(x.device)",
        "torch.randn(n, generator=x).to(device)",
        "torch.empty(n, pin_memory=True).to(device)",
        "torch.zeros(n, **x).to(device)",
        "torch.zeros_like(x).to(device)",
        "torch.tensor([1, 2]).to(device)",
        "torch.normal(torch.zeros(n), x).to(device)",
    ],
)
def test_silent(expression: str) -> None:
    assert found(program(expression), RULE) == []


def test_every_factory_takes_a_device() -> None:
    torch = pytest.importorskip("torch")
    arguments = {
        "torch.full": ((2,), 1),
        "torch.randint": (5, (2,)),
        "torch.normal": (0.0, 1.0, (2,)),
        "torch.linspace": (0, 1, 3),
        "torch.logspace": (0, 1, 3),
        "torch.tril_indices": (2, 2),
        "torch.triu_indices": (2, 2),
        "torch.range": (0, 3),
    }
    assert not EXACT & (ROUNDED | RANDOM)
    for name in FACTORIES:
        make = getattr(torch, name.partition(".")[2])
        assert make(*arguments.get(name, (3,)), device="meta").device.type == "meta", name
