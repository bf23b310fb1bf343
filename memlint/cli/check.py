"""``memlint check``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from memlint.cli.status import Failed
from memlint.config import ConfigError
from memlint.config_keys import CONFIDENCES, SEVERITIES
from memlint.report.formats import FORMATS

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _split(
    context: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> tuple[str, ...]:
    parts = (part.strip() for value in values for part in value.split(","))
    return tuple(part for part in parts if part)


def _list_option(name: str, help: str, metavar: str) -> Callable[[Decorated], Decorated]:
    return click.option(name, multiple=True, callback=_split, metavar=metavar, help=help)


_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(allow_dash=True))
@_list_option("--select", "Rules to run, instead of the configured ones.", "RULES")
@_list_option("--ignore", "Rules not to run.", "RULES")
@_list_option("--extend-select", "Rules to run besides the configured ones.", "RULES")
@click.option("--config", type=_FILE, metavar="FILE", help="Use this configuration file only.")
@click.option("--isolated", is_flag=True, help="Use no configuration file.")
@click.option(
    "--output-format",
    type=click.Choice(list(FORMATS)),
    default="full",
    show_default=True,
    help="How to write the report.",
)
@click.option("-o", "--output-file", type=_FILE, metavar="FILE", help="Write the report here.")
@_list_option("--exclude", "Paths to leave out, instead of the configured ones.", "PATTERNS")
@_list_option("--extend-exclude", "Paths to leave out as well.", "PATTERNS")
@click.option(
    "--force-exclude", is_flag=True, help="Leave out excluded files even if they are named."
)
@click.option("--fix", is_flag=True, help="Apply safe fixes, and report what remains.")
@click.option(
    "--unsafe-fixes",
    is_flag=True,
    help="With --fix, --fix-only or --diff: also fixes that may change results.",
)
@click.option("--fix-only", is_flag=True, help="Apply fixes, and report no findings.")
@click.option("--diff", is_flag=True, help="Show what fixes would change, and change nothing.")
@click.option("--show-fixes", is_flag=True, help="List the fixes that were applied.")
@click.option("--stdin-filename", metavar="FILE", help="What to call the program read from '-'.")
@click.option("--statistics", is_flag=True, help="Count findings by rule instead of showing them.")
@click.option("--show-files", is_flag=True, help="List the files that would be checked.")
@click.option(
    "--show-settings", is_flag=True, help="Show the settings that hold for the first path."
)
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Worker processes to use.")
@click.option("-e", "--exit-zero", is_flag=True, help="Exit with 0 even if there are findings.")
@click.option(
    "--fail-level",
    type=click.Choice(SEVERITIES),
    help="The lowest severity that makes the exit status 1 (by default: warning).",
)
@click.option(
    "--min-confidence",
    type=click.Choice(CONFIDENCES),
    help="The lowest confidence to report (by default: medium).",
)
@click.option("--baseline", type=_FILE, metavar="FILE", help="Leave out the findings listed here.")
@click.option("--write-baseline", is_flag=True, help="Write all findings to the baseline file.")
@click.option(
    "--evidence",
    type=_FILE,
    metavar="FILE",
    help="Say of each finding what this trace has seen of it, as written by `memlint trace -o`.",
)
@click.option(
    "--measured",
    is_flag=True,
    help="Say of each finding what its rule costs on this machine, as kept by `memlint bench "
    "--save`.",
)
@click.option("-n", "--no-cache", is_flag=True, help="Neither read nor write the cache.")
@click.option(
    "--cache-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where to cache results.",
)
@click.option("--timings", is_flag=True, help="Show the time by phase and rule.")
@click.option("-q", "--quiet", is_flag=True, help="Write findings and errors, nothing else.")
@click.option("-v", "--verbose", is_flag=True, help="Say which files and settings are used.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="When to use colours.",
)
def check(paths: Sequence[str], **options: Any) -> int:
    """Find memory-inefficient code in files and folders (by default: in this folder).

    '-' reads a program from standard input.  RULES are codes (MEM101), names
    (column-order-loop), families, prefixes of codes (MEM1) or ALL, separated by commas.

    Exit status: 0 nothing at or above the fail level, 1 such findings, 2 an error.  With
    --fix it speaks of what remains; with --diff, 1 says that fixes would change something.
    """
    from memlint.cli.run_check import CheckRun

    given = tuple(paths) or (".",), _overrides(options), options
    try:
        if _wants_fixes(options):
            from memlint.cli.run_fix import FixRun

            return FixRun(*given).run()
        return CheckRun(*given).run()
    except ConfigError as error:
        raise Failed(str(error).replace(f"{Path.cwd()}{os.sep}", "")) from error


def _wants_fixes(options: dict[str, Any]) -> bool:
    wanted = any(options[name] for name in ("fix", "fix_only", "diff"))
    for name in ("unsafe_fixes", "show_fixes"):
        if options[name] and not wanted:
            shown = name.replace("_", "-")
            raise click.UsageError(f"--{shown} is of use with --fix, --fix-only or --diff only.")
    if wanted and options["evidence"] is not None:
        raise click.UsageError("--evidence cannot be combined with fixes.")
    if wanted and options["measured"]:
        raise click.UsageError("--measured cannot be combined with fixes.")
    if wanted and options["write_baseline"]:
        raise click.UsageError("--write-baseline cannot be combined with fixes.")
    if options["fix_only"] and options["output_file"] is not None and not options["diff"]:
        raise click.UsageError("--fix-only writes no report: --output-file is of no use.")
    return wanted


def _overrides(options: dict[str, Any]) -> dict[str, object]:
    """What was given on the command line, by the names of the settings."""
    from memlint.findings import Confidence, Severity

    given: dict[str, object] = {}
    for name in ("select", "ignore", "extend_select", "exclude", "extend_exclude"):
        if options[name]:
            given[name] = options[name]
    if options["force_exclude"]:
        given["force_exclude"] = True
    if options["fail_level"] is not None:
        given["fail_level"] = Severity(options["fail_level"])
    if options["min_confidence"] is not None:
        given["min_confidence"] = Confidence(options["min_confidence"])
    for name in ("baseline", "cache_dir"):
        if options[name] is not None:
            given[name] = options[name].absolute()
    return given
