"""``memlint report``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memlint.cli.status import Failed, Status
from memlint.cli.terminal import wants_color, width_of
from memlint.report.formats import FOR_PEOPLE, FORMATS, render
from memlint.report.summary import closing_line
from memlint.report.view import PLAIN_WIDTH, View

if TYPE_CHECKING:
    from memlint.findings import Report
    from memlint.source.model import Source
    from memlint.tracer.evidence_file import EvidenceFile

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("trace", type=_FILE)
@click.option(
    "--output-format", type=click.Choice(list(FORMATS)), default="full", show_default=True
)
@click.option("-o", "--output-file", type=_FILE, metavar="FILE", help="Write the report here.")
@click.option(
    "--trace-event",
    type=_FILE,
    metavar="FILE",
    help="Write the profiled step here, for Perfetto, and no report; FILE.gz is compressed.",
)
@click.option("-q", "--quiet", is_flag=True, help="Write findings, nothing else.")
@click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True
)
def report(
    trace: Path,
    *,
    output_format: str,
    output_file: Path | None,
    trace_event: Path | None,
    quiet: bool,
    color: str,
) -> int:
    """Show what TRACE has found, a file that `memlint trace -o` or `memlint merge` wrote."""
    from memlint.tracer.evidence_file import EvidenceError, read_evidence

    try:
        evidence = read_evidence(trace)
    except EvidenceError as error:
        raise Failed(str(error)) from error
    if trace_event is not None:
        _write_events(trace, evidence, trace_event)
        return Status.CLEAN
    shown = _Shown(evidence)
    if output_file is None:
        view = shown.view(width_of(sys.stdout), wants_color(color, sys.stdout))
        sys.stdout.writelines(shown.pieces(output_format, view, quiet))
        return Status.CLEAN
    view = shown.view(PLAIN_WIDTH, color == "always")
    try:
        with output_file.open("w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.writelines(shown.pieces(output_format, view, quiet))
    except OSError as error:
        raise Failed(f"{output_file}: {error.strerror}") from error
    return Status.CLEAN


def _write_events(trace: Path, evidence: EvidenceFile, path: Path) -> None:
    from memlint.tracer.trace_event import trace_event, write_trace_event

    if evidence.profile is None:
        raise Failed(f"{trace}: no step was profiled in this run")
    try:
        write_trace_event(path, trace_event(evidence.meta, evidence.findings, evidence.profile))
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}") from error


class _Shown:
    """The findings of a trace, in the order of their cost, where they stand now."""

    def __init__(self, evidence: EvidenceFile) -> None:
        from memlint.findings import Report
        from memlint.tracer.relocate import CurrentFiles

        self._meta = evidence.meta
        self._files = CurrentFiles(str(evidence.meta.get("folder", ".")))
        moved = [(self._files.moved(one), one) for one in evidence.findings]
        # Of a file that has changed too much no lines are shown: they would be others.
        self._changed = {self._files.path(one.path) for now, one in moved if now is None}
        paths = {one.path for one in evidence.sites} | {one.path for one in evidence.findings}
        self.report: Report = Report(tuple(now or one for now, one in moved), files=len(paths))

    def view(self, width: int, color: bool) -> View:
        """How the report is rendered."""
        from memlint.linter.rules import all_rules

        return View(width, color, self._source, all_rules)

    def _source(self, path: str) -> Source | None:
        current = None if path in self._changed else self._files.get(path)
        return None if current is None else current.source

    def pieces(self, output_format: str, view: View, quiet: bool) -> Iterator[str]:
        """The report in a format."""
        yield from render(output_format, self.report, view)
        if output_format in FOR_PEOPLE and not quiet:
            steps = self._meta.get("steps", 0)
            yield closing_line(self.report, view)
            yield f"Traced {steps} step{'' if steps == 1 else 's'} on {self._meta.get('device')}.\n"
            for spot in self._meta.get("blind_spots", ()):
                yield f"Not seen: {spot}\n"
