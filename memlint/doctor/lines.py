"""What the doctor says: one line per topic."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from memlint.doctor.unknown import Unknown


class State(enum.Enum):
    """How a thing is set up."""

    BAD = "bad"
    ATTENTION = "attention"
    UNKNOWN = "unknown"
    GOOD = "good"


@dataclass(frozen=True, slots=True)
class Line:
    """One topic: how it stands, one sentence why, and the command that changes it."""

    topic: str
    state: State
    why: str
    command: str | None = None


def good(topic: str, why: str) -> Line:
    """Nothing to do."""
    return Line(topic, State.GOOD, why)


def attention(topic: str, why: str, command: str | None = None) -> Line:
    """It costs something, or breaks something, in the cases that ``why`` names."""
    return Line(topic, State.ATTENTION, why, command)


def bad(topic: str, why: str, command: str | None = None) -> Line:
    """It costs or breaks something as things are."""
    return Line(topic, State.BAD, why, command)


def unknown(topic: str, what: Unknown) -> Line:
    """It could not be found out."""
    return Line(topic, State.UNKNOWN, what.reason)
