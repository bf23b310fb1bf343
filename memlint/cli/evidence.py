"""``memlint check --evidence``: what a trace has seen, beside what the linter has found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import click

from memlint.cli.status import Failed
from memlint.config import Settings
from memlint.findings import Finding, Report
from memlint.linter.baseline import read_baseline, without_known
from memlint.linter.rules import all_rules
from memlint.selection import ignored_in, select_rules
from memlint.source.discover import Target, discover
from memlint.source.read import read_source
from memlint.source.suppress import read_suppressions
from memlint.tracer.confirm import Observers, confirm
from memlint.tracer.evidence_file import EvidenceError, read_evidence


class Traced:
    """The evidence of a trace, and the files that are checked with it."""

    def __init__(
        self, path: Path, paths: Sequence[str], settings_for: Callable[[Path], Settings]
    ) -> None:
        try:
            self._evidence = read_evidence(path)
        except EvidenceError as error:
            raise Failed(str(error)) from error
        self._paths, self._settings_for = paths, settings_for

    def beside(self, report: Report) -> Report:
        """The report with evidence, and with what the trace alone has found in its files."""
        known = all_rules().rules.values()
        confirmed = confirm(report.findings, self._evidence, Observers.of(known))
        added, suppressed, baselined = self._added(confirmed.added)
        if stale := sum(len(found) for _, found in self._by_target(confirmed.stale)):
            plural = "s" if stale > 1 else ""
            left_out = f"{stale} finding{plural} of the trace left out"
            click.echo(f"warning: {left_out}: the code has changed since", err=True)
        findings = sorted([*confirmed.findings, *added], key=lambda one: one.sort_key)
        return replace(
            report,
            findings=tuple(findings),
            suppressed=report.suppressed + suppressed,
            baselined=report.baselined + baselined,
        )

    def _added(self, findings: Iterable[Finding]) -> tuple[list[Finding], int, int]:
        """Those that lie in the checked files and that their settings ask for; how many more were
        suppressed by comments, and how many are in the baseline."""
        added: list[Finding] = []
        suppressed = baselined = 0
        for target, placed in self._by_target(findings):
            comments = read_suppressions(read_source(target.path).text)
            shown = [
                one for one in placed if not comments.cover(one.location.line, one.code, one.name)
            ]
            suppressed += len(placed) - len(shown)
            baseline = target.settings.baseline
            if baseline is not None:
                shown, old = without_known(shown, read_baseline(baseline))
                baselined += old
            added += shown
        return added, suppressed, baselined

    def _by_target(self, findings: Iterable[Finding]) -> list[tuple[Target, list[Finding]]]:
        """The findings in the checked files that their settings ask for, by file."""
        found: dict[str, list[Finding]] = {}
        for one in findings:
            target = self._targets.get(one.path)
            if target is not None and _is_wanted(one, target):
                found.setdefault(one.path, []).append(one)
        return [(self._targets[path], placed) for path, placed in found.items()]

    @cached_property
    def _targets(self) -> Mapping[str, Target]:
        discovered = discover(self._paths, self._settings_for)
        return {one.path: one for one in discovered.targets}


def _is_wanted(finding: Finding, target: Target) -> bool:
    selected = select_rules(target.settings, all_rules())
    ignored = ignored_in(target.settings, target.inside, selected)
    return finding.code in {rule.code for rule in selected} - ignored
