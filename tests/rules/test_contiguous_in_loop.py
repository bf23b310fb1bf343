from __future__ import annotations

import pytest

from memlint.findings import Applicability, Confidence
from tests.rules.linting import fixed, found, only

RULE = "contiguous-in-loop"

PROGRAM = """import torch


def run(states, weight, steps):
    for _ in range(steps):
        # one row per column
        rows = weight.t().contiguous()  # dense
        states = torch.tanh(states.cumsum(1) @ rows.cumsum(1))
    return states
"""


def test_the_assignment_moves_in_front_of_the_loop_with_its_comment() -> None:
    finding = only(PROGRAM, RULE)
    assert finding.confidence is Confidence.MEDIUM
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    changed = fixed(PROGRAM, finding.fix)
    assert (
        "    rows = weight.t().contiguous()  # dense\n"
        "    for _ in range(steps):\n"
        "        # one row per column\n"
        "        states ="
    ) in changed
    assert found(changed, RULE) == []


def test_the_program_computes_the_same_after_the_fix() -> None:
    torch = pytest.importorskip("torch")
    fix = only(PROGRAM, RULE).fix
    assert fix is not None
    results = []
    for text in (PROGRAM, fixed(PROGRAM, fix)):
        names: dict[str, object] = {}
        exec(compile(text, "program.py", "exec"), names)
        torch.manual_seed(0)
        run = names["run"]
        assert callable(run)
        results.append(run(torch.randn(3, 5), torch.randn(5, 5), 20))
    before, after = results
    assert torch.equal(before, after)
    assert before.stride() == after.stride()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rows = weight.t().contiguous()", "rows, k = weight.t().contiguous(), states.sum()"),
        ("        # one row per column\n", "        print(rows)\n"),
        ("states = torch", "rows = rows + 1\n        states = torch"),
        ("rows = weight.t().contiguous()", "rows = states.sum() + weight.t().contiguous()"),
        ("        rows = weight", "        if steps:\n            rows = weight"),
    ],
)
def test_no_fix_where_the_assignment_is_not_one_that_can_move(old: str, new: str) -> None:
    text = PROGRAM.replace(old, new)
    assert text != PROGRAM
    assert only(text, RULE).fix is None


@pytest.mark.parametrize(
    "change",
    [
        "weight[0] = 0",
        "weight.mul_(2)",
        "torch.add(weight, 1, out=weight)",
        "weight = weight + 1",
        "weight.data.copy_(states)",
        "view = weight.view(-1); view[0] = 1",
        "weight += 1",
        "del weight",
        "torch.distributed.all_reduce(weight)",
        "torch.nn.init.normal_(weight)",
        "states = torch.nn.functional.relu(weight, inplace=True)",
        "unseen_kernel[(1,)](weight)",
        "rows[0] = 1",
        "rows.zero_()",
    ],
)
def test_what_changes_in_the_loop_is_silent(change: str) -> None:
    text = PROGRAM.replace("        states = torch", f"        {change}\n        states = torch")
    assert text != PROGRAM
    assert found(text, RULE) == []


def test_it_supersedes_the_transfer_of_the_same_expression() -> None:
    text = PROGRAM.replace("weight.t().contiguous()", "weight.t().contiguous().cuda()")
    assert len(found(text, RULE)) == 1
    assert found(text, "loop-invariant-transfer") == []
