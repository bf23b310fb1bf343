"""``memlint doctor``."""

from __future__ import annotations

import shutil
import sys

import click

from memlint.cli.status import Status
from memlint.cli.terminal import wants_color

_WIDTH = 80


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Write JSON for programs.")
@click.option("--strict", is_flag=True, help="Exit with 1 if anything is bad.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="When to use colours.",
)
def doctor(as_json: bool, strict: bool, color: str) -> int:
    """Say how this machine is set up for programs that are bound by memory.

    Each line is good, attention, bad or unknown, and says why and what changes it.  Nothing
    is changed.

    Exit status: 0; with --strict, 1 if a line is bad.
    """
    from memlint.doctor.examine import examine
    from memlint.doctor.facts.torch_build import ask_torch
    from memlint.doctor.host import this_host
    from memlint.doctor.json_report import json_report
    from memlint.doctor.lines import State
    from memlint.doctor.machine import read_machine
    from memlint.doctor.text_report import text_report

    answer = ask_torch()
    host = this_host()
    lines = examine(read_machine(host, answer))
    if as_json:
        click.echo(json_report(lines, host.platform))
    else:
        for row in text_report(lines, _width(), wants_color(color, sys.stdout)):
            click.echo(row, color=True)
    return Status.FINDINGS if strict and any(x.state is State.BAD for x in lines) else Status.CLEAN


def _width() -> int:
    if not sys.stdout.isatty():
        return _WIDTH
    return min(_WIDTH, max(40, shutil.get_terminal_size((_WIDTH, 24)).columns))
