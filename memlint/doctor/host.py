"""The system that is looked at: its files under one root, its environment, its ways to ask."""

from __future__ import annotations

import importlib
import mmap
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from memlint.doctor.unknown import NOT_HERE, Unknown

_LONGEST_FILE = 1 << 20
"""Bytes that are read of a file: /proc/self/maps of a large process has no end."""

_SYSCTL_SECONDS = 5.0
_LARGEST_NUMBER = 1 << 63
"""What the kernel counts with: a larger number is none that it wrote."""


@dataclass(frozen=True, slots=True)
class FileSystem:
    """Room in a file system, in bytes."""

    total: int
    free: int


def _no_file_system(path: str) -> FileSystem | Unknown:
    return NOT_HERE


def _no_sysctl(name: str) -> str | Unknown:
    return NOT_HERE


def _no_library(name: str) -> ModuleType | Unknown:
    return Unknown(
        f"{name} is not installed: it comes with `pip install memlint-ml[doctor]`", absent=True
    )


@dataclass(frozen=True, slots=True)
class Host:
    """Where facts come from: a sample of all this can stand in for the machine.

    ``platform`` is spelled as ``sys.platform``; ``page_size`` is in bytes; ``python`` is the
    version, ``start_method`` the one that multiprocessing takes by default.
    """

    root: Path = Path("/")
    platform: str = "linux"
    environment: Mapping[str, str] = field(default_factory=dict)
    page_size: int = 4096
    cpu_count: int | None = None
    python: tuple[int, int] = (3, 13)
    start_method: str = "fork"
    file_system: Callable[[str], FileSystem | Unknown] = _no_file_system
    sysctl: Callable[[str], str | Unknown] = _no_sysctl
    library: Callable[[str], ModuleType | Unknown] = _no_library

    @property
    def is_linux(self) -> bool:
        """Whether there is /proc and /sys to read."""
        return self.platform.startswith("linux")

    def text(self, path: str) -> str | Unknown:
        """The text of a file of the system, without the white space around it."""
        if not self.is_linux:
            return NOT_HERE
        try:
            with self._path(path).open("rb") as stream:
                return stream.read(_LONGEST_FILE).decode("utf-8", "replace").strip()
        except OSError as error:
            return _unread(path, error)

    def number(self, path: str) -> int | Unknown:
        """The one number that a file holds."""
        text = self.text(path)
        return text if isinstance(text, Unknown) else whole_number(text, path)

    def names(self, path: str) -> tuple[str, ...] | Unknown:
        """What a folder of the system holds, sorted."""
        if not self.is_linux:
            return NOT_HERE
        try:
            return tuple(sorted(os.listdir(self._path(path))))
        except OSError as error:
            return _unread(path, error)

    def exists(self, path: str) -> bool:
        """Whether the system has such a file or folder."""
        return self.is_linux and os.path.exists(self._path(path))

    def _path(self, path: str) -> Path:
        return self.root / path.lstrip("/")


def whole_number(text: str, path: str) -> int | Unknown:
    """A number as the kernel writes it; ``path`` says where it was read."""
    digits = text[1:] if text.startswith("-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 20:
        return Unknown(f"{path}: not a number")
    number = int(text)
    return number if abs(number) <= _LARGEST_NUMBER else Unknown(f"{path}: not a number")


def _unread(path: str, error: OSError) -> Unknown:
    absent = isinstance(error, (FileNotFoundError, NotADirectoryError))
    return Unknown(f"{path}: {(error.strerror or str(error)).lower()}", absent)


def this_host() -> Host:
    """The machine and process that this runs on."""
    return Host(
        platform=sys.platform,
        environment=dict(os.environ),
        page_size=mmap.PAGESIZE,
        cpu_count=os.cpu_count(),
        python=sys.version_info[:2],
        # The first is the default: asking for the default itself would settle it.
        start_method=multiprocessing.get_all_start_methods()[0],
        file_system=_room,
        sysctl=_sysctl,
        library=_library,
    )


def _library(name: str) -> ModuleType | Unknown:
    try:
        return importlib.import_module(name)
    except ImportError:
        return _no_library(name)


def _room(path: str) -> FileSystem | Unknown:
    if sys.platform == "win32":
        return NOT_HERE
    try:
        found = os.statvfs(path)
    except OSError as error:
        return _unread(path, error)
    return FileSystem(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


def _sysctl(name: str) -> str | Unknown:
    command = ["sysctl", "-n", name]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SYSCTL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Unknown(f"sysctl {name}: {type(error).__name__}")
    if done.returncode:
        return Unknown(f"sysctl {name}: no such value", absent=True)
    return done.stdout.decode("utf-8", "replace").strip()
