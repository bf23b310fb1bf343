"""Arithmetic of linear forms, the integers that are known up to symbols."""

from __future__ import annotations

from memlint.analysis.values import LARGEST, Const, Linear, Symbol, Unknown, Value


def linear(value: Value) -> Linear | None:
    """``value`` as a linear form, where it is an integer or one already."""
    if isinstance(value, Linear):
        return value
    if isinstance(value, Const) and type(value.value) is int and abs(value.value) <= LARGEST:
        return Linear((), value.value)
    return None


def of_linear(form: Linear) -> Value:
    """A linear form as a value: a constant where it has no terms."""
    if any(abs(number) > LARGEST for number in (form.offset, *(c for _, c in form.terms))):
        return Unknown("int")
    return form if form.terms else Const(form.offset)


def symbol_value(symbol: Symbol) -> Linear:
    """The value of a symbol by itself."""
    return Linear(((symbol, 1),))


def add(left: Linear, right: Linear, sign: int = 1) -> Linear:
    """``left + sign * right``."""
    terms = dict(left.terms)
    for symbol, coefficient in right.terms:
        terms[symbol] = terms.get(symbol, 0) + sign * coefficient
    kept = sorted(((s, c) for s, c in terms.items() if c), key=lambda term: term[0].name)
    return Linear(tuple(kept), left.offset + sign * right.offset)


def scale(form: Linear, factor: int) -> Linear:
    """``factor * form``."""
    if factor == 0:
        return Linear(())
    return Linear(tuple((s, c * factor) for s, c in form.terms), form.offset * factor)
