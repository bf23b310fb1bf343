"""``memlint explain``."""

from __future__ import annotations

import json
import sys

import click

from memlint.cli.packs import find_rule, load
from memlint.cli.status import Status
from memlint.cli.terminal import wants_color, width_of
from memlint.report.rule_page import body, page, rule_data


@click.command()
@click.argument("rule")
@click.option(
    "--format",
    "--output-format",
    "output_format",
    type=click.Choice(["full", "json", "markdown"]),
    default="full",
    show_default=True,
)
@click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True
)
def explain(rule: str, output_format: str, color: str) -> int:
    """Show the page of RULE, given by its code or name."""
    found = find_rule(load(), rule)
    if output_format == "json":
        click.echo(json.dumps({**rule_data(found), "page": body(found)}, indent=2))
    elif output_format == "full" and wants_color(color, sys.stdout):
        _show(page(found))
    else:
        click.echo(page(found), nl=False)
    return Status.CLEAN


def _show(markdown: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    Console(width=width_of(sys.stdout), force_terminal=True).print(Markdown(markdown))
