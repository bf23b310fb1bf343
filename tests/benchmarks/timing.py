"""Run commands in random turns and keep what each run cost.

Contenders that are compared run in the same rounds, in a new random order each round, so
that a slow moment of the machine falls on all of them.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


class ContenderError(Exception):
    """A command ended with a status that it should not have ended with."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A command to be timed.

    ``accepts`` are the exit statuses of a run that did its work; ``rounds`` limits how
    often a slow one runs; ``prime`` says that one run before the first round fills its
    cache.
    """

    name: str
    command: tuple[str, ...]
    accepts: tuple[int, ...] = (0,)
    rounds: int | None = None
    prime: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One run: wall time, processor time of all its processes, and the largest of them.

    ``peak`` is the resident size in bytes of the largest single process, which includes
    the pages that it shares with its parent.
    """

    seconds: float
    cpu_seconds: float
    peak: int


@dataclass(frozen=True, slots=True)
class Timing:
    """All runs of one contender."""

    name: str
    runs: tuple[Run, ...]

    @property
    def median(self) -> float:
        """The median wall time in seconds."""
        return statistics.median(run.seconds for run in self.runs)

    @property
    def fastest(self) -> float:
        """The shortest wall time in seconds."""
        return min(run.seconds for run in self.runs)

    @property
    def slowest(self) -> float:
        """The longest wall time in seconds."""
        return max(run.seconds for run in self.runs)

    @property
    def cpu(self) -> float:
        """The median processor time in seconds, all processes together."""
        return statistics.median(run.cpu_seconds for run in self.runs)

    @property
    def peak(self) -> int:
        """The largest resident size of any process in any run, in bytes."""
        return max(run.peak for run in self.runs)


Timings = Mapping[str, Timing]


def run_once(contender: Contender, directory: Path) -> Run:
    """Run a contender in ``directory``, with its output thrown away."""
    with tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(
            contender.command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in contender.accepts:
            errors.seek(0)
            tail = errors.read().decode(errors="replace")[-2000:]
            command = " ".join(contender.command)
            raise ContenderError(f"status {process.returncode} from: {command}\n{tail}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def interleave(
    contenders: Sequence[Contender],
    *,
    rounds: int,
    directory: Path,
    seed: int,
    say: Callable[[str], None],
) -> dict[str, Timing]:
    """Time all contenders, each once a round, in a new random order every round."""
    order = random.Random(seed)
    for contender in contenders:
        if contender.prime:
            run_once(contender, directory)
    runs: dict[str, list[Run]] = {contender.name: [] for contender in contenders}
    for number in range(rounds):
        turn = [c for c in contenders if c.rounds is None or number < c.rounds]
        order.shuffle(turn)
        for contender in turn:
            run = run_once(contender, directory)
            say(f"  round {number + 1}: {contender.name}: {run.seconds:.3f} s")
            runs[contender.name].append(run)
    return {name: Timing(name, tuple(those)) for name, those in runs.items()}
