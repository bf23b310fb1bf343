"""Lint programs that are given as text, and apply the fixes."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

from memlint.config import Settings
from memlint.findings import Finding, Fix, Location
from memlint.linter.file import Job, Plan
from memlint.linter.rules import all_rules
from memlint.rule import Rule

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
PACK = "memlint_rules"
MARK = re.compile(r"# expect: ([\w-]+)")

# The sections of a rule's page, in order; of two names, either.
SECTIONS = (
    "What it does",
    ("Why it is slow", "Why it is wrong"),
    "When it is silent",
    "Example",
    "Use instead",
    "Fix safety",
    "How to confirm",
    "References",
)

Places = Counter[tuple[int, str]]


@cache
def pack_rules() -> tuple[type[Rule], ...]:
    """The rules of this project's own pack that read programs."""
    rules = all_rules().rules.values()
    own = (rule for rule in rules if rule.__module__.startswith(f"{PACK}."))
    return tuple(rule for rule in own if not rule.trace_only)


@cache
def _plan(also: str) -> Plan:
    rules = [rule for rule in pack_rules() if rule.default_on or rule.name == also]
    return Plan(Settings(ROOT), rules, all_rules().rules)


def lint(text: str, name: str = "program.py", *, also: str = "") -> tuple[Finding, ...]:
    """What the default rules of the pack, and ``also`` that one, report in a program."""
    data = text.encode()
    result = _plan(also).run(Job(name, name, 0, len(data), data=data))
    assert result.errors == ()
    return result.findings


def found(text: str, rule: str) -> list[Finding]:
    """What one rule reports in a program."""
    return [finding for finding in lint(text, also=rule) if finding.name == rule]


def only(text: str, rule: str) -> Finding:
    """The one finding of a rule in a program."""
    (finding,) = found(text, rule)
    return finding


def marks(text: str) -> Places:
    """The line and rule name of each mark in a program."""
    lines = enumerate(text.splitlines(), start=1)
    return Counter((number, name) for number, line in lines for name in MARK.findall(line))


def reported(text: str, also: str = "") -> Places:
    """The line and rule name of each finding in a program."""
    findings = lint(text, also=also)
    return Counter((finding.location.line, finding.name) for finding in findings)


def fixed(text: str, fix: Fix) -> str:
    """A program with a fix applied."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def span(at: Location) -> tuple[int, int]:
        first = starts[at.line - 1] + at.column - 1
        return first, starts[at.end_line - 1] + at.end_column - 1

    for edit in sorted(fix.edits, key=lambda e: e.location, reverse=True):
        first, last = span(edit.location)
        text = text[:first] + edit.content + text[last:]
    return text
