from __future__ import annotations

import pytest

from memlint.findings import Applicability, Confidence, Severity
from tests.rules.linting import fixed, found, only

RULE = "loop-invariant-transfer"


def program(body: str, *, head: str = "", loop: str = "for batch in loader:") -> str:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    before = "".join(f"    {line}\n" for line in head.splitlines())
    return f"""import torch


def run(loader, model, table, device, n):
{before}    {loop}
{lines}
        model(batch)
"""


def test_the_assignment_moves_in_front_of_the_loop() -> None:
    text = program("x = table.to(device)\nmodel(x)")
    finding = only(text, RULE)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    changed = fixed(text, finding.fix)
    assert "    x = table.to(device)\n    for batch in loader:\n        model(x)\n" in changed
    assert found(changed, RULE) == []


def test_a_model_that_is_moved_again_is_info_and_has_no_fix() -> None:
    finding = only(program("model.to(device)"), RULE)
    assert finding.severity is Severity.INFO
    assert finding.fix is None


def test_what_is_known_to_lie_on_the_host_is_certain() -> None:
    finding = only(program("x = table.cuda()\nmodel(x)", head="table = torch.zeros(10**6)"), RULE)
    assert finding.confidence is Confidence.HIGH


@pytest.mark.parametrize(
    "head",
    [
        "table = table.to(device)",
        "table = torch.zeros(n, device=device)",
        "table = torch.relu(table.to(device)) + 1",
        "table = table.cuda()",
    ],
)
def test_what_lies_there_already_is_silent(head: str) -> None:
    assert found(program("x = table.to(device)\nmodel(x)", head=head), RULE) == []


@pytest.mark.parametrize("loop", ["for batch in range(4):", "for fold in range(n):"])
def test_few_and_long_iterations_are_silent(loop: str) -> None:
    assert found(program("x = table.to(device)\nmodel(x)", loop=loop), RULE) == []


def test_a_chain_is_told_once() -> None:
    text = program("x = table.cpu().to(torch.float64).numpy()\nmodel(x)")
    assert len(found(text, RULE)) == 1


def test_another_tensor_of_the_statement_is_told_of_itself() -> None:
    text = program("model(table.cuda(), torch.arange(len(batch)).cuda())")
    assert len(found(text, RULE)) == 1
    assert len(found(text, "create-then-move")) == 1


def test_what_is_made_before_the_loop_is_told_of_once() -> None:
    text = program("model(table.cuda())", head="table = torch.linspace(0, 1, 1000)")
    assert len(found(text, RULE)) == 1
    assert found(text, "create-then-move") == []
    within = program("model(torch.arange(10).cuda())")
    assert found(within, RULE) == []
    assert len(found(within, "create-then-move")) == 1
