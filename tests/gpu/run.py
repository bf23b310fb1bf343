"""Safe fixes that concern a device, and traces of programs that use it, proved on one:
``python -m tests.gpu.run``.

Each program of :mod:`tests.gpu.cases` is run as it is and with its safe fixes, several times,
and must give the same values, dtypes, shapes and devices; one that races with the device is
compared with what the host gives.  A trace of each program of :mod:`tests.gpu.traced_programs`
must tell what is marked there and nothing else.  Last, the benches of all rules that use torch are
run there, as ``memlint bench --device cuda`` does: their ratios are printed, and decide nothing.
Exits with 1 if a program does not do what it must or a bench fails, and with 2 where there is no
CUDA device.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from memlint.bench.collect import rule_benches
from memlint.bench.plan import Plan
from memlint.bench.quantities import amount, interval, ratio
from memlint.bench.results import Outcome
from memlint.bench.run import Benches, run_benches
from memlint.findings import Applicability
from memlint.linter.rules import all_rules
from tests.gpu.cases import CASES, Case
from tests.gpu.traced_programs import differences, on_a_device
from tests.rules.linting import fixed, found

if TYPE_CHECKING:
    import torch


def mended(case: Case) -> str:
    """The program with all safe fixes of its rule; raises where there are not as many."""
    text = case.text
    for _ in range(case.fixes):
        fixes = [one.fix for one in found(text, case.rule) if one.fix is not None]
        safe = [fix for fix in fixes if fix.applicability is Applicability.SAFE]
        if not safe:
            raise AssertionError(f"{case.rule}: fewer than {case.fixes} safe fixes")
        text = fixed(text, safe[0])
    if found(text, case.rule):
        raise AssertionError(f"{case.rule}: reported after {case.fixes} fixes")
    return text


def results(text: str, device: str) -> list[torch.Tensor]:
    """What a program gives on ``device``."""
    names: dict[str, Any] = {}
    exec(compile(text.replace('"cuda"', f'"{device}"'), "<case>", "exec"), names)
    run: Callable[[], list[torch.Tensor]] = names["run"]
    return run()


def difference(before: Sequence[torch.Tensor], after: Sequence[torch.Tensor]) -> str:
    """What differs between two runs; empty where nothing does."""
    if len(before) != len(after):
        return f"{len(before)} tensors became {len(after)}"
    for number, (one, other) in enumerate(zip(before, after, strict=True)):
        for fact in ("shape", "dtype", "device"):
            if getattr(one, fact) != getattr(other, fact):
                return f"{fact} of tensor {number}"
        if not bool((one == other).all()):
            return f"values of tensor {number}"
    return ""


def measured(device: str, budget: float) -> Iterator[Outcome]:
    """The outcomes of the benches that use torch, within so many seconds."""
    chosen = [
        one
        for one in rule_benches(all_rules().rules.values())
        if {"torch", "cuda"} & set(one.declared.needs) and one.declared.quick
    ]
    return run_benches(Benches(tuple(chosen), ()), Plan(device=device, budget=budget))


def told(outcome: Outcome) -> Iterator[str]:
    """A line for each comparison of a bench, and for what kept it from being made."""
    for row in outcome.rows:
        amounts = f"{amount(row.as_is, row.unit)} / {amount(row.alternative, row.unit)}"
        ratios = f"{ratio(row.ratio)}x ({interval(row.low, row.high)})"
        name = " ".join(filter(None, (outcome.name, row.variant)))
        yield f"{name}: {row.what}: {ratios}, {amounts}, {row.verdict.value}"
    for why in (outcome.failed, outcome.skipped, *outcome.notes):
        if why:
            yield f"{outcome.name}: {why}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all cases and print what became of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.run", description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--budget", type=float, default=150.0, help="seconds for the benches")
    options = parser.parse_args(arguments)
    import torch

    if not torch.cuda.is_available():
        print("there is no CUDA device: nothing was run", file=sys.stderr)
        return 2
    failures = 0
    for case in CASES:
        text = mended(case)
        found_differences = {
            difference(results(case.text, "cpu" if case.racy else "cuda"), results(text, "cuda"))
            for _ in range(options.repeats)
        } - {""}
        failures += bool(found_differences)
        print(f"{case.rule}: {', '.join(sorted(found_differences)) or 'the same'}")
    for program in on_a_device():
        wrong = list(differences(program, "cuda"))
        failures += bool(wrong)
        print(f"{program.name}: {', '.join(wrong) or 'told as marked'}")
    for outcome in measured("cuda", options.budget):
        failures += bool(outcome.failed)
        print("\n".join(told(outcome)))
    return int(failures > 0)


if __name__ == "__main__":
    raise SystemExit(main())
