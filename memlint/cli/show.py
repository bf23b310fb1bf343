"""Settings as the text of a configuration file."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memlint.config import Settings
from memlint.config_keys import KEYS

_WHEN_EMPTY = {
    "select": "the rules that are on by default",
    "exclude": "the default patterns",
}


def settings_text(settings: Settings) -> str:
    """The settings in TOML, with the folder they hold for as a comment."""
    rows = [f"# root: {settings.root.as_posix()}"]
    tables: list[str] = []
    for key, entry in KEYS.items():
        value = getattr(settings, entry.setting)
        if isinstance(value, Mapping):
            tables += _table(key, value)
        elif value is None:
            rows.append(f"# {key} is not set")
        elif value == () and key in _WHEN_EMPTY:
            rows.append(f"# {key}: {_WHEN_EMPTY[key]}")
        else:
            rows.append(f"{key} = {_value(value)}")
    for name, options in settings.rule_options.items():
        tables += _table(f"rules.{name}", options)
    return "\n".join([*rows, *tables]) + "\n"


def _table(name: str, values: Mapping[str, Any]) -> list[str]:
    if not values:
        return []
    rows = [f"{json.dumps(key)} = {_value(value)}" for key, value in values.items()]
    return ["", f"[{name}]", *rows]


def _value(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return json.dumps(value.value)
    if isinstance(value, Path):
        return json.dumps(value.as_posix())
    if isinstance(value, tuple):
        return "[" + ", ".join(json.dumps(item) for item in value) + "]"
    return json.dumps(value)
