"""The command ``memlint``: commands by name, exit statuses, interruptions."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple

import click

from memlint import __version__
from memlint.cli.status import Status, occupy_closed_streams, silence


class _Entry(NamedTuple):
    module: str
    command: str
    help: str


COMMANDS: Mapping[str, _Entry] = {
    "check": _Entry("memlint.cli.check", "check", "Find memory-inefficient code."),
    "trace": _Entry("memlint.cli.trace", "trace", "Run a program and report what it did."),
    "report": _Entry("memlint.cli.report", "report", "Show what a trace has found."),
    "merge": _Entry("memlint.cli.merge", "merge", "Join the traces of the ranks of one run."),
    "analyze": _Entry("memlint.cli.analyze", "analyze", "Report on a trace of torch.profiler."),
    "rules": _Entry("memlint.cli.rules", "rules", "List all rules."),
    "explain": _Entry("memlint.cli.explain", "explain", "Show the page of a rule."),
    "bench": _Entry("memlint.cli.bench", "bench", "Measure on this machine what rules claim."),
    "doctor": _Entry("memlint.cli.doctor", "doctor", "Say how this machine is set up."),
    "clean": _Entry("memlint.cli.clean", "clean", "Remove caches."),
    "new-rule": _Entry("memlint.cli.new_rule", "new_rule", "Write the files of a new rule."),
}


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, in the order in which they are most used."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        import importlib

        entry = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(entry.module), entry.command)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="memlint %(version)s")
def cli() -> None:
    """Find memory-inefficient machine-learning code by reading it, or by running it."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit status."""
    occupy_closed_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] != ["trace"]:  # a traced program has its own output, and its own errors in it
        _accept_file_names()
    if arguments is None and given[:1] == ["check"]:
        _collect_nothing()
    sys.exit(_delivered(_run(given)))


def _collect_nothing() -> None:
    """A run is over before there is garbage worth looking for, among all that was loaded; when
    Python ends it would look again."""
    gc.disable()
    atexit.register(gc.freeze)


def _accept_file_names() -> None:
    """File names may hold bytes that no encoding can show."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _delivered(status: int) -> int:
    """The exit status, once all output is out; what cannot be written is no traceback."""
    try:
        _flush(sys.stdout)
    except BrokenPipeError:
        silence(sys.stdout)
    except OSError as error:
        silence(sys.stdout)
        status = _output_error(error)
    try:
        _flush(sys.stderr)
    except OSError:  # there is nowhere left to say so
        silence(sys.stderr)
        status = Status.ERROR
    return status


def _flush(stream: IO[str] | None) -> None:
    # A traced program may have closed it, or put something else in its place.
    if stream is not None and not getattr(stream, "closed", False):
        stream.flush()


def _run(arguments: list[str]) -> int:
    try:
        # Not cli.main: that has its own mind about closed pipes and interruptions.
        with cli.make_context("memlint", arguments) as context:
            result = cli.invoke(context)
    except click.exceptions.Exit as request:
        return request.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return Status.INTERRUPTED
    except BrokenPipeError:
        silence(sys.stdout)
        return Status.CLEAN
    except OSError as error:
        if error.filename is None:  # not of a file, so of what is written to
            return _output_error(error)
        return _internal_error(error)
    except Exception as error:
        return _internal_error(error)
    return result if isinstance(result, int) else Status.CLEAN


def _output_error(error: OSError) -> int:
    with contextlib.suppress(OSError):  # it may be standard error that cannot be written
        click.echo(f"error: the output cannot be written: {error.strerror}", err=True)
    return Status.ERROR


def _internal_error(error: Exception) -> int:
    if os.environ.get("MEMLINT_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
    summary = f"{type(error).__name__}: {error}"
    click.echo(f"error: internal error: {summary}", err=True)
    click.echo("       (set MEMLINT_TRACEBACK=1 to see where)", err=True)
    return Status.ERROR
