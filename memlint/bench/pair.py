"""Two forms of the same, to be compared: by the time that they take, or by bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from memlint.late_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """What a bench is run at.

    ``number`` counts what its :class:`~memlint.bench.declare.Sizes` say; ``dtype`` is a name that
    NumPy and torch share, empty where there is no choice; ``device`` is one of torch's, and
    ``threads`` how many the libraries may use.
    """

    number: int
    dtype: str
    device: str
    threads: int

    def settle(self) -> None:
        """Wait for what has been started on the device."""
        if self.device != "cpu":
            import torch

            torch.get_device_module(self.device).synchronize()


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two forms that are compared by time.

    ``operands`` makes the arguments that both are called with; each call makes new ones, with the
    same numbers.  So many sets are made that going through them outlasts the caches, unless
    ``rotate`` is off: for what is meant to stay in a cache, and what takes long to be made.
    Both forms have to give the same result, up to rounding; one that returns ``None`` is judged
    by what is in its operands afterwards.  ``comparable`` is off where results cannot be the same,
    such as those of random numbers.

    ``what`` names the operands: "float64, 1024 x 1024".  ``conversion`` is what the alternative
    has to be prepared by, once in ``uses`` runs.  ``nbytes`` is what a run reads and writes;
    0 where that says nothing.  ``settle`` waits for a device, ``close`` gives back what was taken.
    """

    as_is: Callable[..., Any]
    alternative: Callable[..., Any]
    operands: Callable[[], tuple[Any, ...]]
    what: str
    conversion: Callable[..., Any] | None = None
    uses: float = 1.0
    nbytes: int = 0
    rotate: bool = True
    comparable: bool = True
    settle: Callable[[], object] = _nothing
    close: Callable[[], object] = _nothing


PROCESS_GRAIN = 16 << 10
"""Bytes by which the memory of a process is off, as the system counts it: some pages of 4 KiB."""

PEAK_GRAIN = 1 << 20
"""The same of a peak, which libraries that are imported on the way have a part in."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """Two forms that are compared by the bytes that they take: each returns a number of bytes.

    ``of`` says of which: "bytes kept per step", "peak of resident memory".  ``grain`` is what each
    number may be off by: what the system counts for a process comes in pages, of which a few more
    or less are chance."""

    as_is: Callable[[], float]
    alternative: Callable[[], float]
    of: str
    what: str
    grain: int = 0
    close: Callable[[], object] = _nothing


Comparable: TypeAlias = Pair | Weighed
