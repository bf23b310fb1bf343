"""The commands that are timed: memlint, its peers, and yardsticks that lint nothing."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.timing import Contender

MEMLINT_COLD = "memlint, cold"
MEMLINT_ONE_JOB = "memlint, cold, one job"
MEMLINT_WARM = "memlint, warm"
MEMLINT_VERSION = "memlint --version"
BARE_PYTHON = "python -c 'pass'"
IMPORT_LIBCST = "python -c 'import libcst'"
WALK = "Python loop that walks and stats"
HOTPATH = "hotpath analyze"
RUFF_COLD = "ruff, cold"
RUFF_WARM = "ruff, warm"
TORCHFIX = "TorchFix"
FIXIT = "Fixit"
FLAKE8 = "flake8 with TorchFix"

RUFF_RULES = "F,B,PERF,NPY"

_WALK_PROGRAM = """
import os, sys
pending, count = [sys.argv[1]], 0
while pending:
    with os.scandir(pending.pop()) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            elif entry.name.endswith(".py"):
                entry.stat()
                count += 1
"""


@dataclass(frozen=True, slots=True)
class Peers:
    """The virtual environment that the peers are installed in."""

    directory: Path | None

    def find(self, program: str) -> str | None:
        """The path of ``program``, or ``None`` where it is not installed."""
        if self.directory is None:
            return None
        path = self.directory / "bin" / program
        return str(path) if path.exists() else None


def memlint(name: str, target: Path, *extra: str, prime: bool = False) -> Contender:
    """``memlint check`` on ``target`` with all rules, whatever the configuration there."""
    program = str(Path(sys.executable).with_name("memlint"))
    common = ("check", "--isolated", "--quiet", "--exit-zero", "--select", "ALL")
    # A file that cannot be parsed makes the status 2: in real wheels that is no failed run.
    return Contender(name, (program, *common, *extra, str(target)), accepts=(0, 2), prime=prime)


def memlint_cold(target: Path) -> Contender:
    """memlint without a cache."""
    return memlint(MEMLINT_COLD, target, "--no-cache")


def memlint_one_job(target: Path) -> Contender:
    """memlint without a cache, in one worker."""
    return memlint(MEMLINT_ONE_JOB, target, "--no-cache", "--jobs", "1")


def memlint_warm(target: Path, cache: Path) -> Contender:
    """memlint with a cache that a run before has filled."""
    return memlint(MEMLINT_WARM, target, "--cache-dir", str(cache), prime=True)


def start_up() -> list[Contender]:
    """What it costs to start at all."""
    program = str(Path(sys.executable).with_name("memlint"))
    return [
        Contender(MEMLINT_VERSION, (program, "--version")),
        Contender(BARE_PYTHON, (sys.executable, "-c", "pass")),
        Contender(IMPORT_LIBCST, (sys.executable, "-c", "import libcst")),
    ]


def walk(target: Path) -> Contender:
    """A loop that finds the files below ``target`` and asks for their size and time."""
    return Contender(WALK, (sys.executable, "-c", _WALK_PROGRAM, str(target)))


def fast_peers(peers: Peers, target: Path, cache: Path) -> tuple[list[Contender], list[str]]:
    """The peers that can run on everything, and the names of those that are missing."""
    found: list[Contender] = []
    missing: list[str] = []
    if hotpath := peers.find("hotpath"):
        found.append(Contender(HOTPATH, (hotpath, "analyze", str(target))))
    else:
        missing.append(HOTPATH)
    if ruff := peers.find("ruff"):
        common = (ruff, "check", "--isolated", "-q", "--exit-zero", "--select", RUFF_RULES)
        found.append(Contender(RUFF_COLD, (*common, "--no-cache", str(target))))
        warm = (*common, "--cache-dir", str(cache), str(target))
        found.append(Contender(RUFF_WARM, warm, prime=True))
    else:
        missing += [RUFF_COLD, RUFF_WARM]
    return found, missing


def slow_peers(peers: Peers, target: Path, rounds: int) -> tuple[list[Contender], list[str]]:
    """The peers that need tens of seconds a megabyte, and the names of the missing ones."""
    table = {
        TORCHFIX: ("torchfix", (), (0, 1)),
        FIXIT: ("fixit", ("lint",), (0, 1, 2, 3)),
        FLAKE8: ("flake8", ("--isolated", "--select", "TOR"), (0, 1)),
    }
    found: list[Contender] = []
    missing: list[str] = []
    for name, (program, options, accepts) in table.items():
        if path := peers.find(program):
            command = (path, *options, str(target))
            found.append(Contender(name, command, accepts=accepts, rounds=rounds))
        else:
            missing.append(name)
    return found, missing
