"""The keys of a configuration file: what each accepts, and what to say when it does not."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from memlint.findings import Confidence, Severity
from memlint.rule import Rule, RuleSet
from memlint.selection import did_you_mean, unknown_selector
from memlint.toml_file import ConfigError, TomlFile


class _BadValueError(Exception):
    """A value of the wrong kind; ``at`` is the string in it that is to blame, if it is one."""

    def __init__(self, message: str, at: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the configuration: the setting it fills, and how its value is read."""

    setting: str
    read: Callable[[object, Path], object]
    help: str


def parse_table(file: TomlFile, prefix: Sequence[str]) -> tuple[dict[str, Any], str | None]:
    """The settings of a file by name, and the file that it extends."""
    return _Reader(file, tuple(prefix)).read()


class _Reader:
    def __init__(self, file: TomlFile, prefix: tuple[str, ...]) -> None:
        self._file = file
        self._prefix = prefix
        self._rules: RuleSet | None = None

    def read(self) -> tuple[dict[str, Any], str | None]:
        settings: dict[str, Any] = {}
        extended: str | None = None
        for key, value in self._table().items():
            if key == "extend":
                extended = str(self._value((key,), value, _path_text))
            elif key == "rules":
                settings["rule_options"] = self._rule_tables(value)
            elif key in KEYS:
                settings[KEYS[key].setting] = self._value((key,), value, KEYS[key].read)
                self._check_selectors(key, settings[KEYS[key].setting])
            else:
                hint = did_you_mean(key, (*KEYS, "extend", "rules"))
                raise self._error((key,), f"unknown key {key!r}{hint}")
        return settings, extended

    def _table(self) -> Mapping[str, Any]:
        data: Any = self._file.data
        for key in self._prefix:
            data = data.get(key, {}) if isinstance(data, dict) else None
        if not isinstance(data, dict):
            raise self._error((), f"{'.'.join(self._prefix)!r} must be a table")
        return data

    def _value(
        self, keys: tuple[str, ...], value: object, read: Callable[[object, Path], object]
    ) -> object:
        try:
            return read(value, self._file.path.parent)
        except _BadValueError as bad:
            raise self._error(keys, f"{'.'.join(keys)!r} {bad.message}", bad.at) from bad

    def _error(self, keys: tuple[str, ...], message: str, value: str | None = None) -> ConfigError:
        line = self._file.line_of((*self._prefix, *keys), value)
        return ConfigError(self._file.path, line, message)

    def _all_rules(self) -> RuleSet:
        if self._rules is None:
            from memlint.linter.rules import all_rules

            self._rules = all_rules()
        return self._rules

    def _check_selectors(self, key: str, value: Any) -> None:
        groups: list[tuple[tuple[str, ...], tuple[str, ...]]]
        if key in ("select", "extend-select", "ignore"):
            groups = [((key,), value)]
        elif key == "per-file-ignores":
            groups = [((key, pattern), selectors) for pattern, selectors in value.items()]
        else:
            return
        for keys, selectors in groups:
            for selector in selectors:
                complaint = unknown_selector(selector, self._all_rules())
                if complaint is not None:
                    raise self._error(keys, complaint, selector)

    def _rule_tables(self, tables: object) -> dict[str, dict[str, Any]]:
        if not isinstance(tables, dict):
            raise self._error(("rules",), "'rules' must hold one table per rule")
        found: dict[str, dict[str, Any]] = {}
        for selector, table in tables.items():
            rule = self._all_rules().by_name(selector)
            if rule is None:
                names = (known.name for known in self._all_rules().rules.values())
                hint = did_you_mean(selector, names)
                raise self._error(("rules", selector), f"unknown rule {selector!r}{hint}")
            found[rule.name] = self._rule_table(selector, rule, table)
        return found

    def _rule_table(self, selector: str, rule: type[Rule], table: object) -> dict[str, Any]:
        if not isinstance(table, dict):
            raise self._error(("rules", selector), f"'rules.{selector}' must be a table")
        options: dict[str, Any] = {}
        for key, value in table.items():
            keys = ("rules", selector, key)
            if key not in rule.options:
                hint = did_you_mean(key, rule.options) or (
                    "" if rule.options else " (it has no options)"
                )
                raise self._error(keys, f"unknown option {key!r} of {rule.name}{hint}")
            options[key] = self._value(keys, value, _like(rule.options[key].default))
        return options


def _like(default: bool | int | float | str) -> Callable[[object, Path], object]:
    def read(value: object, folder: Path) -> object:
        if isinstance(default, bool):
            return _boolean(value, folder)
        if isinstance(default, str):
            return _string(value, folder)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _BadValueError(f"must be a number, not {_shown(value)}")
        if isinstance(default, int) and not isinstance(value, int):
            raise _BadValueError(f"must be a whole number, not {value!r}")
        return type(default)(value)

    return read


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list) else repr(value)


