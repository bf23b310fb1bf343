"""``memlint analyze``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memlint.cli.outputs import check_outputs
from memlint.cli.report import pieces_of, view_of
from memlint.cli.shown import ShownTrace
from memlint.cli.status import Failed, Status
from memlint.cli.terminal import wants_color, width_of
from memlint.report.formats import FOR_PEOPLE, FORMATS

if TYPE_CHECKING:
    from memlint.tracer.evidence_file import EvidenceFile

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("trace", type=_FILE)
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=".",
    help="The folder that the program's files lie below: the one that it was started in, or that "
    "of its script. By default the working directory.",
)
@click.option("-o", "--output", type=_FILE, metavar="FILE", help="Write the evidence here.")
@click.option(
    "--output-format", type=click.Choice(list(FORMATS)), default="full", show_default=True
)
@click.option("-q", "--quiet", is_flag=True, help="Write findings, nothing else.")
@click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True
)
def analyze(
    trace: Path, root: Path, output: Path | None, output_format: str, quiet: bool, color: str
) -> int:
    """Find in TRACE, which torch.profiler has written, what memlint's own tracer would find.

    TRACE is a Kineto trace (Chrome JSON), plain or gzip, of any size; torch is not needed. Record
    it so:

    \b
        with torch.profiler.profile(record_shapes=True, with_stack=True) as profiler:
            ...
        profiler.export_chrome_trace("trace.json.gz")

    and then, where the program's files are:

    \b
        memlint analyze trace.json.gz -o evidence.json
        memlint check --evidence evidence.json src/

    What the trace does not tell is said, and not guessed.
    """
    from memlint.kineto.analysis import analyze as analyzed
    from memlint.kineto.reader import TraceFileError
    from memlint.tracer.evidence_file import document, write_evidence

    check_outputs({"--output": output}, [trace])
    try:
        evidence = analyzed(trace, root)
    except TraceFileError as error:
        raise Failed(str(error)) from error
    if output is not None:
        try:
            write_evidence(output, document(evidence.meta, evidence.findings, evidence.sites))
        except OSError as error:
            raise Failed(f"{output}: {error.strerror}") from error
    shown = ShownTrace(evidence)
    view = view_of(shown, width_of(sys.stdout), wants_color(color, sys.stdout))
    sys.stdout.writelines(pieces_of(evidence, shown, output_format, view, quiet))
    if output_format in FOR_PEOPLE and not quiet:
        sys.stdout.writelines(_device_work(evidence))
    return Status.CLEAN


def _device_work(evidence: EvidenceFile) -> Iterator[str]:
    """All copies and conversions, whether they are findings or not."""
    from memlint.tracer.operands import megabytes

    for one in evidence.meta.get("copies", ()):
        yield f"{one['count']} x {one['kind']}: {megabytes(one['bytes'])}, {one['ms']:.3g} ms\n"
    for one in evidence.meta.get("conversions", ()):
        yield f"{one['count']} x conversion {one['kind']}: {one['ms']:.3g} ms\n"
