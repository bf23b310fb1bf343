"""Equations of ``einsum``."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.analysis.values import Const, Made, Sequence, Value


@dataclass(frozen=True, slots=True)
class Equation:
    """A sum of products: the indices of each operand and of the result."""

    operands: tuple[str, ...]
    result: str

    def contracted(self) -> frozenset[str]:
        """The indices that are summed over."""
        return frozenset("".join(self.operands)) - frozenset(self.result)


def equation_of(made: Made) -> Equation | None:
    """The equation of an ``einsum`` that is written out in letters."""
    text = made.inputs[0] if made.inputs else made.get("equation")
    if not isinstance(text, Const) or not isinstance(text.value, str):
        return None
    plain = text.value.replace(" ", "").replace("...", "")
    left, arrow, result = plain.partition("->")
    operands = tuple(left.split(","))
    if not arrow:
        letters = "".join(operands)
        result = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    if not all(part.isalpha() or not part for part in (*operands, result)):
        return None
    return Equation(operands, result)


def operands_of(made: Made) -> tuple[Value, ...]:
    """The arrays that an ``einsum`` is given."""
    arrays = made.inputs[1:]
    if len(arrays) == 1 and isinstance(arrays[0], Sequence):
        return arrays[0].items or ()
    return arrays
