"""``memlint bench``."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import click

from memlint.bench.choose import UnknownBench, choose, listing, quick
from memlint.bench.json_report import json_report
from memlint.bench.machine import this_machine
from memlint.bench.markdown_report import markdown_report
from memlint.bench.plan import Plan
from memlint.bench.results import Outcome, Session
from memlint.bench.run import Benches, run_benches
from memlint.bench.store import keep, measured_rows
from memlint.bench.surroundings import set_threads, unusable, usable_cpus
from memlint.bench.text_report import text_report
from memlint.cli.outputs import check_outputs
from memlint.cli.packs import load, report_broken
from memlint.cli.page import require_html, write_bench_page
from memlint.cli.progress import Steps
from memlint.cli.status import Failed, Status, silence, told_to_end_is_interrupted
from memlint.cli.terminal import wants_color, width_of
from memlint.doctor.host import this_host
from memlint.report.view import printable
from memlint.rule import RuleSet

QUICK_BUDGET = 100.0
"""Seconds of a run that names no bench."""

_FILE = click.Path(path_type=Path, dir_okay=False)


def _number(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise click.BadParameter("not a number", context, option)
    return value


@click.command()
@click.argument("benches", nargs=-1, metavar="[RULE|EXPERIMENT]...")
@click.option("--full", is_flag=True, help="Run all benches at all sizes.")
@click.option("--size", type=click.IntRange(1), help="Run at this size alone.")
@click.option(
    "--dtype", type=click.Choice(["float16", "bfloat16", "float32", "float64"]), help="Number type."
)
@click.option("--device", default="cpu", show_default=True, help="A device of torch.")
@click.option(
    "--threads",
    type=click.IntRange(1),
    help="Threads.  [default: 1 for what libraries do, all CPUs for parallel loops]",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    callback=_number,
    metavar="SECONDS",
    help=f"For the whole run; {QUICK_BUDGET:.0f} where no bench is named, and not with --full.",
)
@click.option("--control", is_flag=True, help="Run each good form against itself.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["full", "json", "markdown"]),
    default="full",
    show_default=True,
)
@click.option("--save", is_flag=True, help="Keep the ratios for `memlint check --measured`.")
@click.option("--html", type=_FILE, metavar="FILE", help="Write a page with plots here, too.")
@click.option("--list", "list_only", is_flag=True, help="List the benches, and run none.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="When to use colours.",
)
def bench(
    benches: tuple[str, ...],
    *,
    full: bool,
    size: int | None,
    dtype: str | None,
    device: str,
    threads: int | None,
    budget: float | None,
    control: bool,
    output_format: str,
    save: bool,
    html: Path | None,
    list_only: bool,
    color: str,
) -> int:
    """Measure on this machine what rules claim, and what its memory is like.

    What is run are rules (by code, its beginning, name or family) and experiments (by name);
    without any, a quick set of all in under two minutes.  Each compares two forms of the same,
    in turns and in random order, beside a control.

    Exit status: 0; 2 if a bench failed; 130 if interrupted, what was measured so far being told.
    """
    _check_usage(control and save, html)
    rules = load()
    chosen = _chosen(benches, rules)
    if list_only:
        for row in listing(chosen):
            click.echo(row)
        return report_broken(rules)
    if not benches and not full:
        chosen = quick(chosen)
        budget = budget or QUICK_BUDGET
    libraries, parallel = threads or 1, threads or usable_cpus()
    set_threads(libraries, parallel)
    device = "cpu" if re.fullmatch(r"cpu(:\d+)?", device) else device
    if why := unusable(device):
        raise Failed(why)
    plan = Plan(full, size, dtype, device, libraries, parallel, budget, control)
    outcomes: list[Outcome] = []
    interrupted = _run(chosen, plan, outcomes)
    session = Session(this_machine(this_host()), plan, _now(), tuple(outcomes))
    try:
        _write(session, output_format, wants_color(color, sys.stdout))
    except BrokenPipeError:  # what else is to be written does not depend on who reads this
        silence(sys.stdout)
    if save:
        _keep(session, chosen)
    if html is not None:
        write_bench_page(session, html)
    if interrupted:
        return Status.INTERRUPTED
    return Status.ERROR if any(one.failed for one in outcomes) else report_broken(rules)


def _check_usage(saves_control: bool, html: Path | None) -> None:
    if saves_control:
        raise click.UsageError("--save: a control run measures no rule: there is nothing to keep")
    if html is None:
        return
    check_outputs({"--html": html}, [])
    if not html.absolute().parent.is_dir():
        raise click.UsageError(f"--html: no such folder: {html.parent}")
    require_html("bench")


def _chosen(names: Sequence[str], rules: RuleSet) -> Benches:
    try:
        return choose(names, rules)
    except UnknownBench as error:
        report_broken(rules)  # it may be one of those that could not be loaded
        raise click.UsageError(str(error)) from error


def _run(benches: Benches, plan: Plan, outcomes: list[Outcome]) -> bool:
    """Gather all outcomes; whether the user interrupted."""
    with Steps("Measuring") as steps, told_to_end_is_interrupted():
        try:
            # Each is kept as it comes, so that an interruption takes none along.
            for outcome in run_benches(benches, plan, steps):
                outcomes.append(outcome)  # noqa: PERF402
        except KeyboardInterrupt:
            return True
    return False


def _write(session: Session, output_format: str, color: bool) -> None:
    if output_format == "json":
        click.echo(json_report(session))
    elif output_format == "markdown":
        click.echo(markdown_report(session), nl=False)
    else:
        for row in text_report(session, width_of(sys.stdout), color):
            click.echo(row, color=True)


def _keep(session: Session, benches: Benches) -> None:
    rows = measured_rows(session, benches.rules)
    if not rows:
        click.echo("nothing to keep: no rule was measured", err=True)
        return
    try:
        path, complaint = keep(session.machine, rows)
    except OSError as error:
        raise Failed(f"the ratios cannot be kept: {error}") from error
    if complaint:
        click.echo(f"warning: {complaint}: begun anew", err=True)
    plural = "" if len(rows) == 1 else "s"
    click.echo(f"kept {len(rows)} ratio{plural} in {printable(str(path))}", err=True)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
