"""Exit statuses, and how a command ends early."""

from __future__ import annotations

import contextlib
import enum
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import IO, Any

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


def silence(stream: IO[Any]) -> None:
    """Send the rest of a stream nowhere: whoever read it has gone."""
    with contextlib.suppress(OSError, ValueError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, stream.fileno())


@contextlib.contextmanager
def told_to_end_is_interrupted() -> Iterator[None]:
    """Take SIGTERM for an interruption, so that what was begun is cleaned up: temporary files,
    and other processes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    process = os.getpid()

    def interrupt(number: int, frame: object) -> None:
        if os.getpid() == process:
            raise KeyboardInterrupt
        os._exit(128 + number)  # a fork, whose parent cleans up

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def occupy_closed_streams() -> None:
    """Give standard streams that the caller has closed an end: nowhere.

    Files opened later would take their places, and be written to as if they were them.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8")
