"""Exit statuses, and how a command ends early."""

from __future__ import annotations

import contextlib
import enum
import os
import sys

import click


class Status(enum.IntEnum):
    """What the exit status of a command says."""

    CLEAN = 0
    FINDINGS = 1
    ERROR = 2
    INTERRUPTED = 130


class Failed(click.ClickException):
    """What was asked for could not be done; the usage was right."""

    exit_code = int(Status.ERROR)

    def show(self, file: object = None) -> None:
        """Say why, on standard error."""
        click.echo(f"error: {self.format_message()}", err=True)


def silence_stdout() -> None:
    """Send the rest of the output nowhere: whoever read it has gone."""
    with contextlib.suppress(OSError, ValueError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
