"""Each rule that can be benched is, both forms of each bench do the same, and its page says so."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from math import isfinite
from typing import Any

import pytest

from memlint.bench.agreement import agree
from memlint.bench.collect import RuleBench, rule_benches
from memlint.bench.pair import Size, Weighed
from memlint.bench.plan import Plan
from memlint.bench.requirements import REQUIREMENTS, missing
from memlint.linter.rules import all_rules

BENCHED = frozenset(
    {
        "MEM101", "MEM102", "MEM103",
        "MEM201", "MEM202", "MEM204", "MEM207", "MEM208", "MEM213", "MEM214",
        "MEM301", "MEM302", "MEM307", "MEM308", "MEM309", "MEM310", "MEM311",
        "MEM401", "MEM402", "MEM403", "MEM404",
        "MEM501", "MEM502", "MEM503", "MEM508", "MEM509", "MEM510", "MEM511", "MEM512",
        "MEM601", "MEM602", "MEM603", "MEM605",
    }
)  # fmt: skip
"""The rules whose cost a bench can show."""

SMALL = 16

RULES = {
    rule.code: rule
    for rule in all_rules().rules.values()
    if rule.__module__.startswith("memlint_rules.")  # other packs may be installed too
}
BENCHES = list(rule_benches(RULES.values()))


def name_of(one: RuleBench) -> str:
    return f"{one.rule.code}-{one.rule.name}-{one.variant}".rstrip("-")


every_bench = pytest.mark.parametrize("one", BENCHES, ids=name_of)


@pytest.mark.parametrize("code", sorted(BENCHED))
def test_a_rule_whose_cost_can_be_shown_has_a_bench(code: str) -> None:
    assert any(one.rule.code == code for one in BENCHES)


def test_no_other_rule_has_one() -> None:
    assert {one.rule.code for one in BENCHES} <= BENCHED


@every_bench
def test_both_forms_give_the_same(one: RuleBench) -> None:
    if why := missing(one.declared.needs):
        pytest.skip(f"{name_of(one)}: {why}")
    stated = getattr(one.rule(), one.method)(small(one))
    try:
        if isinstance(stated, Weighed):
            assert all(isfinite(form()) for form in (stated.as_is, stated.alternative))
            return
        as_is, alternative = (
            result(form, stated.operands()) for form in (stated.as_is, stated.alternative)
        )
        if stated.conversion is not None:
            stated.conversion(*stated.operands())
        stated.settle()
        if stated.comparable:
            assert agree(as_is, alternative)
    finally:
        stated.close()


def small(one: RuleBench) -> Size:
    plan = Plan(size=min(one.declared.sizes.quick, SMALL), parallel=2)
    (size,) = plan.sizes(one.declared)
    return size


def result(form: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """What a form returns; its operands, where it writes to them."""
    found = form(*operands)
    return operands if found is None else found


@every_bench
def test_a_bench_says_what_it_is_about(one: RuleBench) -> None:
    declared, method = one.declared, getattr(one.rule, one.method)
    assert declared.what
    assert declared.as_is
    assert declared.alternative
    assert declared.as_is != declared.alternative
    assert inspect.getdoc(method)
    assert set(declared.needs) <= REQUIREMENTS.keys()
    assert declared.sizes.of
    assert min(declared.sizes.quick, *declared.sizes.full) > 0
    assert list(declared.sizes.full) == sorted(set(declared.sizes.full))


@pytest.mark.parametrize("code", sorted({one.rule.code for one in BENCHES}))
def test_the_page_of_a_rule_names_its_bench(code: str) -> None:
    rule = RULES[code]
    page = " ".join((inspect.getdoc(rule) or "").split())
    assert f"`memlint bench {rule.name}`" in page
