"""The ``exclude`` settings, asked about folders and files by name and path."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from memlint.config import Settings
from memlint.late_pattern import late_pattern
from memlint.source.gitignore import IgnorePatterns

DEFAULT_EXCLUDES = (
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".hg",
    ".ipynb_checkpoints",
    ".memlint_cache",
    ".mypy_cache",
    ".nox",
    ".pants.d",
    ".pyenv",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "__pycache__",
    "__pypackages__",
    "_build",
    "build",
    "buck-out",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
)
_PLAIN_NAME = late_pattern(r"[^*?\[\]!#\\/]+\Z")


class Excludes:
    """The exclude patterns of one configuration, relative to its root.

    Patterns are written as in a .gitignore file.  An empty ``exclude`` setting stands for
    the default list, which ``extend-exclude`` adds to.
    """

    __slots__ = ("_patterns", "names")

    def __init__(self, settings: Settings) -> None:
        patterns = (*(settings.exclude or DEFAULT_EXCLUDES), *settings.extend_exclude)
        plain = {p.rstrip("/") for p in patterns if _PLAIN_NAME.match(p)}
        globs = [_relative(p, settings.root.as_posix()) for p in patterns if p not in plain]
        self.names = frozenset(plain)
        self._patterns = IgnorePatterns(globs) if globs else None

    def covers(self, path: str, name: str, is_folder: bool) -> bool:
        """Whether an entry itself is excluded; ``path`` is relative to the settings' root."""
        return name in self.names or self.matches(path, name, is_folder)

    def matches(self, path: str, name: str, is_folder: bool) -> bool:
        """The same, but for the plain names of ``names``."""
        if self._patterns is None:
            return False
        return self._patterns.ignores(path, name, is_folder) is True

    @property
    def has_patterns(self) -> bool:
        """Whether there is more to ask than ``names``."""
        return self._patterns is not None

    def covers_any_part(self, path: str) -> bool:
        """Whether a file, or a folder that it lies in, is excluded."""
        pure = PurePosixPath(path)
        folders: Iterable[PurePosixPath] = [p for p in pure.parents if p.name]
        return self.covers(path, pure.name, is_folder=False) or any(
            self.covers(str(folder), folder.name, is_folder=True) for folder in folders
        )


def _relative(pattern: str, root: str) -> str:
    if pattern.startswith(f"{root}/"):
        return pattern[len(root) :]
    return pattern[1:] if pattern.startswith("./") else pattern
