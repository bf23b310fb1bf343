"""The programs that are proved on a device are sound ones, as far as the host can tell."""

from __future__ import annotations

import pytest

from memlint.findings import Applicability
from tests.benchmarks.traced_programs import Program
from tests.gpu.cases import CASES, Case
from tests.gpu.run import difference, mended, results
from tests.gpu.traced_programs import differences, on_a_device, places
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


@pytest.mark.parametrize("program", on_a_device(), ids=lambda program: program.name)
def test_traced_on_the_host_nothing_is_told_of_moves(program: Program) -> None:
    assert places(program, "cpu") == frozenset()
    assert len(list(differences(program, "cpu"))) == len(program.expected)


def test_one_program_is_sound() -> None:
    assert [one.name for one in on_a_device() if not one.expected] == ["pinned_batches"]
