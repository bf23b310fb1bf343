"""Whether `memlint bench` tells the same twice, and finds nothing where there is nothing.

With ``--control N`` each good form is run against itself, N times: every comparison should say
"no measurable difference".  With ``--repeat N`` the benches are run N times, each in a process of
its own: of every comparison, the intervals of all runs should overlap.  Ends with 1 otherwise.

    python -m tests.benchmarks.benched --control 20 [BENCH ...]
    python -m tests.benchmarks.benched --repeat 3 [--full] [BENCH ...]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_Key = tuple[str, str, str, str, str]
_SAME = "no measurable difference"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benches, print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benches", nargs="*")
    parser.add_argument("--control", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=0)
    parser.add_argument("--full", action="store_true")
    given = parser.parse_args(arguments)
    options = [*given.benches, *(["--full"] if given.full else [])]
    wrong = 0
    if given.control:
        wrong += _control(list(_runs([*options, "--control"], given.control)))
    if given.repeat:
        wrong += _repeated(list(_runs(options, given.repeat)))
    return int(wrong > 0)


def _runs(options: Sequence[str], count: int) -> Iterator[list[Mapping[str, Any]]]:
    """The rows of each of so many runs."""
    command = [sys.executable, "-m", "memlint", "bench", "--format", "json", *options]
    for _ in range(count):
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        yield [row for one in json.loads(done.stdout)["benches"] for row in one["rows"]]


def _control(runs: Sequence[Sequence[Mapping[str, Any]]]) -> int:
    """How many comparisons told a difference between a form and itself."""
    rows = [row for run in runs for row in run]
    told = [row for row in rows if row["verdict"] != _SAME]
    for row in told:
        print(f"{_key(row)}: {row['verdict']}, {row['ratio']:.3f} ({_interval(row)})")
    clean = sum(all(row["verdict"] == _SAME for row in run) for run in runs)
    print(f"{clean} of {len(runs)} runs tell no difference; {len(told)} of {len(rows)} comparisons")
    return len(told)


def _repeated(runs: Sequence[Sequence[Mapping[str, Any]]]) -> int:
    """How many comparisons have intervals that do not all overlap."""
    found: dict[_Key, list[Mapping[str, Any]]] = {}
    for run in runs:
        for row in run:
            found.setdefault(_key(row), []).append(row)
    apart = {key: rows for key, rows in found.items() if not _overlap(rows)}
    for key, rows in apart.items():
        print(f"{key}:", *(f"{row['ratio']:.3f} ({_interval(row)})" for row in rows))
    print(f"{len(found) - len(apart)} of {len(found)} comparisons overlap in {len(runs)} runs")
    return len(apart)


def _overlap(rows: Sequence[Mapping[str, Any]]) -> bool:
    return max(row["low"] for row in rows) <= min(row["high"] for row in rows)


def _key(row: Mapping[str, Any]) -> _Key:
    return (row["bench"], row["variant"], row["what"], row["as_is_form"], row["alternative_form"])


def _interval(row: Mapping[str, Any]) -> str:
    return f"{row['low']:.3f}-{row['high']:.3f}"


if __name__ == "__main__":
    sys.exit(main())
