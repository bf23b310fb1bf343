"""``memlint rules``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence

import click

from memlint.cli.packs import load, report_broken
from memlint.cli.terminal import wants_color, width_of
from memlint.report.rule_page import default_word, fix_word, rule_data
from memlint.report.view import paint
from memlint.rule import Rule

_HEAD = ("code", "name", "severity", "default", "fix", "summary")


@click.command()
@click.option(
    "--output-format", type=click.Choice(["full", "json"]), default="full", show_default=True
)
@click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True
)
def rules(output_format: str, color: str) -> int:
    """List all rules."""
    found = load()
    known = list(found.rules.values())
    if output_format == "json":
        click.echo(json.dumps([rule_data(rule) for rule in known], indent=2))
    else:
        for row in _table(known, wants_color(color, sys.stdout)):
            click.echo(row, color=True)
    return report_broken(found)


def _table(known: Sequence[type[Rule]], color: bool) -> Iterator[str]:
    rows = [_row(rule) for rule in known]
    widths = [max(map(len, column)) for column in zip(_HEAD, *rows, strict=True)]
    room = width_of(sys.stdout) if sys.stdout.isatty() else None
    yield paint(_line(_HEAD, widths, room), "faint", color)
    for row in rows:
        code, rest = row[0], _line(row, widths, room)[widths[0] :]
        yield paint(f"{code:<{widths[0]}}", "strong", color) + rest


def _row(rule: type[Rule]) -> tuple[str, ...]:
    return (
        rule.code,
        rule.name,
        rule.severity.value,
        default_word(rule),
        fix_word(rule),
        rule.summary(),
    )


def _line(cells: Sequence[str], widths: Sequence[int], room: int | None) -> str:
    padded = [f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)]
    line = "  ".join(padded).rstrip()
    return line if room is None or len(line) <= room else line[: room - 1] + "…"
