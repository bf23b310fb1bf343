"""Run small programs under the tracer, and ask what the rules say to them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from memlint.linter.rules import all_rules
from memlint.tracer.observe import observe
from memlint.tracer.records import Asked, Growth, Operation, Retained, Site, Waiting
from memlint.tracer.session import Session
from memlint.tracer.sightings import Sighting


@dataclass
class Run:
    """What a traced block left behind."""

    session: Session
    operations: list[Operation] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    others: list[Growth | Retained | Waiting] = field(default_factory=list)

    def named(self, short: str) -> list[Operation]:
        return [one for one in self.operations if one.short == short]

    def only(self, short: str) -> Operation:
        (one,) = self.named(short)
        return one

    def sightings(self, name: str) -> list[Sighting]:
        rules = [rule() for rule in all_rules().rules.values() if rule.name == name]
        assert rules, f"no rule {name}"
        return list(observe(rules, self.operations, [*self.asked, *self.others]))


@contextmanager
def traced(
    *, warmup: int = 0, steps: int | None = None, profile_step: bool = False
) -> Iterator[Run]:
    run = Run(Session(warmup=warmup, steps=steps, profile_step=profile_step))
    try:
        with run.session:
            yield run
    finally:
        recorder = run.session.recorder
        run.operations = list(recorder.operations())
        run.asked = list(recorder.requests())
        run.others = list(recorder.others())


def line_of(function: Callable[..., object], text: str) -> int:
    """The number of the only line of a function's source that holds a text."""
    lines, first = inspect.getsourcelines(function)
    (found,) = [number for number, line in enumerate(lines) if text in line]
    return first + found


def text_at(site: Site) -> str:
    """The text of a place that lies on one line."""
    assert site.line == site.end_line
    with open(site.path, encoding="utf-8") as file:
        line = file.read().splitlines()[site.line - 1]
    return line[site.column - 1 : site.end_column - 1]
