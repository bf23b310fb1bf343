"""``memlint trace``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memlint.cli.status import Failed

if TYPE_CHECKING:
    from collections.abc import Sequence


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
@click.option("-q", "--quiet", is_flag=True, help="Print no report.")
def trace(
    program: Sequence[str],
    *,
    as_module: bool,
    steps: int | None,
    warmup: int,
    no_replay: bool,
    replay_budget: float,
    include: Sequence[str],
    exclude: Sequence[str],
    output: Path | None,
    quiet: bool,
) -> int:
    """Run PROGRAM with its arguments, and report what it did to memory.

    PROGRAM is a script, or with -m the name of a module; whatever follows it belongs to it.
    The report goes to standard error, also where the program fails or is interrupted.

    Exit status: that of the program.
    """
    from memlint.cli.program import Program
    from memlint.tracer import Trace, TraceError

    if output is not None and not output.absolute().parent.is_dir():
        raise click.UsageError(f"--output: no such folder: {output.parent}")
    traced = Program(program[0], program[1:], as_module)
    if not traced.exists:
        raise Failed(f"no such program: {traced.name}")
    tracing = Trace(
        steps=steps,
        warmup=warmup,
        replay=not no_replay,
        replay_budget=replay_budget,
        include=include,
        exclude=exclude,
        output=output,
        quiet=quiet,
    )
    with ExitStack() as stack:
        try:
            stack.enter_context(tracing)
        except TraceError as error:
            raise Failed(str(error)) from error
        return traced.run()
