"""How a rule declares a bench: what is compared, at which sizes, and what it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

BenchMethod = TypeVar("BenchMethod", bound=Callable[..., Any])

PREFIX = "bench"
"""Of the names of methods that may be benches."""

_MARK = "__memlint_bench__"


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes that a bench is run at: one in a quick run, all in a full one.

    ``of`` is what the number counts: "rows and columns", "elements", "steps"."""

    of: str
    quick: int
    full: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Declared:
    """A bench as its rule declares it.

    ``what`` is what both forms do, ``as_is`` and ``alternative`` how each does it, in a few
    words.  ``needs`` are names of :mod:`memlint.bench.requirements`, or of other
    modules.  Of ``dtypes`` the first is used unless another is asked for; empty where there is no
    choice.  ``quick`` benches are part of a run that names none.
    """

    what: str
    as_is: str
    alternative: str
    needs: tuple[str, ...]
    sizes: Sizes
    dtypes: tuple[str, ...]
    quick: bool


def bench(
    what: str,
    *,
    as_is: str,
    alternative: str,
    needs: tuple[str, ...],
    sizes: Sizes,
    dtypes: tuple[str, ...] = (),
    quick: bool = True,
) -> Callable[[BenchMethod], BenchMethod]:
    """Declare a ``bench*`` method of a rule: it is given a
    :class:`~memlint.bench.pair.Size` and returns a :class:`~memlint.bench.pair.Pair` or a
    :class:`~memlint.bench.pair.Weighed`.  What it needs is imported in its body."""
    for name, given in (("needs", needs), ("dtypes", dtypes)):
        if isinstance(given, str):  # its letters would be taken for names
            raise TypeError(f"{name} is a tuple of names, not {given!r}")
    declared = Declared(what, as_is, alternative, needs, sizes, dtypes, quick)

    def mark(method: BenchMethod) -> BenchMethod:
        setattr(method, _MARK, declared)
        return method

    return mark


def declaration(method: object) -> Declared | None:
    """What a method was declared with; ``None``: it is no bench."""
    return getattr(method, _MARK, None)


def is_benched(rule: type) -> bool:
    """Whether a rule has a bench."""
    names = (name for name in dir(rule) if name.startswith(PREFIX))
    return any(declaration(getattr(rule, name)) is not None for name in names)
