"""The places of operators for which a trace has no line: what is known of them instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memlint.kineto.walk import Run
from memlint.tracer.records import BACKWARD, Site

NO_FILE = "<profiler trace>"


@dataclass(frozen=True, slots=True)
class Label:
    """An operator by its name, and the range of the program that it ran in; empty if none was
    named."""

    operator: str
    range: str


@dataclass(slots=True)
class Homes:
    """The place of each run; ``forward`` are the operators that made the nodes of autograd."""

    forward: Mapping[int, Run]
    labels: dict[Site, Label] = field(default_factory=dict)

    def of(self, run: Run) -> Site:
        """The place of a run: its line, its function, or none but a label.

        What runs in the backward pass stands where its forward operator does."""
        spot = run.spot
        if spot is None and run.phase == BACKWARD:
            made = self.forward.get(run.sequence)
            spot = None if made is None else made.spot
        if spot is not None and spot.place is not None:
            return spot.place
        return self.labelled(run.node or run.name, run.mark)

    def labelled(self, operator: str, mark: str) -> Site:
        """A place that is but a label."""
        site = Site(NO_FILE, f"{operator} in {mark}" if mark else operator, 0)
        self.labels.setdefault(site, Label(operator, mark))
        return site
