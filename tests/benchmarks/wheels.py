"""Real code to measure on and to read findings in: published wheels, unpacked.

The versions are pinned, so that a count of findings can be repeated.  ``DEST/all`` holds
the projects that speed is measured on, ``DEST/small`` the two small ones of them, and
``DEST/compiled`` projects with much Numba code, which the others hardly have; ``DEST`` must
lie outside the repository.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

VERSIONS = {
    "accelerate": "1.15.0",
    "diffusers": "0.42.1",
    "kornia": "0.9.0",
    "lightning": "2.6.6",
    "monai": "1.6.1",
    "segmentation-models-pytorch": "0.6.0",
    "timm": "1.0.31",
    "torch-geometric": "2.8.1",
    "transformers": "5.24.0",
    "ultralytics": "8.4.190",
}
COMPILED = {
    "aeon": "1.6.0",
    "numbagg": "0.9.6",
    "pyod": "3.6.7",
    "sparse": "0.19.3",
    "stumpy": "1.14.1",
    "tslearn": "0.10.0",
    "vectorbt": "1.2.0",
}
SMALL = ("accelerate", "segmentation-models-pytorch")


@dataclass(frozen=True, slots=True)
class Corpus:
    """A directory of Python files, and how much is in it."""

    name: str
    path: Path
    files: int
    size: int

    @property
    def megabytes(self) -> float:
        """The size in units of a million bytes."""
        return self.size / 1e6


def python_files(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Every Python file below ``root`` with its status, by one plain walk."""
    pending = [str(root)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif entry.name.endswith(".py"):
                    yield entry.path, entry.stat()


def corpus(dest: Path, name: str) -> Corpus:
    """The unpacked corpus ``name`` (``small`` or ``all``) below ``dest``."""
    root = dest / name
    if not root.is_dir():
        raise SystemExit(f"{root} is missing: run python -m tests.benchmarks.wheels --dest {dest}")
    sizes = [status.st_size for _, status in python_files(root)]
    return Corpus(name, root, len(sizes), sum(sizes))


def _download(project: str, version: str, downloads: Path) -> Path:
    pattern = f"{project.replace('-', '_')}-{version}-*.whl"
    if not list(downloads.glob(pattern)):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary", ":all:", "--ignore-requires-python"]
        command += ["--dest", str(downloads), f"{project}=={version}"]
        subprocess.run(command, check=True)
    return next(downloads.glob(pattern))


def _unpack(wheel: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)


def fetch(dest: Path, projects: Sequence[str]) -> None:
    """Download the wheels of ``projects`` that are not there yet, and unpack them."""
    downloads = dest / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    for project in projects:
        known = VERSIONS if project in VERSIONS else COMPILED
        wheel = _download(project, known[project], downloads)
        _unpack(wheel, dest / ("all" if known is VERSIONS else "compiled") / project)
        if project in SMALL:
            _unpack(wheel, dest / "small" / project)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fetch the wheels and print what is in them."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.wheels", description=__doc__)
    parser.add_argument("--dest", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--only", action="append", choices=sorted({**VERSIONS, **COMPILED}), metavar="PROJECT"
    )
    options = parser.parse_args(arguments)
    dest = options.dest.resolve()
    if dest.is_relative_to(REPOSITORY):
        parser.error("the wheels must be unpacked outside the repository")
    fetch(dest, options.only or sorted({**VERSIONS, **COMPILED}))
    for name in ("small", "all", "compiled"):
        if (dest / name).is_dir():
            found = corpus(dest, name)
            print(f"{name}: {found.files} Python files, {found.megabytes:.1f} MB in {found.path}")


if __name__ == "__main__":
    main()
