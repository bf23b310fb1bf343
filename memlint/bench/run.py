"""Runs benches one after the other, within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from memlint.bench.collect import RuleBench
from memlint.bench.experiment import Experiment
from memlint.bench.lab import Forms, Lab, OutOfTime
from memlint.bench.plan import Plan
from memlint.bench.requirements import missing
from memlint.bench.results import Answer, Outcome, Standing
from memlint.rule import Rule

OUT_OF_TIME = "the budget was spent: raise --budget, or ask for fewer benches"
INTERRUPTED = "the run was interrupted"


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
    Where the user interrupts, what has been measured comes as outcomes before
    ``KeyboardInterrupt`` is raised.
    """
    steps = [
        *(_rule_step(plan, rule, group) for rule, group in _by_rule(benches.rules)),
        *(_experiment_step(plan, one) for one in benches.experiments),
    ]
    lab = Lab(plan)
    for done, step in enumerate(steps):
        started(step.blank.name, done, len(steps))
        lab.begin(sum(one.count for one in steps[done:]))
        start = time.perf_counter()
        try:
            outcome = step.run(lab)
        except KeyboardInterrupt:
            yield replace(step.blank, rows=tuple(lab.rows), skipped=INTERRUPTED)
            for one in steps[done + 1 :]:
                yield replace(one.blank, skipped=INTERRUPTED)
            raise
        yield replace(outcome, seconds=time.perf_counter() - start)


@dataclass(frozen=True, slots=True)
class _Step:
    """``blank`` is the outcome before anything is measured, ``count`` for how many comparisons
    the step stands."""

    blank: Outcome
    count: int
    run: Callable[[Lab], Outcome]


_EXPERIMENT_SHARE = 4


def _by_rule(benches: Sequence[RuleBench]) -> list[tuple[type[Rule], list[RuleBench]]]:
    groups: dict[type[Rule], list[RuleBench]] = {}
    for one in benches:
        groups.setdefault(one.rule, []).append(one)
    return list(groups.items())


def _rule_step(plan: Plan, rule: type[Rule], group: Sequence[RuleBench]) -> _Step:
    blank = Outcome(rule.name, rule.summary(), code=rule.code)

    def run(lab: Lab) -> Outcome:
        outcome = blank
        unable = {one.method: why for one in group if (why := _unable(plan, one))}
        if len(unable) == len(group):
            return replace(blank, skipped="; ".join(dict.fromkeys(unable.values())))
        for one in group:
            if one.method in unable:
                note = f"{one.variant or 'its first bench'} not measured: {unable[one.method]}"
                outcome = replace(outcome, notes=(*outcome.notes, note))
            else:
                outcome = _with_rows(outcome, one, lab)
        return outcome

    return _Step(blank, sum(len(plan.sizes(one.declared)) for one in group), run)


def _unable(plan: Plan, one: RuleBench) -> str:
    declared = one.declared
    asked = plan.unfit(declared.needs) or plan.without_dtype(declared)
    return asked or missing(declared.needs)


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
            lab.device, lab.threads = size.device, size.threads
            row = lab.compare(method(size), forms)
        except OutOfTime:
            return replace(outcome, skipped=OUT_OF_TIME)
        except (Exception, SystemExit) as error:  # a bench of a third party may raise anything
            return replace(outcome, failed=_told(error))
        outcome = replace(outcome, rows=(*outcome.rows, row))
    return outcome


def _experiment_step(plan: Plan, one: Experiment) -> _Step:
    blank = Outcome(one.name, one.title())

    def run(lab: Lab) -> Outcome:
        if why := plan.unfit(one.needs) or missing(one.needs):
            return replace(blank, skipped=why)
        lab.device, lab.threads = plan.device_of(one.needs), plan.threads_of(one.needs)
        try:
            found = one.run(lab)
        except OutOfTime:
            return replace(blank, skipped=OUT_OF_TIME)
        except Exception as error:  # what one raises must not take the others along
            return replace(blank, failed=_told(error))
        return replace(
            blank,
            rows=found.rows,
            plots=found.plots,
            answers=_unjudged(found.answers) if lab.plan.control else found.answers,
            notes=found.notes,
        )

    return _Step(blank, _EXPERIMENT_SHARE, run)


def _unjudged(answers: Iterable[Answer]) -> tuple[Answer, ...]:
    """Answers of a run in which each good form was compared with itself."""
    why = "with --control, good forms are compared with themselves"
    return tuple(Answer(one.claim, Standing.UNMEASURED, why) for one in answers)


def _told(error: BaseException) -> str:
    # What follows the first line is for those who debug a library: the stack of its C++ calls.
    said = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
