"""Run the programs whose faults a trace shows, and print what was found and measured.

Says of each finding whether it stands at the right line, how much longer the operation takes than
the alternative with its interval, the same with the conversion charged, and the verdict.  Ends with
1 if something was missed, or found and confirmed where nothing is wrong.

With ``--equal N`` operations are timed N times against the very same ones instead: a difference
that is told of them is a false one.

    python -m tests.benchmarks.replayed [NAME ...] [--budget 5] [--json FILE]
    python -m tests.benchmarks.replayed --equal 20
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from memlint.findings import Finding
from memlint.tracer.replay import measure
from memlint.tracer.sightings import Claim
from memlint.tracer.trace import Trace
from tests.benchmarks.traced_programs import Program, programs, traced

_KINDS: tuple[Callable[[torch.Tensor], object], ...] = (
    lambda x: x + x,
    lambda x: torch.softmax(x, -1),
    lambda x: x.sum(1),
    lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
    lambda x: torch.relu(x),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A finding in a program, or one that is missing; ratios are ``None`` if not measured."""

    program: str
    code: str
    line: int
    outcome: str
    verdict: str | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    net_ratio: float | None = None
    ms_per_step: float | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether it was missed, or is no fault at all."""
        return self.outcome in ("missed", "false")


def rows_of(program: Program, budget: float) -> Iterator[Row]:
    """What was found in a program, and what was not."""
    trace = traced(program, replay=True, budget=budget)
    found = {(one.location.line, one.code): one for one in trace.findings}
    for (line, code), finding in sorted(found.items()):
        yield _row(program, line, code, finding)
    for line, code in sorted(program.expected - found.keys()):
        yield Row(program.name, code, line, "missed")
    if not found and not program.expected:
        yield Row(program.name, "", 0, "silent")


def _row(program: Program, line: int, code: str, finding: Finding) -> Row:
    evidence = finding.evidence or {}
    outcome = "found" if (line, code) in program.expected else "false"
    if outcome == "false" and evidence["verdict"] in ("refuted", "inconclusive"):
        outcome = "left alone" if (line, code) in program.allowed else outcome
    return Row(
        program.name, code, line, outcome, evidence["verdict"], evidence["ratio"],
        evidence["ratio_low"], evidence["ratio_high"], evidence["net_ratio"],
        evidence["ms_per_step"],
    )  # fmt: skip


def text_of(row: Row) -> str:
    """A row of the table."""
    place = f"{row.code} line {row.line}" if row.code else ""
    if row.ratio is None or row.net_ratio is None:
        numbers = " | | "
    else:
        numbers = f"{row.ratio:.2f} [{row.low:.2f}, {row.high:.2f}] | {row.net_ratio:.2f} | "
        numbers += f"{row.ms_per_step:.3g}"
    return f"| {row.program} | {place} | {row.outcome} | {numbers} | {row.verdict or ''} |"


def equal_ways(rounds: int, budget: float) -> int:
    """How often a difference is told of two equal ways, each time of another operation or size."""
    false = 0
    for number in range(rounds):
        size = (64, 256, 1024, 2048)[number // 5 % 4]
        with Trace(replay=False, quiet=True, warmup=0) as trace:
            _KINDS[number % len(_KINDS)](torch.randn(size, size))
        operation = trace.operations[-1]
        measured = measure(Claim(operation, (0,), charged=False), budget)
        assert measured is not None
        found = measured.comparison
        different = found.is_slower or found.is_faster
        false += different
        said = "a difference" if different else "no measurable difference"
        print(
            f"{operation.short} of {size}x{size}: {found.ratio:.3f} [{found.low:.3f}, "
            f"{found.high:.3f}], against itself [{found.control_low:.3f}, "
            f"{found.control_high:.3f}], {found.rounds} rounds: {said}",
            flush=True,
        )
    print(f"{rounds - false} of {rounds}: no measurable difference")
    return false


def main() -> int:
    """Run the programs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--budget", type=float, default=5.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--equal", type=int, metavar="N")
    options = parser.parse_args()
    print(f"torch {torch.__version__}, Python {platform.python_version()}, ", end="")
    print(f"{torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}\n")
    if options.equal is not None:
        return 1 if equal_ways(options.equal, options.budget / 5) else 0
    print(
        "| program | finding | outcome | times as long | conversion charged | ms a step | verdict |"
    )
    print("|---|---|---|---:|---:|---:|---|")
    rows = []
    for program in programs():
        if options.names and program.name not in options.names:
            continue
        for row in rows_of(program, options.budget):
            rows.append(row)
            print(text_of(row), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(list(map(asdict, rows)), indent=1) + "\n", "utf-8")
    return 1 if any(row.is_wrong for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
