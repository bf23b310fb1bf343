"""Between abstract values and the sizes, axes and bounds that layouts speak of."""

from __future__ import annotations

from memlint.analysis.axes import NOT_KNOWN, NotKnown, Size
from memlint.analysis.linear import linear, of_linear, symbol_value
from memlint.analysis.values import (
    LARGEST,
    Absent,
    Const,
    Linear,
    Sequence,
    Symbol,
    Tensor,
    Value,
)


def size_of(value: Value) -> Size:
    """A size: an integer, a symbol, a linear form, or ``None`` where it is not known."""
    form = linear(value)
    if form is None:
        return None
    if not form.terms:
        return form.offset
    if form.offset == 0 and len(form.terms) == 1 and form.terms[0][1] == 1:
        return form.terms[0][0]
    return form


def value_of(size: Size) -> Value | None:
    """The value that a size is, where it is known."""
    if type(size) is int:
        return Const(size)
    if isinstance(size, Symbol):
        return symbol_value(size)
    return of_linear(size) if isinstance(size, Linear) else None


def integer(value: Value, default: int | None = None) -> int | None:
    """A constant integer; ``default`` where the argument is absent."""
    if isinstance(value, Absent):
        return default
    if isinstance(value, Const) and type(value.value) is int and abs(value.value) <= LARGEST:
        return value.value
    return None


def integers(values: tuple[Value, ...] | None) -> tuple[int | None, ...] | None:
    """Constant integers, each ``None`` where it is not one."""
    return None if values is None else tuple(integer(value) for value in values)


def flag(value: Value, default: bool) -> bool | None:
    """A constant truth value; ``default`` where the argument is absent."""
    if isinstance(value, Absent):
        return default
    if isinstance(value, Const) and type(value.value) is bool:
        return value.value
    return None


def bound(value: Value) -> Size | NotKnown:
    """A bound of a slice: ``None`` where it is absent."""
    if isinstance(value, Const) and value.value is None:
        return None
    size = size_of(value)
    return NOT_KNOWN if size is None else size


def shape_of(values: tuple[Value, ...] | None) -> tuple[Size, ...] | None:
    """Sizes given one by one or as one sequence; ``None`` where their number is not known."""
    if values is None:
        return None
    if len(values) == 1:
        only = values[0]
        if isinstance(only, Sequence):
            return None if only.items is None else tuple(size_of(v) for v in only.items)
        size = size_of(only)
        return None if size is None else (size,)
    if any(isinstance(value, Tensor | Sequence) for value in values):
        return None
    return tuple(size_of(value) for value in values)


def axes_of(value: Value) -> tuple[int, ...] | None:
    """One axis or several; ``None`` where one of them is not known."""
    one = integer(value)
    if one is not None:
        return (one,)
    if isinstance(value, Sequence) and value.items is not None:
        found = [integer(item) for item in value.items]
        known = [axis for axis in found if axis is not None]
        return tuple(known) if len(known) == len(found) else None
    return None
