"""Results of earlier runs, by path, size and time, then by content.

One file, a checksum and JSON, holds the results of all files under one configuration; its
name is a hash of whatever else the results depend on: the rules and settings, and the code
of memlint and of the rule packs.  A damaged file is ignored and written anew; two runs at
once may lose each other's entries, never mix them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import memlint
from memlint.config import Settings
from memlint.late_pattern import late_pattern
from memlint.linter.codec import decode_result, encode_result
from memlint.linter.file import FileResult
from memlint.rule import Rule, RuleSet
from memlint.source.project import Looked
from memlint.targets import targets_of

CACHE_NAME = ".memlint_cache"
_FORMAT = 3
# A file changed this shortly before it was looked at may change again with the same time.
_SETTLED_NS = 50_000_000
_SUFFIX = ".results.json"
_OWN_NAME = late_pattern(r"[0-9a-f]{32}\.results\.json")
_OWN_FILE = late_pattern(
    r"[0-9a-f]{32}\.results\.json(\.[0-9a-f]+\.tmp)?|CACHEDIR\.TAG|\.gitignore"
)
_KEPT_FILES = 16
_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder holds results of memlint and may be deleted at any time.\n"
)
_DAMAGE = (ValueError, TypeError, KeyError, IndexError, AttributeError)


def cache_directory(settings: Settings) -> Path:
    """Where the results for the files of a configuration are kept."""
    return settings.cache_dir or settings.root / CACHE_NAME


class Cache:
    """The kept results for the files under one configuration.

    Entries are ``[size, mtime_ns, digest, result, followed]``, where ``followed`` are numbers of
    states of other files, each ``[place, size, mtime_ns]``; an entry counts only as long as
    those files are as they were.
    """

    def __init__(self, directory: Path, key: str, root: Path) -> None:
        self._directory, self._root = directory, root
        self._file = directory / f"{key}{_SUFFIX}"
        self._opened_ns = time.time_ns()
        self._entries, self._states, self._pruned_at = _load(self._file)
        self._numbers = {tuple(state): number for number, state in enumerate(self._states)}
        self._true: dict[int, bool] = {}
        self._changed = False
        self._seen = 0

    def lookup(self, inside: str, size: int, mtime_ns: int, path: str) -> FileResult | None:
        """The result of a file whose size and time are the known ones."""
        entry = self._entries.get(inside)
        if entry is None:
            return None
        self._seen += 1
        try:
            if entry[0] != size or entry[1] != mtime_ns or not self._holds(entry[4]):
                return None
            return decode_result(entry[3], path)
        except _DAMAGE:
            return None

    def digest(self, inside: str, path: str) -> str:
        """The digest of the content whose result is kept for a file; empty if there is none."""
        entry = self._entries.get(inside)
        if entry is None:
            return ""
        try:
            decode_result(entry[3], path)
            return str(entry[2]) if self._holds(entry[4]) else ""
        except _DAMAGE:
            return ""

    def renew(
        self, inside: str, size: int, mtime_ns: int, path: str, result: FileResult
    ) -> FileResult:
        """Keep a result; one that says "unchanged" is answered with the one that is kept."""
        if result.unchanged:
            entry = self._entries[inside]
            entry[0], entry[1] = size, self._settled(mtime_ns)
            self._changed = True
            return decode_result(entry[3], path)
        if result.lasting:
            settled = self._settled(mtime_ns)
            followed = [self._number_of(one) for one in result.followed]
            self._entries[inside] = [
                size, settled, result.digest, encode_result(result), followed
            ]  # fmt: skip
            self._changed = True
        elif self._entries.pop(inside, None) is not None:
            self._changed = True
        return result

    def _number_of(self, looked: Looked) -> int:
        place = os.path.relpath(looked.path, self._root)
        state = (place, looked.size, self._settled(looked.mtime_ns))
        number = self._numbers.setdefault(state, len(self._states))
        if number == len(self._states):
            self._states.append(list(state))
        return number

    def _holds(self, followed: list[int]) -> bool:
        """Whether the files that a result depends on are as they were."""
        return all(map(self._is_true, followed))

    def _is_true(self, number: int) -> bool:
        if number not in self._true:
            place, size, mtime_ns = self._states[number]
            try:
                status = os.stat(self._root / place)
                self._true[number] = (status.st_size, status.st_mtime_ns) == (size, mtime_ns)
            except OSError:
                self._true[number] = False
        return self._true[number]

    def _in_use(self) -> list[list[Any]]:
        """The states that entries still speak of, which are numbered anew."""
        used = sorted({number for entry in self._entries.values() for number in entry[4]})
        numbers = {old: new for new, old in enumerate(used)}
        for entry in self._entries.values():
            entry[4] = [numbers[number] for number in entry[4]]
        return [self._states[number] for number in used]

    def save(self) -> str | None:
        """Write what has changed.  Returns what went wrong, if anything."""
        if not self._changed:
            return None
        if len(self._entries) > 2 * self._pruned_at + 1000:
            self._prune()
        self._states = self._in_use()
        self._numbers = {tuple(state): number for number, state in enumerate(self._states)}
        kept = [_FORMAT, self._pruned_at, self._entries, self._states]
        text = json.dumps(kept, separators=(",", ":"))
        content = f"{_checksum(text.encode())}\n{text}\n"
        try:
            if self._directory.is_symlink():
                return f"the cache is not written: {self._directory} is a symbolic link"
            _prepare(self._directory)
            # Not by the process's number: two machines may share the folder.
            temporary = self._file.with_name(f"{self._file.name}.{os.urandom(8).hex()}.tmp")
            try:
                with temporary.open("x", encoding="ascii") as file:
                    file.write(content)
                os.replace(temporary, self._file)
            finally:
                temporary.unlink(missing_ok=True)
            _drop_oldest(self._directory)
        except OSError as error:
            return f"the cache cannot be written: {error}"
        return None

    def _settled(self, mtime_ns: int) -> int:
        return mtime_ns if mtime_ns < self._opened_ns - _SETTLED_NS else 0

    def _prune(self) -> None:
        self._entries = {p: e for p, e in self._entries.items() if os.path.exists(self._root / p)}
        self._pruned_at = len(self._entries)


def _load(file: Path) -> tuple[dict[str, list[Any]], list[list[Any]], int]:
    try:
        checksum, _, text = file.read_bytes().partition(b"\n")
        text = text.rstrip(b"\n")
        if checksum.decode("ascii") != _checksum(text):
            return {}, [], 0
        version, pruned_at, entries, states = json.loads(text)
        if version == _FORMAT and isinstance(pruned_at, int) and isinstance(entries, dict):
            return entries, list(states), pruned_at
    except (OSError, ValueError, TypeError, RecursionError):
        pass  # absent, unreadable or damaged: all the same, it is written anew
    return {}, [], 0


def _checksum(text: bytes) -> str:
    """Tells a file with a bit changed here or there from a sound one."""
    return blake2b(text, digest_size=16).hexdigest()


def _prepare(directory: Path) -> None:
    if directory.is_dir():
        return
    directory.mkdir(parents=True, exist_ok=True)
    # Only in a folder of our own: in one that holds other things, they would hide these.
    (directory / "CACHEDIR.TAG").write_text(_TAG, encoding="ascii")
    (directory / ".gitignore").write_text("*\n", encoding="ascii")


def remove_cache(directory: Path) -> bool:
    """Remove a folder's results, and the folder if it is of our own and nothing else is in it.

    Returns whether it was of our own.
    """
    tag = directory / "CACHEDIR.TAG"
    if directory.is_symlink() or not tag.is_file() or tag.read_bytes() != _TAG.encode():
        return False
    for file in directory.iterdir():
        if _OWN_FILE.fullmatch(file.name) and not file.is_dir():
            file.unlink(missing_ok=True)
    if not any(directory.iterdir()):
        directory.rmdir()
    return True


def _drop_oldest(directory: Path) -> None:
    files = [file for file in directory.glob(f"*{_SUFFIX}") if _OWN_NAME.fullmatch(file.name)]
    files.sort(key=os.path.getmtime)
    for file in files[:-_KEPT_FILES]:
        file.unlink(missing_ok=True)


def cache_key(settings: Settings, rules: Iterable[type[Rule]], ruleset: RuleSet) -> str:
    """A hash of all that a result depends on besides the file."""
    options: dict[str, Mapping[str, Any]] = {
        name: dict(sorted(table.items())) for name, table in settings.rule_options.items()
    }
    traits = [
        _FORMAT,
        # A folder may be shared by projects whose files have the same names.
        str(settings.root) if settings.cache_dir is not None else "",
        sys.version_info[:3],
        [rule.code for rule in rules],
        sorted(settings.per_file_ignores.items()),
        settings.min_confidence.value,
        settings.target_device,
        targets_of(settings),
        settings.max_file_size,
        sorted(options.items()),
        ruleset.packs,
        [str(error) for error in ruleset.errors],
    ]
    hashed = blake2b(repr(traits).encode("utf-8", "surrogatepass"), digest_size=16)
    hashed.update(memlint.__version__.encode())
    for package in ("memlint", *sorted(package for package, _ in ruleset.packs)):
        _hash_code(package, hashed)
    return hashed.hexdigest()


def _hash_code(package: str, hashed: blake2b) -> None:
    """Take in the state of a package's files: a version alone says little while it is written."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return
    if spec is None or not spec.submodule_search_locations:
        return
    for location in spec.submodule_search_locations:
        for path, status in _code_files(location):
            hashed.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())


def _code_files(location: str) -> list[tuple[str, os.stat_result]]:
    found: list[tuple[str, os.stat_result]] = []
    pending = [location]
    while pending:
        try:
            with os.scandir(pending.pop()) as listing:
                for entry in listing:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    elif entry.name.endswith(".py"):
                        found.append((entry.path[len(location) :], entry.stat()))
        except OSError:
            continue  # what cannot be listed cannot have been imported either
    return sorted(found, key=lambda item: item[0])
