"""Whether two forms gave the same result, up to rounding.

Arrays are those of NumPy and torch; neither is imported here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

_TOLERANCE = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 1e-3, "float64": 1e-6}


def agree(one: Any, other: Any) -> bool:
    """Whether two results are the same, up to the rounding of the less precise one."""
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(agree, one, other))
    if hasattr(one, "shape"):
        return _arrays_agree(one, other)
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=_TOLERANCE["float32"], abs_tol=1e-6)
    return bool(one == other)


def _arrays_agree(one: Any, other: Any) -> bool:
    if tuple(one.shape) != tuple(other.shape):
        return False
    tolerance = max(_TOLERANCE.get(_dtype(array), 0.0) for array in (one, other))
    first, second = _widened(one), _widened(other)
    if not tolerance:
        return bool((first == second).all())
    # The error of a sum grows with its terms: what is small beside the rest may be off by more.
    bound = tolerance * max(1.0, float(abs(second).max()) if math.prod(one.shape) else 1.0)
    return bool((abs(first - second) <= bound).all())


def _dtype(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def _widened(array: Any) -> Any:
    if hasattr(array, "detach"):
        found = array.detach().cpu()
        return found.double() if found.is_floating_point() else found
    return array.astype("float64") if array.dtype.kind == "f" else array


def bytes_in(values: Iterable[Any]) -> int:
    """The bytes of all arrays among some values, and in their tuples and lists."""
    return sum(array.nbytes for array in _arrays(values))


def _arrays(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _arrays(value)
        elif hasattr(value, "nbytes"):
            yield value
