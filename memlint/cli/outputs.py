"""Files that a command writes: never over what it reads, nor over each other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import click


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path]) -> None:
    """Raise ``UsageError`` where a file is to be written that is read as well, or twice."""
    read = list(inputs)
    written: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None or _is_device(path):
            continue
        if any(_are_same(path, one) for one in read):
            raise click.UsageError(f"{option}: {path} is what is read: it would be overwritten")
        other = written.setdefault(path.absolute(), option)
        if other != option:
            raise click.UsageError(f"{option}: {path} is written by {other} already")


def _is_device(path: Path) -> bool:
    return os.path.exists(path) and not os.path.isfile(path)


def _are_same(one: Path, other: Path) -> bool:
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)
