"""Small programs with faults that a trace shows, and sound ones, and what is to be found there.

A line marked ``# expect-trace: CODE`` is to be found, one marked ``# may-trace: CODE`` may be, so
long as its verdict is not "confirmed": it is there, and does not pay.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from memlint.tracer.trace import Trace

FOLDER = Path(__file__).with_name("replay_programs")
_MARK = re.compile(r"# (expect|may)-trace: (MEM\d+(?:, MEM\d+)*)")

Place = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Program:
    """A program, the places (line, code) that are to be found in it, and those that may be."""

    path: Path
    expected: frozenset[Place]
    allowed: frozenset[Place]

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.stem


def programs(folder: Path = FOLDER) -> list[Program]:
    """All programs of a folder, by name."""
    return [_program(path) for path in sorted(folder.glob("*.py"))]


def _program(path: Path) -> Program:
    marks = list(_marks(path.read_text("utf-8")))
    return Program(
        path,
        frozenset(place for kind, place in marks if kind == "expect"),
        frozenset(place for kind, place in marks if kind == "may"),
    )


def _marks(text: str) -> Iterator[tuple[str, Place]]:
    for number, line in enumerate(text.splitlines(), start=1):
        for kind, codes in _MARK.findall(line):
            for code in codes.split(", "):
                yield kind, (number, code)


def traced(program: Program, *, replay: bool, budget: float = 5.0) -> Trace:
    """A program run under the tracer; the number of threads is what it was before, afterwards."""
    threads = torch.get_num_threads()
    torch.manual_seed(0)
    try:
        with Trace(replay=replay, replay_budget=budget, quiet=True) as trace:
            runpy.run_path(str(program.path), run_name="__main__")
    finally:
        torch.set_num_threads(threads)
    return trace
