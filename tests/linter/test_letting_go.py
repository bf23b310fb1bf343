"""What is kept of programs that are done with: nothing that grows with their number."""

from __future__ import annotations

import ast
import gc
from pathlib import Path

from memlint.config import Settings
from memlint.linter.file import Job, Plan
from memlint.linter.rules import all_rules
from tests.rules.linting import FIXTURES, ROOT, pack_rules

MOST_KEPT = 6


def programs() -> list[Path]:
    return sorted(FIXTURES.glob("*/*/bad_*.py"))[::12]


def trees() -> int:
    gc.collect()
    # Not isinstance: it asks what a weak proxy of another test stood for.
    return sum(type(one) is ast.Module for one in gc.get_objects())


def test_the_trees_of_programs_are_let_go() -> None:
    plan = Plan(Settings(ROOT), pack_rules(), all_rules().rules)
    before = trees()
    paths = programs()
    for path in paths:
        plan.run(Job(str(path), path.name, 0, path.stat().st_size))
    assert len(paths) > 3 * MOST_KEPT
    assert trees() - before <= MOST_KEPT