def _string(value: object, folder: Path) -> str:
    if not isinstance(value, str):
        raise _BadValueError(f"must be a string, not {_shown(value)}")
    return value


def _boolean(value: object, folder: Path) -> bool:
    if not isinstance(value, bool):
        raise _BadValueError(f"must be true or false, not {_shown(value)}")
    return value


def _string_list(value: object, folder: Path) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _BadValueError(f"must be a list of strings, not {_shown(value)}")
    for item in value:
        if not isinstance(item, str):
            raise _BadValueError(f"must hold strings only, not {_shown(item)}")
    return tuple(value)


def _lists_by_pattern(value: object, folder: Path) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise _BadValueError(f"must be a table of lists of strings, not {_shown(value)}")
    return {pattern: _string_list(selectors, folder) for pattern, selectors in value.items()}


def _path_text(value: object, folder: Path) -> str:
    text = _string(value, folder)
    if not text:
        raise _BadValueError("must name a file, not ''")
    if "\0" in text:
        raise _BadValueError("must name a file, not hold NUL characters")
    return text


def _path(value: object, folder: Path) -> Path:
    text = _path_text(value, folder)
    try:
        return folder / Path(text).expanduser()
    except RuntimeError as error:
        raise _BadValueError(f"names the home of an unknown user: {text!r}", text) from error


def _folder_below(value: object, folder: Path) -> Path:
    """A folder that memlint may write to: one that the file's own folder holds."""
    path = _path(value, folder)
    try:
        below = path.resolve().relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # out of reach, links in a circle, elsewhere
        below = Path()
    if below == Path():
        text = str(value)
        raise _BadValueError(
            f"must lie below the configuration file, not be {text!r}; "
            "--cache-dir may name any folder",
            text,
        )
    return path


_LARGEST = 2**40


def _positive(value: object, folder: Path) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise _BadValueError(f"must be a whole number above zero, not {_shown(value)}")
    if value > _LARGEST:
        raise _BadValueError(f"must not be above {_LARGEST}")
    return value


def _version(value: object, folder: Path) -> str:
    text = _string(value, folder)
    if re.fullmatch(r"\d+(\.\d+){0,2}", text) is None:
        raise _BadValueError(f"must be a version such as '2.4', not {text!r}", text)
    return text


def one_of(value: object, choices: Sequence[str]) -> str:
    """The value, if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        hint = did_you_mean(value, choices) if isinstance(value, str) else ""
        listed = ", ".join(choices)
        at = value if isinstance(value, str) else None
        raise _BadValueError(f"must be one of {listed}, not {_shown(value)}{hint}", at)
    return value


_Member = TypeVar("_Member", bound=enum.Enum)


def _member(kind: type[_Member]) -> Callable[[object, Path], _Member]:
    return lambda value, folder: kind(one_of(value, [member.value for member in kind]))


DEVICES = ("auto", "cuda", "cpu")
SEVERITIES = tuple(severity.value for severity in Severity)
CONFIDENCES = tuple(confidence.value for confidence in Confidence)


KEYS: Mapping[str, Key] = {
    "select": Key("select", _string_list, "The rules that run, instead of those on by default."),
    "extend-select": Key("extend_select", _string_list, "Rules that run as well."),
    "ignore": Key("ignore", _string_list, "Rules that do not run."),
    "per-file-ignores": Key(
        "per_file_ignores",
        _lists_by_pattern,
        "Rules that do not run in files matching a pattern, written as in a .gitignore file.",
    ),
    "exclude": Key(
        "exclude", _string_list, "Patterns of paths to leave out, instead of the default ones."
    ),
    "extend-exclude": Key(
        "extend_exclude", _string_list, "Patterns of paths to leave out as well."
    ),
    "force-exclude": Key(
        "force_exclude", _boolean, "Leave out excluded files even if they are named one by one."
    ),
    "respect-gitignore": Key(
        "respect_gitignore", _boolean, "Leave out files that .gitignore files name."
    ),
    "fail-level": Key(
        "fail_level", _member(Severity), "The lowest severity that makes the exit status 1."
    ),
    "min-confidence": Key(
        "min_confidence", _member(Confidence), "The lowest confidence that is reported."
    ),
    "target-device": Key(
        "target_device",
        lambda value, folder: one_of(value, DEVICES),
        "Where the code is meant to run; `auto` goes by what the code says.",
    ),
    "target-torch": Key("target_torch", _version, "The oldest PyTorch the code supports."),
    "target-numpy": Key("target_numpy", _version, "The oldest NumPy the code supports."),
    "target-python": Key("target_python", _version, "The oldest Python the code supports."),
    "max-file-size": Key(
        "max_file_size", _positive, "Files of more bytes than this are skipped, with a notice."
    ),
    "baseline": Key("baseline", _path, "A file of findings that are not reported again."),
    "cache-dir": Key(
        "cache_dir", _folder_below, "Where results are cached, below the configuration file."
    ),
}
