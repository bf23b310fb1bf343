"""``memlint clean``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from memlint.cli.status import Failed, Status
from memlint.config import ConfigError, load_settings

_NEVER_ENTERED = frozenset({".git", ".hg", ".venv", "node_modules", "site-packages"})


@click.command()
@click.argument("folder", default=".", type=click.Path(path_type=Path, exists=True))
@click.option("-q", "--quiet", is_flag=True, help="Do not name what is removed.")
def clean(folder: Path, quiet: bool) -> int:
    """Remove the caches in FOLDER (by default: this one) and below."""
    from memlint.linter.cache import remove_cache

    try:
        configured = load_settings(folder).cache_dir
    except ConfigError as error:
        raise Failed(str(error)) from error
    caches = list(_caches_below(folder))
    if configured is not None:
        caches.append(configured)
    for cache in caches:
        try:
            removed = remove_cache(cache)
        except OSError as error:
            raise Failed(f"{cache}: {error.strerror}") from error
        if removed and not quiet:
            click.echo(f"removed {cache}")
    return Status.CLEAN


def _caches_below(folder: Path) -> Iterator[Path]:
    from memlint.linter.cache import CACHE_NAME

    for root, folders, _ in os.walk(folder):
        if CACHE_NAME in folders:
            yield Path(root, CACHE_NAME)
        folders[:] = sorted(set(folders) - _NEVER_ENTERED - {CACHE_NAME})
