"""New content for a file: all of it or none, whatever happens meanwhile."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class FileChangedError(Exception):
    """A file that is not what it was when it was read."""


def replace_content(path: str, before: bytes, after: bytes) -> None:
    """Give a file that holds ``before`` the content ``after``, keeping its mode and owner.

    Where ``path`` is a symbolic link, the file that it leads to is replaced.  Raises
    ``OSError`` or :class:`FileChangedError`; the file is then as it was.
    """
    target = Path(os.path.realpath(path))
    if not os.access(target, os.W_OK):
        # Its folder would let the file be replaced, but who made it read-only meant it.
        raise PermissionError(13, "Permission denied", str(target))
    status = target.stat()
    temporary = target.with_name(f".{target.name[:200]}.{os.urandom(8).hex()}.memlint")
    try:
        with temporary.open("xb") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        _like(temporary, status)
        if target.read_bytes() != before:
            raise FileChangedError(str(target))
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _like(path: Path, status: os.stat_result) -> None:
    """Make a file's owner and mode those of another; only who may do so needs to."""
    now = path.stat()
    if hasattr(os, "chown") and (now.st_uid, now.st_gid) != (status.st_uid, status.st_gid):
        os.chown(path, status.st_uid, status.st_gid)
    # Last, as a change of owner takes bits away.
    os.chmod(path, stat.S_IMODE(status.st_mode))
