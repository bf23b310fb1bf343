"""The ratios that ``memlint bench --save`` keeps in the user's cache folder: a JSON file for each
machine with its versions, as ``memlint/schemas/measured.schema.json`` describes it.

Nothing here imports what benches need."""

from __future__ import annotations

import json
import math
import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memlint.bench.collect import RuleBench
from memlint.bench.json_report import row_object
from memlint.bench.machine import Machine
from memlint.bench.results import Row, Session
from memlint.schemas.validation import SchemaError, schema, validate

VERSION = 1
_FOLDER = "measured"
_SAME = ("bench", "variant", "size", "dtype", "device", "threads")


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows that are kept of a machine; ``complaint`` says what is wrong with their file."""

    rows: tuple[Mapping[str, Any], ...] = ()
    complaint: str = ""


def store_folder(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Where ratios are kept.  Raises ``OSError`` where the user has no home."""
    if platform == "win32" and environment.get("LOCALAPPDATA"):
        return Path(environment["LOCALAPPDATA"], "memlint", _FOLDER)
    told = environment.get("XDG_CACHE_HOME", "")
    if platform != "win32" and os.path.isabs(told):
        return Path(told, "memlint", _FOLDER)
    try:
        home = Path.home()
    except RuntimeError as error:
        raise OSError(str(error)) from error
    caches = home / "Library/Caches" if platform == "darwin" else home / ".cache"
    return caches / "memlint" / _FOLDER


def measured_rows(session: Session, benches: Iterable[RuleBench]) -> list[dict[str, Any]]:
    """What a session measured of rules, as it is kept."""
    declared = {(one.rule.name, one.variant): one.declared for one in benches}
    found = []
    for row in (row for outcome in session.outcomes if outcome.code for row in outcome.rows):
        one = declared.get((row.bench, row.variant))
        is_quick = one is not None and one.quick and row.size == one.sizes.quick
        if _is_finite(row):
            found.append({"date": session.date, "quick": is_quick, **row_object(row)})
    return found


def kept(machine: Machine) -> Kept:
    """What is kept of a machine with its versions; raises nothing."""
    try:
        path = _path(machine)
        # Of a pipe or a device there may be no end.
        if not stat.S_ISREG(path.stat().st_mode):
            return Kept(complaint=f"{path}: not what memlint keeps: no regular file")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Kept()
    except (OSError, ValueError) as error:
        return Kept(complaint=f"the kept ratios cannot be read: {error}")
    try:
        document = json.loads(text)
        validate(document, schema("measured"))
    except SchemaError as error:
        version = document.get("version") if isinstance(document, dict) else None
        if version != VERSION and isinstance(version, int):
            return Kept(complaint=f"{path}: kept by another version of memlint")
        return Kept(complaint=f"{path}: not what memlint keeps: {error}")
    except (ValueError, RecursionError):
        return Kept(complaint=f"{path}: not what memlint keeps: no JSON")
    if document["machine"]["key"] != machine.key:
        return Kept(complaint=f"{path}: kept of another machine")
    return Kept(tuple(document["rows"]))


def others_are_kept() -> bool:
    """Whether anything is kept, of whichever machine and versions."""
    try:
        return any(store_folder().glob("*.json"))
    except OSError:
        return False


def keep(machine: Machine, rows: Sequence[Mapping[str, Any]]) -> tuple[Path, str]:
    """Add rows to those that are kept of a machine, in place of older ones of the same.

    Returns the file and what was wrong with the one that it replaces.  Raises ``OSError``; the
    file is then as it was.
    """
    before = kept(machine)
    merged = {_identity(row): row for row in before.rows}
    for row in rows:
        merged[_identity(row)] = row
    document = {
        "version": VERSION,
        "machine": {**asdict(machine), "key": machine.key},
        "rows": list(merged.values()),
    }
    path = _path(machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, json.dumps(document, indent=1, allow_nan=False) + "\n")
    return path, before.complaint


def _path(machine: Machine) -> Path:
    return store_folder() / f"{machine.key}.json"


def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _SAME)


def _is_finite(row: Row) -> bool:
    return all(math.isfinite(one) for one in asdict(row).values() if isinstance(one, float))


def _write(path: Path, text: str) -> None:
    """All of it or nothing, whatever happens meanwhile."""
    temporary = path.with_name(f"{path.name}.{os.urandom(8).hex()}.tmp")
    try:
        with temporary.open("x", encoding="ascii") as file:
            file.write(text)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
