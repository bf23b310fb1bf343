"""Which rule packs are installed, by the entry points of the installed distributions.

The standard library's reader of this metadata takes longer to import than the rules do,
so that the few lines that are needed are read here; where a place on ``sys.path`` is no
folder (a zip file, say), the standard library is asked after all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Pack:
    """An entry point: its name, the package it points to, the version it comes with."""

    name: str
    package: str
    version: str


def installed(group: str) -> list[Pack]:
    """The entry points of a group, sorted; of a distribution found twice, the first counts."""
    folders = [folder or os.getcwd() for folder in sys.path]
    if any(os.path.isfile(folder) for folder in folders):
        return sorted(_asked_for(group))
    return sorted(_read(group, folders))


def _asked_for(group: str) -> Iterator[Pack]:
    from importlib.metadata import entry_points

    for point in entry_points(group=group):
        yield Pack(point.name, point.value, point.dist.version if point.dist else "")


def _read(group: str, folders: list[str]) -> Iterator[Pack]:
    seen: set[str] = set()
    for folder in folders:
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue  # places on the path need not exist
        for name in names:
            stem, dot, kind = name.rpartition(".")
            if not dot or kind not in ("dist-info", "egg-info"):
                continue
            project, _, version = stem.partition("-")
            if project.lower() in seen:
                continue
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                    text = file.read()
            except (OSError, ValueError):
                continue  # most distributions have no entry points
            seen.add(project.lower())
            for point, package in _section(text, group):
                yield Pack(point, package, version)


def _section(text: str, group: str) -> Iterator[tuple[str, str]]:
    inside = False
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            inside = line == f"[{group}]"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()
