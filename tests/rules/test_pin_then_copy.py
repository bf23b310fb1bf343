from __future__ import annotations

import pytest

from memlint.findings import Applicability, Confidence, Severity
from tests.rules.linting import fixed, found, only

RULE = "pin-then-copy"


def program(copy: str, loader: str = "DataLoader(dataset, batch_size=2, num_workers=2)") -> str:
    return f"""import torch
from torch.utils.data import DataLoader


def run(dataset, model, device, pin):
    for x, y in {loader}:
        model({copy})
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.pin_memory().to(device, non_blocking=True)", "x.to(device, non_blocking=True)"),
        ("x.pin_memory().cuda()", "x.cuda()"),
        ("x[0].pin_memory().to(device)", "x[0].to(device)"),
    ],
)
def test_the_call_is_dropped(before: str, after: str) -> None:
    text = program(before)
    finding = only(text, RULE)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.HIGH)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE
    changed = fixed(text, finding.fix)
    assert f"model({after})" in changed
    assert found(changed, RULE) == []


def test_the_fix_changes_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    pinned: list[object] = []

    def pin_memory(self: object, device: object = None) -> object:
        pinned.append(self)
        return self.clone()  # type: ignore[attr-defined]

    # Pinning needs a driver; what it does to values is a copy.
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin_memory)
    text = program("x.pin_memory().to(device, non_blocking=True)").replace(
        "num_workers=2", "num_workers=0"
    )
    finding = only(text, RULE)
    assert finding.fix is not None
    results = []
    for version in (text, fixed(text, finding.fix)):
        names: dict[str, object] = {}
        exec(compile(version, RULE, "exec"), names)
        seen: list[object] = []
        rows = torch.utils.data.TensorDataset(torch.arange(6.0), torch.ones(6))
        names["run"](rows, seen.append, "cpu", None)  # type: ignore[operator]
        results.append(seen)
    before, after = results
    assert len(pinned) == len(before) == 3
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_a_loader_that_is_not_seen_lowers_the_confidence() -> None:
    text = program("x.pin_memory().to(device)", loader="dataset.train_loader")
    assert only(text, RULE).confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    "copy",
    [
        "(x * 2).pin_memory().to(device)",
        "torch.stack([x, x]).pin_memory().to(device)",
        "x.pin_memory()",
        'x.pin_memory().to("cpu")',
        "x.float().pin_memory().to(device)",
    ],
)
def test_silent(copy: str) -> None:
    assert found(program(copy), RULE) == []


@pytest.mark.parametrize("given", ["True", "pin", "torch.cuda.is_available()"])
def test_silent_where_the_loader_may_pin(given: str) -> None:
    loader = f"DataLoader(dataset, num_workers=2, pin_memory={given})"
    assert found(program("x.pin_memory().to(device)", loader), RULE) == []


@pytest.mark.parametrize("loader", ["[(dataset, 1)]", "model.named_parameters()"])
def test_silent_in_other_loops(loader: str) -> None:
    assert found(program("x.pin_memory().to(device)", loader), RULE) == []
