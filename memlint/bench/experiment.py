"""An experiment: a bench that belongs to no rule, with curves and answers to claims."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from memlint.bench.lab import Lab
from memlint.bench.results import Answer, Plot, Row


@dataclass(frozen=True, slots=True)
class Found:
    """What an experiment measured, and what it says to the claims that it is about."""

    rows: tuple[Row, ...] = ()
    plots: tuple[Plot, ...] = ()
    answers: tuple[Answer, ...] = ()
    notes: tuple[str, ...] = ()


class Experiment(ABC):
    """Base class of experiments; each lies in a file of :mod:`memlint.bench.experiments`.

    The docstring says what is measured and how, the first line being its title.  ``needs`` are
    names of :mod:`memlint.bench.requirements`; ``quick`` ones are part of a run that names none.
    """

    name: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()
    quick: ClassVar[bool] = True

    @classmethod
    def title(cls) -> str:
        """The first line of the docstring."""
        return (inspect.getdoc(cls) or "").partition("\n")[0]

    @abstractmethod
    def run(self, lab: Lab) -> Found:
        """Measure; with ``lab.plan.full`` at all sizes.

        What the experiment needs is imported in here."""
