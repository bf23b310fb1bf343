"""What benches result in: plain data."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from memlint.bench.machine import Machine
from memlint.bench.plan import Plan


class Unit(enum.Enum):
    """What a form is measured in."""

    SECONDS = "s"
    BYTES = "B"


class Verdict(enum.Enum):
    """What a comparison says of the bad form."""

    SLOWER = "slower"
    FASTER = "faster"
    NO_DIFFERENCE = "no measurable difference"
    MORE = "takes more"
    LESS = "takes less"


@dataclass(frozen=True, slots=True)
class Row:
    """Two forms compared; times in seconds per run, or bytes.

    ``bench`` and ``variant`` name what was run, ``what`` the operands.  ``ratio`` is as-is over
    alternative; ``low`` and ``high`` hold the confidence intervals of all sittings, each with
    operands made anew; ``control_low`` and ``control_high`` are those of as-is against itself.
    ``net_ratio`` charges the alternative with its share of ``conversion``.  ``nbytes`` is what a
    run reads and writes, 0 where that says nothing.
    """

    bench: str
    variant: str
    what: str
    as_is_form: str
    alternative_form: str
    unit: Unit
    size: int
    dtype: str
    device: str
    threads: int
    as_is: float
    alternative: float
    ratio: float
    low: float
    high: float
    control_low: float
    control_high: float
    rounds: int
    verdict: Verdict
    conversion: float | None = None
    net_ratio: float | None = None
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a curve, with the interval of what was measured."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a plot."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """Curves over a common axis; both axes are logarithmic where ``log_x`` and ``log_y`` say so.

    The units are "B", "s", "s/B" and the like: numbers are shown with their prefixes. ``marks``
    are places on the x axis that are worth a line, the sizes of the caches for example."""

    title: str
    x_label: str
    x_unit: str
    y_label: str
    y_unit: str
    curves: tuple[Curve, ...]
    log_x: bool = True
    log_y: bool = True
    marks: Mapping[str, float] = field(default_factory=dict)


class Standing(enum.Enum):
    """How a claim fares on this machine."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold here"
    PARTLY = "holds in part"
    UNMEASURED = "cannot be measured here"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a bench says to a claim, by its name; ``measured`` is the value, in words."""

    claim: str
    standing: Standing
    measured: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one bench came to.  ``skipped`` says why it was not run, ``failed`` what it raised."""

    name: str
    title: str
    rows: tuple[Row, ...] = ()
    plots: tuple[Plot, ...] = ()
    answers: tuple[Answer, ...] = ()
    notes: tuple[str, ...] = ()
    code: str = ""
    skipped: str = ""
    failed: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Session:
    """One run of benches; ``date`` is in ISO form, UTC."""

    machine: Machine
    plan: Plan
    date: str
    outcomes: tuple[Outcome, ...]
