"""From the paths of a command line to the files to be linted.

Folders are listed once each; a file costs one ``stat`` and a few comparisons.  Folders
that are symbolic links are not followed, unless they were named by the user.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import NamedTuple

from memlint.config import Settings
from memlint.findings import FileError
from memlint.late_dataclass import dataclass
from memlint.source.excludes import Excludes
from memlint.source.gitignore import IgnorePatterns

SUFFIXES = (".py", ".ipynb")
_CONFIG_NAMES = frozenset({"memlint.toml", "pyproject.toml"})
_EDITOR_LOCK = ".#"


class Target(NamedTuple):
    """A file to be linted.

    ``path`` is what the user is shown and what is opened: relative to the working
    directory, with forward slashes, undecodable bytes as surrogates.  ``inside`` is the
    path relative to ``settings.root``.
    """

    path: str
    inside: str
    settings: Settings
    size: int
    mtime_ns: int


@dataclass(slots=True)
class Discovery:
    """The files found, by path, and what could not be looked at."""

    targets: list[Target] = field(default_factory=list)
    errors: list[FileError] = field(default_factory=list)


class _Level(NamedTuple):
    """One ignore file above an entry: what to cut from the entry's path, what to put before."""

    patterns: IgnorePatterns
    lead: str
    cut: int


class _Folder(NamedTuple):
    prefix: str
    inside: str
    settings: Settings
    excludes: Excludes
    levels: tuple[_Level, ...]
    in_repository: bool


def discover(paths: Iterable[str | Path], settings_for: Callable[[Path], Settings]) -> Discovery:
    """Find the Python files and notebooks at or below ``paths``.

    ``settings_for`` gives the settings that govern a folder's files.  It is asked once for
    each path, and once for each folder that holds a configuration file.
    """
    walk = _Walk(settings_for)
    for path in paths:
        walk.start(os.fspath(path))
    return walk.result()


def stdin_target(name: str, size: int, settings_for: Callable[[Path], Settings]) -> Target | None:
    """A program read from standard input, called ``name``; ``None`` if it is excluded."""
    settings = settings_for(Path(os.path.dirname(name) or "."))
    inside = path_inside(name, settings.root)
    if settings.force_exclude and Excludes(settings).covers_any_part(inside):
        return None
    return Target(name, inside, settings, size, 0)


def shown_path(path: str) -> str:
    """A path as the user is shown it: relative to the working directory, forward slashes."""
    shown = os.path.normpath(path)
    if ".." in path and os.path.realpath(path) != os.path.realpath(shown):
        shown = os.path.realpath(path)  # what is above a linked folder is not what is before it
    if os.path.isabs(shown):
        try:
            shown = os.path.relpath(shown)
        except ValueError:  # another drive
            return shown.replace(os.sep, "/")
    return shown.replace(os.sep, "/")


def path_inside(path: str, root: Path) -> str:
    """A path relative to a settings' root, with forward slashes."""
    try:
        return os.path.relpath(os.path.abspath(path), root).replace(os.sep, "/")
    except ValueError:  # another drive
        return os.path.abspath(path).replace(os.sep, "/")


def os_error_text(error: OSError) -> str:
    """What went wrong, without the path, which is shown beside it."""
    return (error.strerror or str(error)).lower()


