"""What a rule finds does not depend on which other rules run.

All rules share one reading of a program, of which each has its sieve read what it needs: where
a sieve lets too little through, another rule's may let it through instead.  How sure a rule is
may depend on that: a function that is also read as others may call it is known less well.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from memlint.config import Settings
from memlint.findings import Fix, Location, Severity
from memlint.linter.file import Job, Plan
from memlint.linter.rules import all_rules
from memlint.rule import Rule
from tests.rules.fixed_programs import folder, is_fixed
from tests.rules.linting import ROOT, pack_rules

RULES = pack_rules()


Told = Counter[tuple[Location, str, Severity, Fix | None]]


def told(plan: Plan, path: Path, rule: type[Rule]) -> Told:
    data = path.read_bytes()
    found = plan.run(Job(path.name, path.name, 0, len(data), data=data)).findings
    return Counter((f.location, f.message, f.severity, f.fix) for f in found if f.name == rule.name)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_alone_finds_what_it_finds_beside_all_others(rule: type[Rule]) -> None:
    known = all_rules().rules
    alone, beside = (Plan(Settings(ROOT), rules, known) for rules in ((rule,), RULES))
    paths = sorted(path for path in folder(rule).glob("*.py") if not is_fixed(path))
    assert paths
    different = [path.name for path in paths if told(alone, path, rule) != told(beside, path, rule)]
    assert different == []
