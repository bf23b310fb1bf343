"""The rules, and what to say of rule packs that could not be loaded."""

from __future__ import annotations

import click

from memlint.cli.status import Status
from memlint.report.view import printable
from memlint.rule import Rule, RuleSet
from memlint.selection import did_you_mean


def load() -> RuleSet:
    """All rules of all packs."""
    from memlint.linter.rules import all_rules

    return all_rules()


def report_broken(rules: RuleSet) -> int:
    """Name what could not be loaded on standard error; the exit status."""
    for error in rules.errors:
        click.echo(f"error: {error.path}: {printable(error.message)}", err=True)
    return Status.ERROR if rules.errors else Status.CLEAN


def find_rule(rules: RuleSet, selector: str) -> type[Rule]:
    """The rule with a code or name; a usage error names the nearest one."""
    rule = rules.by_name(selector)
    if rule is None:
        report_broken(rules)  # it may be one of those that could not be loaded
        known = [word for rule in rules.rules.values() for word in (rule.code, rule.name)]
        raise click.UsageError(f"unknown rule {selector!r}{did_you_mean(selector, known)}")
    return rule
