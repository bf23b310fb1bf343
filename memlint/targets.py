"""The oldest versions that a project supports, by its settings or by what it requires.

What is not known is taken as the newest version; a rule that depends on it says so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from memlint.late_pattern import late_pattern

if TYPE_CHECKING:
    from memlint.config import Settings

Version: TypeAlias = tuple[int, ...]

_PACKAGES = ("torch", "numpy")
_REQUIREMENT = late_pattern(r"\s*([A-Za-z][\w.-]*)\s*(?:\[[^\]]*\])?\s*\(?([^;#)]*)")
# Bounds from below, and pins; poetry's caret among them.
_LOWEST = late_pattern(r"(?:>=|===?|~=|\^|~|>)\s*v?(\d+(?:\.\d+)*)")
_BARE = late_pattern(r"\s*v?(\d+(?:\.\d+)*)(?:\.\*)?\s*$")


@dataclass(frozen=True, slots=True)
class Targets:
    """The oldest supported versions; ``None`` where nothing says."""

    torch: Version | None = None
    numpy: Version | None = None
    python: Version | None = None

    def has(self, package: str, version: Version) -> bool:
        """Whether all supported versions of "torch", "numpy" or "python" are this or newer."""
        oldest: Version | None = getattr(self, package)
        return oldest is None or oldest >= version

    def known(self, package: str) -> bool:
        """Whether anything says which versions are supported."""
        return getattr(self, package) is not None

    def proviso(self, package: str, version: Version) -> str:
        """What a message adds where nothing states the version it rests on: " (torch >= 2.1)"."""
        if self.known(package):
            return ""
        return f" ({package} >= {'.'.join(map(str, version))})"


def targets_of(settings: Settings) -> Targets:
    """The versions by the settings; else by ``pyproject.toml`` and requirements files."""
    required = _required(settings.root)
    return Targets(
        _version(settings.target_torch) or required.torch,
        _version(settings.target_numpy) or required.numpy,
        _version(settings.target_python) or required.python,
    )


def _version(text: str | None) -> Version | None:
    return tuple(map(int, text.split("."))) if text else None


@cache
def _required(root: Path) -> Targets:
    found: dict[str, Version] = {}
    for name, specifier in _requirements(root):
        key = name.lower()
        lowest = _lowest(specifier)
        if key in (*_PACKAGES, "python") and lowest is not None:
            found[key] = min(found.get(key, lowest), lowest)
    return Targets(found.get("torch"), found.get("numpy"), found.get("python"))


def forget_requirements() -> None:
    """Drop what is remembered of requirements."""
    _required.cache_clear()


def _lowest(specifier: str) -> Version | None:
    """The lowest version that a specifier (``>=2.1,<3``) admits, as far as it says.

    With a bound from above alone, all older versions are supported.
    """
    bare = _BARE.match(specifier)
    versions = [bare[1]] if bare else _LOWEST.findall(specifier)
    above = (0,) if "<" in specifier else None
    return max((_version(text) or () for text in versions), default=above)


def _requirements(root: Path) -> Iterator[tuple[str, str]]:
    yield from _of_pyproject(root / "pyproject.toml")
    for path in sorted(root.glob("requirements*.txt")):
        for line in _text_of(path).splitlines():
            if not line.lstrip().startswith(("#", "-")):
                yield from _parsed(line)


def _of_pyproject(path: Path) -> Iterator[tuple[str, str]]:
    text = _text_of(path)
    if not text:
        return
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # another tool's trouble; one with settings for memlint is refused elsewhere
    project = _table(data, "project")
    python = project.get("requires-python")
    if isinstance(python, str):
        yield "python", python
    lists = [project.get("dependencies"), *_table(project, "optional-dependencies").values()]
    for one in lists:
        for line in one if isinstance(one, list) else ():
            if isinstance(line, str):
                yield from _parsed(line)
    poetry = _table(_table(_table(data, "tool"), "poetry"), "dependencies")
    for name, wanted in poetry.items():
        version = wanted.get("version") if isinstance(wanted, dict) else wanted
        if isinstance(version, str):
            yield name, version


def _table(data: dict[str, Any], key: str) -> dict[str, Any]:
    found = data.get(key)
    return found if isinstance(found, dict) else {}


def _parsed(line: str) -> Iterator[tuple[str, str]]:
    found = _REQUIREMENT.match(line)
    if found is not None:
        yield found[1], found[2]


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
