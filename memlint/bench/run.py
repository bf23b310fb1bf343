"""Runs benches one after the other, within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from memlint.bench.collect import RuleBench
from memlint.bench.experiment import Experiment
from memlint.bench.lab import Forms, Lab, OutOfTime
from memlint.bench.plan import Plan
from memlint.bench.requirements import missing
from memlint.bench.results import Outcome
from memlint.rule import Rule

OUT_OF_TIME = "the budget was spent: ask for it by name, or raise --budget"


@dataclass(frozen=True, slots=True)
class Benches:
    """What is to be run: the benches of rules, and experiments."""

    rules: tuple[RuleBench, ...]
    experiments: tuple[Experiment, ...]


def run_benches(
    benches: Benches, plan: Plan, started: Callable[[str, int, int], object] = lambda *_: None
) -> Iterator[Outcome]:
    """The outcome of each rule and experiment, as soon as it is there.

    ``started`` is told the name of what is begun, how many are done, and how many there are.
    """
    groups = _by_rule(benches.rules)
    steps: list[tuple[str, int, Callable[[Lab], Outcome]]] = [
        *((rule.name, _count(plan, group), _of_rule(rule, group)) for rule, group in groups),
        *((one.name, _EXPERIMENT_SHARE, _of_experiment(one)) for one in benches.experiments),
    ]
    lab = Lab(plan)
    left = sum(count for _, count, _ in steps)
    for done, (name, count, run) in enumerate(steps):
        started(name, done, len(steps))
        lab.share(left)
        start = time.perf_counter()
        outcome = run(lab)
        yield replace(outcome, seconds=time.perf_counter() - start)
        left -= count


_EXPERIMENT_SHARE = 4


def _by_rule(benches: Sequence[RuleBench]) -> list[tuple[type[Rule], list[RuleBench]]]:
    groups: dict[type[Rule], list[RuleBench]] = {}
    for one in benches:
        groups.setdefault(one.rule, []).append(one)
    return list(groups.items())


def _count(plan: Plan, group: Sequence[RuleBench]) -> int:
    return sum(len(plan.sizes(one.declared)) for one in group)


def _of_rule(rule: type[Rule], group: Sequence[RuleBench]) -> Callable[[Lab], Outcome]:
    def run(lab: Lab) -> Outcome:
        outcome = Outcome(rule.name, rule.summary(), code=rule.code)
        skipped: list[str] = []
        for one in group:
            if why := missing(one.declared.needs):
                skipped.append(why)
                continue
            outcome = _with_rows(outcome, one, lab)
        if not outcome.rows and not outcome.failed and not outcome.skipped and skipped:
            return replace(outcome, skipped="; ".join(dict.fromkeys(skipped)))
        return replace(outcome, notes=tuple(dict.fromkeys(skipped)))

    return run


def _with_rows(outcome: Outcome, one: RuleBench, lab: Lab) -> Outcome:
    method = getattr(one.rule(), one.method)
    for size in lab.plan.sizes(one.declared):
        forms = Forms(
            one.rule.name,
            one.declared.as_is,
            one.declared.alternative,
            one.variant,
            size.number,
            size.dtype,
        )
        try:
            lab.require_time()
            row = lab.compare(method(size), forms)
        except OutOfTime:
            return replace(outcome, skipped=OUT_OF_TIME)
        except Exception as error:  # a bench of a third party may raise anything
            return replace(outcome, failed=_told(error))
        outcome = replace(outcome, rows=(*outcome.rows, row))
    return outcome


def _of_experiment(one: Experiment) -> Callable[[Lab], Outcome]:
    def run(lab: Lab) -> Outcome:
        outcome = Outcome(one.name, one.title())
        if why := missing(one.needs):
            return replace(outcome, skipped=why)
        try:
            found = one.run(lab)
        except OutOfTime:
            return replace(outcome, skipped=OUT_OF_TIME)
        except Exception as error:  # what one raises must not take the others along
            return replace(outcome, failed=_told(error))
        return replace(
            outcome,
            rows=found.rows,
            plots=found.plots,
            answers=found.answers,
            notes=found.notes,
        )

    return run


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
