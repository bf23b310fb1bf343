"""What could not be found out, as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that could not be read, and why; ``absent`` where there is nothing to read."""

    reason: str
    absent: bool = False


NOT_HERE = Unknown("not on this system", absent=True)
