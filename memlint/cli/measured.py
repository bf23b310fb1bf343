"""``memlint check --measured``: what rules cost on this machine, beside what the linter found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from memlint.bench.machine import this_machine
from memlint.bench.store import kept, others_are_kept
from memlint.doctor.host import this_host
from memlint.findings import Report
from memlint.report.view import printable

MOST_ROWS = 3
_NOTHING = "nothing measured on this machine yet: `memlint bench --save`"
_NOTHING_NOW = "nothing measured on this machine with these versions yet: `memlint bench --save`"


def with_measured(report: Report, *, quiet: bool) -> Report:
    """The report with the ratios that are kept of its rules; nothing is measured."""
    found = kept(this_machine(this_host()))
    if found.complaint:
        click.echo(f"warning: {printable(found.complaint)}", err=True)
    elif not found.rows and not quiet:
        click.echo(f"note: {_NOTHING_NOW if others_are_kept() else _NOTHING}", err=True)
    of_rules: dict[str, list[Mapping[str, Any]]] = {}
    for row in found.rows:
        of_rules.setdefault(row["bench"], []).append(row)
    shown = {name: most_telling(rows) for name, rows in of_rules.items()}
    findings = (replace(one, measured=shown.get(one.name, ())) for one in report.findings)
    return replace(report, findings=tuple(findings))


def most_telling(rows: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """A few rows of a rule: those of quick runs before others, then the larger sizes."""
    ordered = sorted(rows, key=lambda row: (not row["quick"], -(row["size"] or 0)))
    return tuple(ordered[:MOST_ROWS])
