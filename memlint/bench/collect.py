"""All benches: those that rules carry in their files, and the experiments."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memlint.bench import experiments
from memlint.bench.declare import PREFIX, Declared, declaration
from memlint.bench.experiment import Experiment
from memlint.rule import Rule


@dataclass(frozen=True, slots=True)
class RuleBench:
    """A ``bench*`` method of a rule; ``variant`` is what its name has after that."""

    rule: type[Rule]
    method: str
    variant: str
    declared: Declared


def rule_benches(rules: Iterable[type[Rule]]) -> Iterator[RuleBench]:
    """The benches of some rules, in the order of their definition."""
    for rule in rules:
        for method in _names(rule):
            declared = declaration(getattr(rule, method))
            if declared is not None:
                variant = method.removeprefix(PREFIX).strip("_").replace("_", "-")
                yield RuleBench(rule, method, variant, declared)


def _names(rule: type[Rule]) -> Iterator[str]:
    """Methods, those of the class itself as they are written in its file."""
    seen: set[str] = set()
    for owner in rule.__mro__:
        for name in vars(owner):
            if name.startswith(PREFIX) and name not in seen:
                seen.add(name)
                yield name


def all_experiments() -> tuple[Experiment, ...]:
    """Each class of the modules in :mod:`memlint.bench.experiments`, by name."""
    return tuple(sorted(_experiments(), key=lambda one: one.name))


def _experiments() -> Iterator[Experiment]:
    for info in pkgutil.iter_modules(experiments.__path__):
        module = importlib.import_module(f"{experiments.__name__}.{info.name}")
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, Experiment)
                and value.__module__ == module.__name__
                and value.name
            ):
                yield value()
