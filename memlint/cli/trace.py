"""``memlint trace``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memlint.cli.outputs import check_outputs
from memlint.cli.status import Failed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memlint.tracer import Trace


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("-m", "as_module", is_flag=True, help="PROGRAM is a module, as for python -m.")
@click.option("--steps", type=click.IntRange(min=1), help="Note so many steps (by default: all).")
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Steps to let pass before.",
)
@click.option("--no-replay", is_flag=True, help="Measure nothing, count only.")
@click.option(
    "--replay-budget",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Time to spend on measuring, once the program has ended.",
)
@click.option("--no-profile-step", is_flag=True, help="Run no further step under torch's profiler.")
@click.option(
    "--include", multiple=True, metavar="PATTERN", help="Look for call sites in these files only."
)
@click.option(
    "--exclude", multiple=True, metavar="PATTERN", help="Look for no call sites in these files."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the evidence here, for `check --evidence`, `report` and `merge`.",
)
@click.option(
    "--trace-event",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the profiled step here, for Perfetto; FILE.gz is compressed.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the report here too, as one HTML page.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no report.")
def trace(
    program: Sequence[str],
    *,
    as_module: bool,
    steps: int | None,
    warmup: int,
    no_replay: bool,
    replay_budget: float,
    no_profile_step: bool,
    include: Sequence[str],
    exclude: Sequence[str],
    output: Path | None,
    trace_event: Path | None,
    html: Path | None,
    quiet: bool,
) -> int:
    """Run PROGRAM with its arguments, and report what it did to memory.

    PROGRAM is a script, or with -m the name of a module; whatever follows it belongs to it.
    The report goes to standard error, also where the program fails or is interrupted.

    Exit status: that of the program.
    """
    from memlint.cli.page import require_html, write_page
    from memlint.cli.program import Program
    from memlint.tracer import Trace, TraceError
    from memlint.tracer.trace import of_this_rank

    written = {"--output": output, "--trace-event": trace_event, "--html": html}
    check_outputs(written, () if as_module else (Path(program[0]),))
    for option, path in written.items():
        if path is not None and not path.absolute().parent.is_dir():
            raise click.UsageError(f"{option}: no such folder: {path.parent}")
    if trace_event is not None and no_profile_step:
        raise click.UsageError("--trace-event needs the step that --no-profile-step leaves out")
    if html is not None:
        require_html()
    traced = Program(program[0], program[1:], as_module)
    if not traced.exists:
        raise Failed(f"no such program: {traced.name}")
    tracing = Trace(
        steps=steps,
        warmup=warmup,
        replay=not no_replay,
        replay_budget=replay_budget,
        profile_step=not no_profile_step,
        include=include,
        exclude=exclude,
        output=output,
        quiet=quiet,
    )
    events = None if trace_event is None else of_this_rank(trace_event.absolute())
    page = None if html is None else of_this_rank(html.absolute())
    with ExitStack() as stack:
        try:
            stack.enter_context(tracing)
        except TraceError as error:
            raise Failed(str(error)) from error
        status = traced.run()
    if events is not None and tracing.meta:  # a forked child has seen nothing
        _write(events, tracing)
    if page is not None and tracing.meta:
        write_page(tracing.document(), page, page.name)
    return status


def _write(path: Path, tracing: Trace) -> None:
    if tracing.profile is None:
        click.echo(f"{path.name}: not written, as no step was profiled", err=True)
        return
    try:
        tracing.save_trace_event(path)
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}") from error
