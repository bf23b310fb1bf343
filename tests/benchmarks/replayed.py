"""Run the programs whose faults a trace shows, and print what was found and measured.

Says of each finding whether it stands at the right line, how much longer the operation takes than
the alternative with its interval, the same with the conversion charged, and the verdict.  Ends with
1 if something was missed, or found and confirmed where nothing is wrong.

    python -m tests.benchmarks.replayed [NAME ...] [--budget 5] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from memlint.findings import Finding
from tests.benchmarks.traced_programs import Program, programs, traced


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


def main() -> int:
    """Run the programs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--budget", type=float, default=5.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(f"torch {torch.__version__}, Python {platform.python_version()}, ", end="")
    print(f"{torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}\n")
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
