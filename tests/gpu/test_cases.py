"""The programs that are proved on a device are sound ones, as far as the host can tell."""

from __future__ import annotations

import pytest

from memlint.findings import Applicability
from tests.gpu.cases import CASES, Case
from tests.gpu.run import difference, mended, results
from tests.rules.linting import pack_rules

# Their safe fixes change nothing that a device is needed for.
ON_THE_HOST = {"tensor-from-array-list"}
# What a host without a device cannot do at all.
PINNING = ("pin_memory(", "pin_memory=True")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_case_has_the_fixes_it_speaks_of(case: Case) -> None:
    assert mended(case) != case.text


def test_every_rule_with_safe_fixes_of_transfers_has_a_case() -> None:
    rules = {
        rule.name
        for rule in pack_rules()
        if rule.family() == "transfer" and rule.applicability is Applicability.SAFE
    }
    assert {case.rule for case in CASES} == rules - ON_THE_HOST


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if not any(word in case.text for word in PINNING)],
    ids=lambda case: case.rule,
)
def test_on_the_host_nothing_changes(case: Case) -> None:
    torch = pytest.importorskip("torch")
    before, after = results(case.text, "cpu"), results(mended(case), "cpu")
    assert difference(before, after) == ""
    assert difference(before, [one + 1 for one in after]).startswith(("values", "dtype"))
    assert difference(before, after[:-1])
    assert all(isinstance(one, torch.Tensor) for one in before)
