"""``memlint report``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from memlint.cli.outputs import check_outputs
from memlint.cli.page import require_html, write_page
from memlint.cli.shown import ShownTrace
from memlint.cli.status import Failed, Status
from memlint.cli.terminal import wants_color, width_of
from memlint.report.formats import FOR_PEOPLE, FORMATS, render
from memlint.report.summary import closing_line
from memlint.report.view import PLAIN_WIDTH, View

if TYPE_CHECKING:
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
@click.option("--html", type=_FILE, metavar="FILE", help="Write the report here, as one HTML page.")
@click.option("-q", "--quiet", is_flag=True, help="Write findings, nothing else.")
@click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True
)
@click.pass_context
def report(
    context: click.Context,
    trace: Path,
    *,
    output_format: str,
    output_file: Path | None,
    trace_event: Path | None,
    html: Path | None,
    quiet: bool,
    color: str,
) -> int:
    """Show what TRACE has found, a file that `memlint trace -o` or `memlint merge` wrote."""
    from memlint.tracer.evidence_file import EvidenceError, evidence_in, read_document

    outputs = {"--output-file": output_file, "--trace-event": trace_event, "--html": html}
    check_outputs(outputs, [trace])
    if html is not None:
        _refuse_with_html(context)
        require_html()
    try:
        document = read_document(trace)
        evidence = evidence_in(document, trace)
    except EvidenceError as error:
        raise Failed(str(error)) from error
    if trace_event is not None:
        _write_events(trace, evidence, trace_event)
    if html is not None:
        write_page(document, html, str(trace))
    if trace_event is not None or html is not None:
        return Status.CLEAN
    shown = ShownTrace(evidence)
    if output_file is None:
        view = view_of(shown, width_of(sys.stdout), wants_color(color, sys.stdout))
        sys.stdout.writelines(pieces_of(evidence, shown, output_format, view, quiet))
        return Status.CLEAN
    view = view_of(shown, PLAIN_WIDTH, color == "always")
    try:
        with output_file.open("w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.writelines(pieces_of(evidence, shown, output_format, view, quiet))
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


def _refuse_with_html(context: click.Context) -> None:
    """What shapes the report of a terminal would be passed over in silence."""
    for name in ("output_format", "output_file", "quiet", "color"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} does not go with --html")


def view_of(shown: ShownTrace, width: int, color: bool) -> View:
    """How the report of a trace is rendered."""
    from memlint.linter.rules import all_rules

    return View(width, color, shown.source, all_rules)


def pieces_of(
    evidence: EvidenceFile, shown: ShownTrace, output_format: str, view: View, quiet: bool
) -> Iterator[str]:
    """The report in a format."""
    from memlint.tracer.summary import profiled_step

    yield from render(output_format, shown.report, view)
    if output_format in FOR_PEOPLE and not quiet:
        steps = shown.meta.get("steps", 0)
        yield closing_line(shown.report, view)
        counted = f"{steps} step{'' if steps == 1 else 's'}" if steps else "no marked step"
        yield f"Traced {counted} on {shown.meta.get('device')}.\n"
        for spot in shown.meta.get("blind_spots", ()):
            yield f"Not seen: {spot}\n"
        if evidence.profile is not None:
            yield from (f"{row}\n" for row in profiled_step(evidence.profile))
