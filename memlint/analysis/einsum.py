"""Equations of ``einsum``."""

from __future__ import annotations

from memlint.analysis.values import Const, Made, Sequence, Value
from memlint.late_dataclass import dataclass

EINOPS = "einops.einsum"


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
    if made.name == EINOPS:
        return _named_equation(made)
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


def _named_equation(made: Made) -> Equation | None:
    """That of ``einops.einsum(q, k, "b i d, b j d -> b i j")``, with a letter for each name."""
    text = made.inputs[-1] if made.inputs else made.get("pattern")
    if not isinstance(text, Const) or not isinstance(text.value, str) or "(" in text.value:
        return None
    left, arrow, right = text.value.replace("...", "").partition("->")
    if not arrow:
        return None
    letters: dict[str, str] = {}
    parts = [
        "".join(letters.setdefault(name, chr(ord("a") + len(letters))) for name in part.split())
        for part in (*left.split(","), right)
    ]
    return Equation(tuple(parts[:-1]), parts[-1]) if len(letters) <= 26 else None


def operands_of(made: Made) -> tuple[Value, ...]:
    """The arrays that an ``einsum`` is given."""
    if made.name == EINOPS:
        return made.inputs[:-1]
    arrays = made.inputs[1:]
    if len(arrays) == 1 and isinstance(arrays[0], Sequence):
        return arrays[0].items or ()
    return arrays
