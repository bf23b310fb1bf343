from __future__ import annotations

import pytest

from memlint.findings import Applicability, Finding, Severity
from tests.rules.linting import fixed, found, only

RULE = "blocking-transfer"


def program(body: str, *, pin: str = "True", targets: str = "x, y") -> str:
    return f"""import torch
from torch.utils.data import DataLoader


def run(dataset, model, device, static, flag):
    loader = DataLoader(dataset, batch_size=2, num_workers=4, pin_memory={pin})
    for {targets} in loader:
        {body}
"""


def one(body: str, **context: str) -> Finding:
    return only(program(body, **context), RULE)


def applicability(body: str, **context: str) -> Applicability:
    fix = one(body, **context).fix
    assert fix is not None
    return fix.applicability


def test_it_is_info_and_names_the_loader() -> None:
    finding = one('model(x.to("cuda"))')
    assert finding.severity is Severity.INFO
    assert "`loader` gives batches in pinned memory" in finding.message
    (place,) = finding.related
    assert place.location.line == 6


def test_a_loader_that_ought_to_pin_is_named_so() -> None:
    assert "it would not have to" in one('model(x.to("cuda"))', pin="False").message


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('x.to("cuda")', 'x.to("cuda", non_blocking=True)'),
        ("x.cuda()", "x.cuda(non_blocking=True)"),
        ("x.cuda(0, non_blocking=False)", "x.cuda(0, non_blocking=True)"),
        ("x.type(torch.cuda.FloatTensor)", "x.type(torch.cuda.FloatTensor, non_blocking=True)"),
    ],
)
def test_the_flag_is_added(before: str, after: str) -> None:
    text = program(f"model({before})")
    finding = only(text, RULE)
    assert finding.fix is not None
    changed = fixed(text, finding.fix)
    assert f"model({after})" in changed
    assert found(changed, RULE) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('x = x.to("cuda"); x.mul_(2)', Applicability.SAFE),
        ('x, y = x.to("cuda"), y; x += 1', Applicability.SAFE),
        ('z = x.to("cuda"); model(z)', Applicability.SAFE),
        ('z = x.to("cuda"); x.mul_(2)', Applicability.UNSAFE),
        ('z = x.to("cuda"); x[0] = 1', Applicability.UNSAFE),
        ('z = x.to("cuda"); x += 1', Applicability.UNSAFE),
        ('static = torch.empty(2, device="cuda"); static.copy_(x)', Applicability.SAFE),
    ],
)
def test_what_is_written_into_makes_the_fix_unsafe(body: str, expected: Applicability) -> None:
    assert applicability(body) is expected


def test_a_batch_that_may_be_any_object_makes_the_fix_unsafe() -> None:
    assert applicability('model(batch.to("cuda"))', targets="batch") is Applicability.UNSAFE
    assert applicability('model(batch["x"].to("cuda"))', targets="batch") is Applicability.SAFE


def test_a_safe_fix_changes_no_values() -> None:
    torch = pytest.importorskip("torch")
    body = 'x, y = x.to("cuda"), y.cuda(); model(x * 2 + y)'
    text = program(body)
    changed = text
    while findings := found(changed, RULE):
        assert findings[0].fix is not None
        assert findings[0].fix.applicability is Applicability.SAFE
        changed = fixed(changed, findings[0].fix)
    assert changed.count("non_blocking=True") == 2
    results = []
    for version in (text, changed):
        # There is no CUDA here; the flag is harmless on the CPU, where it means nothing.
        here = version.replace('"cuda"', '"cpu"').replace(".cuda(", '.to("cpu", ')
        here = here.replace("num_workers=4, pin_memory=True", "num_workers=0")
        names: dict[str, object] = {}
        exec(compile(here, RULE, "exec"), names)
        seen: list[object] = []
        rows = torch.utils.data.TensorDataset(torch.arange(6.0), torch.ones(6))
        names["run"](rows, seen.append, "cpu", None, None)  # type: ignore[operator]
        results.append(seen)
    before, after = results
    assert len(before) == 3
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize(
    "body",
    [
        'model(x.to("cuda", non_blocking=flag))',
        'model(x.to("cuda", torch.float32, True))',
        "model(x.cuda(None, True))",
        'model(x.float().to("cuda"))',
        'model(x.to("cpu"))',
        "model(x.to(device))",
    ],
)
def test_silent(body: str) -> None:
    assert found(program(body), RULE) == []


@pytest.mark.parametrize("pin", ["flag", "dataset.pin"])
def test_silent_where_it_is_not_known_whether_the_loader_pins(pin: str) -> None:
    assert found(program('model(x.to("cuda"))', pin=pin), RULE) == []


@pytest.mark.parametrize(
    "pin", ["torch.cuda.is_available()", 'torch.device("cuda").type == "cuda"']
)
def test_pinning_where_there_is_cuda_is_pinning(pin: str) -> None:
    assert found(program('model(x.to("cuda"))', pin=pin), RULE)
