"""What the tracer has to know of an operator, worked out once for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

_REORDERING = frozenset(
    {"t", "transpose", "permute", "numpy_T", "mT", "movedim", "swapaxes", "as_strided", "unfold"}
)
_TRANSFERS = frozenset({"_to_copy", "copy_", "_pin_memory", "pin_memory"})
_ALONE = frozenset({"lift_fresh", "lift_fresh_copy", "set_"})


@dataclass(frozen=True, slots=True)
class Operator:
    """Facts of one operator.

    ``fresh`` tells that its results have memory of their own, ``views`` that they lie in that of
    an operand, ``reorders`` that they do so in another order, ``moves`` that it may bring data
    from one device to another.  ``writes`` are the arguments that it writes into, by their numbers
    and names.
    """

    function: Any
    name: str
    short: str
    mutable: bool
    fresh: bool
    views: bool
    reorders: bool
    moves: bool
    joins: bool
    copies: bool
    reshapes: bool
    repeats: bool
    writes: tuple[tuple[int, str], ...]

    def written(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
        """The tensors that a call writes into."""
        found: list[torch.Tensor] = []
        for index, name in self.writes:
            value = args[index] if index < len(args) else kwargs.get(name)
            if isinstance(value, torch.Tensor):
                found.append(value)
            elif isinstance(value, (list, tuple)):
                found += [one for one in value if isinstance(one, torch.Tensor)]
        return found


class Operators:
    """The operators of a run."""

    def __init__(self) -> None:
        self._known: dict[int, Operator] = {}

    def get(self, function: Any) -> Operator:
        """The facts of an operator; they hold on to it, so that no other takes its place."""
        known = self._known.get(id(function))
        if known is None:
            known = self._known[id(function)] = _facts(function)
        return known


def _facts(function: Any) -> Operator:
    schema = function._schema
    name = str(function)
    short = name.split(".")[1]
    aliased = any(one.alias_info is not None for one in schema.returns)
    mutable = bool(schema.is_mutable)
    return Operator(
        function,
        name,
        short,
        mutable,
        fresh=bool(schema.returns) and (not aliased or short in _ALONE),
        views=aliased and not mutable,
        reorders=short in _REORDERING,
        moves=short in _TRANSFERS,
        joins=short == "cat",
        copies=function is torch.ops.aten.clone.default,
        reshapes=function is torch.ops.aten._unsafe_view.default,
        repeats=function is torch.ops.aten.repeat.default,
        writes=tuple(
            (index, one.name)
            for index, one in enumerate(schema.arguments)
            if one.alias_info is not None and one.alias_info.is_write
        ),
    )