class _Walk:
    def __init__(self, settings_for: Callable[[Path], Settings]) -> None:
        self._settings_for = settings_for
        self._excludes: dict[int, Excludes] = {}
        self._targets: dict[str, Target] = {}
        self._links: list[Target] = []
        self._errors: dict[str, FileError] = {}

    def start(self, path: str) -> None:
        if not path:
            self._errors[path] = FileError("''", "an empty path names nothing")
            return
        shown = shown_path(path)
        try:
            status = os.stat(shown)
        except (OSError, ValueError) as error:
            self._fail(shown, error)
            return
        if stat.S_ISDIR(status.st_mode):
            self._start_folder(shown)
        elif stat.S_ISREG(status.st_mode):
            self._start_file(shown, status)
        else:
            self._errors[shown] = FileError(shown, "not a regular file")

    def result(self) -> Discovery:
        known = {os.path.realpath(path) for path in self._targets} if self._links else set()
        for link in self._links:
            if (real := os.path.realpath(link.path)) not in known:
                known.add(real)
                self._targets[link.path] = link
        targets = [self._targets[path] for path in sorted(self._targets)]
        return Discovery(targets, [self._errors[path] for path in sorted(self._errors)])

    def _start_file(self, shown: str, status: os.stat_result) -> None:
        settings = self._settings_for(Path(os.path.dirname(shown) or "."))
        inside = path_inside(shown, settings.root)
        if settings.force_exclude and self._excludes_of(settings).covers_any_part(inside):
            return
        target = Target(shown, inside, settings, status.st_size, status.st_mtime_ns)
        self._targets[shown] = target

    def _start_folder(self, shown: str) -> None:
        settings = self._settings_for(Path(shown))
        inside = path_inside(shown, settings.root)
        excludes = self._excludes_of(settings)
        if settings.force_exclude and inside != "." and excludes.covers_any_part(inside):
            return
        prefix = "" if shown == "." else shown.rstrip("/") + "/"
        levels: tuple[_Level, ...] = ()
        in_repository = False
        if settings.respect_gitignore:
            levels, in_repository = self._levels_above(shown, len(prefix))
        inside = "" if inside == "." else inside + "/"
        pending = [_Folder(prefix, inside, settings, excludes, levels, in_repository)]
        while pending:
            pending.extend(self._list(pending.pop()))

    def _excludes_of(self, settings: Settings) -> Excludes:
        if id(settings) not in self._excludes:
            self._excludes[id(settings)] = Excludes(settings)
        return self._excludes[id(settings)]

    def _list(self, folder: _Folder) -> Iterator[_Folder]:
        try:
            with os.scandir(folder.prefix or ".") as listing:
                entries = list(listing)
        except OSError as error:
            self._fail(folder.prefix.rstrip("/") or ".", error)
            return
        names = {entry.name for entry in entries}
        folder = self._entered(folder, names)
        prefix, inside, settings, excludes, levels, _ = folder
        excluded_names, has_patterns = excludes.names, excludes.has_patterns
        targets = self._targets
        for entry in entries:
            name = entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not name.endswith(SUFFIXES):
                continue
            path = prefix + name
            if name in excluded_names:
                continue
            if has_patterns and excludes.matches(inside + name, name, is_folder):
                continue
            if levels and _ignored(levels, path, name, is_folder):
                continue
            if is_folder:
                below = folder._replace(prefix=f"{path}/", inside=f"{inside}{name}/")
                yield below if not path.startswith("../") else self._from_here(below)
                continue
            try:
                status = entry.stat()
            except OSError as error:
                if not name.startswith(_EDITOR_LOCK):
                    self._fail(path, error, is_link=entry.is_symlink())
                continue
            if not stat.S_ISREG(status.st_mode):
                continue
            target = Target(path, inside + name, settings, status.st_size, status.st_mtime_ns)
            if entry.is_symlink():
                self._links.append(target)
            else:
                targets[path] = target

    def _from_here(self, folder: _Folder) -> _Folder:
        """The folder as seen from the working directory, if the walk has come back to it."""
        ups = folder.prefix.count("../")
        here = os.getcwd().split(os.sep)
        if ups >= len(here) or folder.prefix != f"{'../' * ups}{here[-ups]}/":
            return folder
        prefix = "../" * (ups - 1)
        levels = tuple(
            _Level(patterns, lead + folder.prefix[cut:], len(prefix))
            for patterns, lead, cut in folder.levels
        )
        return folder._replace(prefix=prefix, levels=levels)

    def _entered(self, folder: _Folder, names: set[str]) -> _Folder:
        """The folder with the configuration and the ignore files that lie in it."""
        if not _CONFIG_NAMES.isdisjoint(names):
            settings = self._settings_for(Path(folder.prefix or "."))
            if settings is not folder.settings:
                inside = path_inside(folder.prefix or ".", settings.root)
                folder = folder._replace(
                    settings=settings,
                    excludes=self._excludes_of(settings),
                    inside="" if inside == "." else f"{inside}/",
                )
        if not folder.settings.respect_gitignore:
            return folder._replace(levels=())
        prefix = folder.prefix
        if ".git" in names:
            folder = folder._replace(levels=self._own_excludes(prefix, prefix), in_repository=True)
        if folder.in_repository and ".gitignore" in names:
            patterns = self._read_patterns(f"{prefix}.gitignore")
            if patterns:
                level = _Level(patterns, "", len(prefix))
                folder = folder._replace(levels=(*folder.levels, level))
        return folder

    def _levels_above(self, shown: str, cut: int) -> tuple[tuple[_Level, ...], bool]:
        """The ignore files of the repository that hold above a folder, outermost first."""
        start = os.path.abspath(shown)
        chain = [start]
        while not os.path.exists(os.path.join(chain[-1], ".git")):
            above = os.path.dirname(chain[-1])
            if above == chain[-1]:
                return (), False
            chain.append(above)
        levels: list[_Level] = []
        for above in reversed(chain[1:]):
            lead = os.path.relpath(start, above).replace(os.sep, "/") + "/"
            if above == chain[-1]:
                levels += self._own_excludes(f"{above}/", "", lead, cut)
            patterns = self._read_patterns(os.path.join(above, ".gitignore"))
            if patterns:
                levels.append(_Level(patterns, lead, cut))
        return tuple(levels), True

    def _own_excludes(
        self, folder: str, prefix: str, lead: str = "", cut: int | None = None
    ) -> tuple[_Level, ...]:
        """The patterns of a repository's own ``info/exclude``."""
        patterns = self._read_patterns(f"{folder}.git/info/exclude")
        return (_Level(patterns, lead, len(prefix) if cut is None else cut),) if patterns else ()

    def _read_patterns(self, path: str) -> IgnorePatterns | None:
        if not os.path.isfile(path):
            return None
        try:
            with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
                return IgnorePatterns(file)
        except OSError as error:
            self._fail(shown_path(path), error)
            return None

    def _fail(self, path: str, error: Exception, is_link: bool = False) -> None:
        text = os_error_text(error) if isinstance(error, OSError) else str(error)
        if is_link or os.path.islink(path):
            text = f"broken symbolic link: {text}"
        self._errors[path] = FileError(path, f"cannot be read: {text}")


def _ignored(levels: Sequence[_Level], path: str, name: str, is_folder: bool) -> bool:
    for patterns, lead, cut in reversed(levels):
        verdict = patterns.ignores(lead + path[cut:], name, is_folder)
        if verdict is not None:
            return verdict
    return False
