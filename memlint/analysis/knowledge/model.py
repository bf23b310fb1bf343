"""What the tables of library calls are made of."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import field, replace
from typing import TypeAlias

from memlint.analysis.values import Absent, Const, Sequence, Site, Tensor, Value
from memlint.late_dataclass import dataclass

_ABSENT = Const(None)


@dataclass(frozen=True, slots=True)
class Args:
    """The arguments of a call.  ``open`` where a ``*`` or ``**`` among them is not resolved,
    so that any other argument may be given as well; ``spread`` is what such a ``**`` gives."""

    positional: tuple[Value, ...] = ()
    keywords: dict[str, Value] = field(default_factory=dict)
    open: bool = False
    spread: tuple[Value, ...] = ()

    def get(self, name: str, position: int | None = None) -> Value:
        """The argument called ``name``, or at ``position``; ``Absent`` where it is not given."""
        if name in self.keywords:
            return self.keywords[name]
        if position is not None and position < len(self.positional):
            return self.positional[position]
        return Absent()


@dataclass(frozen=True, slots=True)
class SliceValue:
    """A slice in a subscript; a bound that is absent is ``Const(None)``."""

    start: Value = _ABSENT
    stop: Value = _ABSENT
    step: Value = _ABSENT


@dataclass(frozen=True, slots=True)
class Call:
    """A call of something in the tables; the receiver of a method is its first argument."""

    name: str
    lib: str
    args: Args
    node: ast.AST
    site: Site
    options: tuple[object, ...] = ()

    @property
    def tensor(self) -> Tensor | None:
        """The first argument, where it is an array."""
        value = self.first
        return value if isinstance(value, Tensor) else None

    @property
    def first(self) -> Value:
        """The first argument, by position or under one of the names that libraries give it."""
        for name in ("input", "a", "self", "x", "tensor", "arr", "ary"):
            if name in self.args.keywords:
                return self.args.keywords[name]
        return self.args.positional[0] if self.args.positional else Absent()

    def get(self, *names: str, at: int | None = None) -> Value:
        """An argument by any of its names, or by position after the first argument."""
        for name in names:
            if name in self.args.keywords:
                return self.args.keywords[name]
        return self.args.get("", None if at is None else at)

    def rest(self, name: str, at: int = 1) -> tuple[Value, ...] | None:
        """The values of a parameter that is a tuple or is spread over the positions from
        ``at`` on; ``None`` where they are not known."""
        given: tuple[Value, ...]
        if name in self.args.keywords:
            given = (self.args.keywords[name],)
        else:
            given = self.args.positional[at:]
        if len(given) == 1 and isinstance(given[0], Sequence):
            return given[0].items
        return given


Transfer: TypeAlias = Callable[[Call], Value | None]


@dataclass(frozen=True, slots=True)
class Row:
    """One operation: what it does (``transfer``), and the calls that prove it, written as
    Python arguments over the arrays ``x`` and ``y``."""

    transfer: Transfer
    proofs: tuple[str, ...]
    options: tuple[object, ...] = ()

    def apply(self, call: Call) -> Value | None:
        """The result of a call."""
        return self.transfer(
            Call(call.name, call.lib, call.args, call.node, call.site, self.options)
        )


Table: TypeAlias = dict[str, Row]


def rows(transfer: Transfer, names: str, *proofs: str, options: tuple[object, ...] = ()) -> Table:
    """The same row under several names, separated by blanks."""
    row = Row(transfer, proofs, options)
    return dict.fromkeys(names.split(), row)


def table(*parts: Table) -> Table:
    """Rows put together; one that is there already gets the new proofs as well."""
    merged: Table = {}
    for part in parts:
        for name, row in part.items():
            before = merged.get(name)
            if before is None:
                merged[name] = row
            elif (before.transfer, before.options) == (row.transfer, row.options):
                merged[name] = replace(before, proofs=(*before.proofs, *row.proofs))
            else:
                raise ValueError(f"{name} has two meanings")
    return merged
