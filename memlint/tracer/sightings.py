"""What rules say to records: plain data, without torch objects."""

from __future__ import annotations

from typing import TypeAlias

from memlint.findings import Severity
from memlint.late_dataclass import dataclass
from memlint.rule import Rule
from memlint.tracer.records import Growth, Operand, Operation, Repeated, Site, StoredScores

DENSE, CHANNELS_LAST = "dense", "channels_last"


@dataclass(frozen=True, slots=True)
class Part:
    """An operation of a claim, which runs ``times`` times for each run of the claim.

    ``dense`` are the numbers of the operands that would have the form of the claim; ``vanishes``
    tells that there would be nothing to do then, as for a copy that gives them that form.
    """

    operation: Operation
    dense: tuple[int, ...]
    times: int = 1
    vanishes: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """That an operation would be faster if some of its operands had another form.

    ``dense`` are the numbers of these operands, ``form`` is what they would be: row-major
    (:data:`DENSE`), :data:`CHANNELS_LAST`, or of another dtype, by its name.  Making them so has to
    be paid once for every ``uses`` of the result, unless it costs nothing where they are made
    (``charged`` is false).  A claim of several operations lists them all as ``parts``; it is the
    first operand of ``dense`` of ``operation`` that is made so once for all of them.
    """

    operation: Operation
    dense: tuple[int, ...]
    uses: float = 1.0
    parts: tuple[Part, ...] = ()
    form: str = DENSE
    charged: bool = True

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What the claim speaks of."""
        return self.operation.operands

    @property
    def born(self) -> Site | None:
        """Where the layout came up that it speaks of."""
        return self.operation.births.get(self.dense[0]) if self.dense else None


@dataclass(frozen=True, slots=True)
class JoinOnce:
    """That parts which are joined one by one would be faster joined once, in the end."""

    growth: Growth

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The array when it was largest."""
        return (self.growth.largest,)

    @property
    def born(self) -> Site | None:
        """No layout is at fault."""
        return None


@dataclass(frozen=True, slots=True)
class ExpandInstead:
    """That an operation would be faster on a view than on what ``repeat`` has copied."""

    repeated: Repeated

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What is repeated."""
        return self.repeated.repeat.operands

    @property
    def born(self) -> Site | None:
        """No layout is at fault."""
        return None


@dataclass(frozen=True, slots=True)
class FuseAttention:
    """That torch's own attention would be faster than products with a softmax between."""

    attention: StoredScores

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The scores."""
        return self.attention.softmax.operands

    @property
    def born(self) -> Site | None:
        """No layout is at fault."""
        return None


AnyClaim: TypeAlias = "Claim | JoinOnce | ExpandInstead | FuseAttention"
"""What replay can measure."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Something that a rule reports of a run.

    ``count`` is how often it happened, in ``steps`` steps; ``nbytes`` what was moved by it in
    all, in bytes.  ``claims`` are what replay can measure of it.  ``settled`` is false where
    what was seen on this device settles nothing for the one that the rule speaks of.

    ``totals`` ends the message with figures of all that happened at the site, which are known
    once the sightings of a rule there are put together: ``{nbytes}``, ``{nbytes_a_step}`` and
    ``{count}`` stand for them.
    """

    rule: Rule
    site: Site
    message: str
    help: str
    severity: Severity
    count: int
    steps: int
    nbytes: int
    related: tuple[tuple[Site, str], ...] = ()
    claims: tuple[AnyClaim, ...] = ()
    settled: bool = True
    totals: str = ""
