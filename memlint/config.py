"""Settings: what a run is told, by defaults, configuration files and the command line.

A file is governed by the nearest ``memlint.toml``, or ``pyproject.toml`` that has a table
``[tool.memlint]``, in its folder or above.  The nearest one alone counts, unless it
extends another.  Nothing in a configuration file can name code to load.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from memlint.findings import Confidence, Severity
from memlint.toml_file import ConfigError, TomlFile, read_toml

__all__ = [
    "ConfigError",
    "Resolver",
    "Settings",
    "default_settings",
    "find_config",
    "load_settings",
    "settings_from_file",
]


@dataclass(frozen=True, slots=True)
class Settings:
    """Resolved settings for the files below one configuration file.

    Selectors are codes (``MEM101``), names (``column-order-loop``), code prefixes
    (``MEM1``), family names (``locality``) or ``ALL``.  An empty ``select`` means the
    rules that are on by default.
    """

    root: Path
    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    respect_gitignore: bool = True
    fail_level: Severity = Severity.WARNING
    min_confidence: Confidence = Confidence.MEDIUM
    target_device: str = "auto"
    target_torch: str | None = None
    target_numpy: str | None = None
    target_python: str | None = None
    max_file_size: int = 2_000_000
    baseline: Path | None = None
    cache_dir: Path | None = None
    rule_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def find_config(directory: Path) -> Path | None:
    """The configuration file that governs a folder.

    Answers are remembered; ``forget_files`` makes the next question look again.
    """
    # Without "..": a folder passed on the way up and down again governs nothing.
    return _find_config(Path(os.path.abspath(directory)))


@cache
def _find_config(directory: Path) -> Path | None:
    for folder in (directory, *directory.parents):
        if (found := _config_in(folder)) is not None:
            return found
    return None


@cache
def _config_in(folder: Path) -> Path | None:
    own = folder / "memlint.toml"
    if os.path.isfile(own):
        return own
    project = folder / "pyproject.toml"
    # A TOML parse per folder is worth avoiding: most projects never mention memlint.
    if os.path.isfile(project) and b"memlint" in _bytes_of(project):
        tool = read_toml(project).data.get("tool")
        if isinstance(tool, dict) and "memlint" in tool:
            return project
    return None


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(path, None, f"cannot be read: {error.strerror}") from error


def forget_files() -> None:
    """Drop what is remembered of configuration files."""
    _find_config.cache_clear()
    _config_in.cache_clear()
    _parsed.cache_clear()


def load_settings(directory: Path, overrides: Mapping[str, object] | None = None) -> Settings:
    """The settings for the files of a folder, with command-line settings laid over them."""
    path = find_config(directory)
    if path is None:
        return default_settings(Path.cwd(), overrides)
    return settings_from_file(path, overrides)


def settings_from_file(path: Path, overrides: Mapping[str, object] | None = None) -> Settings:
    """The settings of one configuration file, with command-line settings laid over them."""
    path = path.absolute()
    return _overlay(Settings(root=path.parent, **_parsed(path)), overrides or {})


def default_settings(root: Path, overrides: Mapping[str, object] | None = None) -> Settings:
    """The settings that hold without any configuration file."""
    return _overlay(Settings(root=root.absolute()), overrides or {})


class Resolver:
    """Settings by folder for one run; each folder is asked for once."""

    def __init__(
        self,
        overrides: Mapping[str, object] | None = None,
        config_path: Path | None = None,
        isolated: bool = False,
    ) -> None:
        self._overrides = dict(overrides or {})
        self._by_config: dict[Path | None, Settings] = {}
        self._config_path = config_path
        self._isolated = isolated

    def for_directory(self, directory: Path) -> Settings:
        """The settings for the files of a folder."""
        path = self._config_path
        if path is None and not self._isolated:
            path = find_config(directory)
        if path not in self._by_config:
            self._by_config[path] = self._read(path)
        return self._by_config[path]

    def _read(self, path: Path | None) -> Settings:
        if path is None:
            return default_settings(Path.cwd(), self._overrides)
        return settings_from_file(path, self._overrides)


def _overlay(settings: Settings, overrides: Mapping[str, object]) -> Settings:
    unknown = overrides.keys() - {f.name for f in fields(Settings)}
    if unknown:
        raise TypeError(f"not a setting: {', '.join(sorted(unknown))}")
    values = dict(overrides)
    if "select" in overrides:
        base: tuple[str, ...] = ()
        kept_ignores: tuple[str, ...] = ()
    else:
        base, kept_ignores = settings.extend_select, settings.ignore
    added = _strings(overrides.get("extend_select", ()))
    values["extend_select"] = base + added
    values["ignore"] = tuple(s for s in kept_ignores if s not in added) + _strings(
        overrides.get("ignore", ())
    )
    values["extend_exclude"] = settings.extend_exclude + _strings(
        overrides.get("extend_exclude", ())
    )
    return replace(settings, **values)  # type: ignore[arg-type]


def _strings(value: object) -> tuple[str, ...]:
    assert isinstance(value, tuple | list)
    return tuple(value)


@cache
def _parsed(path: Path) -> dict[str, Any]:
    return _merged(path, ())


_CONCATENATED = ("extend_select", "extend_exclude")
_JOINED_BY_KEY = ("per_file_ignores", "rule_options")
_LONGEST_CHAIN = 30


def _merged(path: Path, children: tuple[Path, ...]) -> dict[str, Any]:
    from memlint.config_keys import parse_table

    file = read_toml(path)
    prefix = ("tool", "memlint") if path.name == "pyproject.toml" else ()
    own, extended = parse_table(file, prefix)
    if extended is None:
        return own
    other = (path.parent / extended).resolve()
    if other in (*children, path.resolve()):
        raise ConfigError(path, _extend_line(file, prefix), f"'extend' runs in a circle: {other}")
    if len(children) > _LONGEST_CHAIN:
        message = f"'extend' leads through more than {_LONGEST_CHAIN} files"
        raise ConfigError(path, _extend_line(file, prefix), message)
    if not os.path.isfile(other):
        raise ConfigError(path, _extend_line(file, prefix), f"'extend': no such file: {other}")
    base = _merged(other, (*children, path.resolve()))
    for key in _CONCATENATED:
        if key in base and key in own:
            own[key] = base[key] + own[key]
    for key in _JOINED_BY_KEY:
        if key in base and key in own:
            own[key] = {**base[key], **own[key]}
    return {**base, **own}


def _extend_line(file: TomlFile, prefix: tuple[str, ...]) -> int | None:
    return file.line_of((*prefix, "extend"))
