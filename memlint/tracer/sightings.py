"""What rules say to records: plain data, without torch objects."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.findings import Severity
from memlint.rule import Rule
from memlint.tracer.records import Operation, Site


@dataclass(frozen=True, slots=True)
class Part:
    """An operation of a claim, which runs ``times`` times for each run of the claim.

    ``dense`` are the numbers of the operands that would be row-major; ``vanishes`` tells that
    there would be nothing to do then, as for a copy that makes them so.
    """

    operation: Operation
    dense: tuple[int, ...]
    times: int = 1
    vanishes: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """That an operation would be faster if some of its operands were row-major.

    ``dense`` are the numbers of these operands.  Making them so has to be paid once for every
    ``uses`` of the result.  A claim of several operations lists them all as ``parts``; it is
    the first operand of ``dense`` of ``operation`` that is made dense once for all of them.
    """

    operation: Operation
    dense: tuple[int, ...]
    uses: float = 1.0
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Sighting:
    """Something that a rule reports of a run.

    ``count`` is how often it happened, in ``steps`` steps; ``nbytes`` what was moved by it in
    all, in bytes.  ``claims`` are what replay can measure of it.  ``settled`` is false where
    what was seen on this device settles nothing for the one that the rule speaks of.
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
    claims: tuple[Claim, ...] = ()
    settled: bool = True
