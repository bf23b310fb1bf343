"""Which benches a run is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from memlint.bench.collect import RuleBench, all_experiments, rule_benches
from memlint.bench.experiment import Experiment
from memlint.bench.run import Benches
from memlint.rule import Rule, RuleSet
from memlint.selection import did_you_mean, matches


class UnknownBench(Exception):  # noqa: N818 - it is told to the user as it is
    """What was asked for is no bench."""


def choose(names: Sequence[str], rules: RuleSet) -> Benches:
    """The benches of some rules (by code, its beginning, name or family) and experiments (by
    name); all where none is named.  Raises :class:`UnknownBench`."""
    benches = tuple(rule_benches(rules.rules.values()))
    experiments = all_experiments()
    if not names:
        return Benches(benches, experiments)
    for name in names:
        _require(name, benches, experiments, rules)
    return Benches(
        tuple(one for one in benches if any(matches(name, one.rule) for name in names)),
        tuple(one for one in experiments if one.name in names),
    )


def quick(benches: Benches) -> Benches:
    """Those that are part of a run that names none."""
    return Benches(
        tuple(one for one in benches.rules if one.declared.quick),
        tuple(one for one in benches.experiments if one.quick),
    )


def listing(benches: Benches) -> Iterator[str]:
    """A line for each bench."""
    for one in benches.rules:
        name = one.rule.name + (f" ({one.variant})" if one.variant else "")
        yield f"{one.rule.code}  {name}: {one.declared.what}"
    for experiment in benches.experiments:
        yield f"{experiment.name}: {experiment.title()}"


def _require(
    name: str, benches: Sequence[RuleBench], experiments: Sequence[Experiment], rules: RuleSet
) -> None:
    if any(matches(name, one.rule) for one in benches) or any(x.name == name for x in experiments):
        return
    if any(matches(name, rule) for rule in rules.rules.values()):
        raise UnknownBench(f"{name} has no bench: `memlint bench --list` shows those that have")
    known = [x.name for x in experiments] + list(_words(rules.rules.values()))
    raise UnknownBench(f"unknown rule or experiment {name!r}{did_you_mean(name, known)}")


def _words(rules: Iterable[type[Rule]]) -> Iterator[str]:
    for rule in rules:
        yield from (rule.code, rule.name, rule.family())
