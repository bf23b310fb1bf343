"""What a launch is handed: the arrays behind its arguments, and the strides that go along."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from collections.abc import Sequence as Listing

from memlint.analysis.interpreter.machine import text_of
from memlint.analysis.values import (
    Const,
    Linear,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Value,
    alternatives,
    join,
)
from memlint.analysis.walking import walk
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

POINTER, STRIDES = "memlint.pointer", "memlint.strides"
# An array by its address (numpy's ``ctypes`` attribute is one), or its strides.
POINTERS = frozenset({POINTER, "numpy.ctypeslib"})
MOST_ITEMS = 32
STRIDE_NAME = late_pattern(r"stride|pitch|(?:^|_)ld[abcxyz]?$")
_NAMING = late_pattern(r"_?(?:strides?|pitch|ld)_?")
_LENGTH = late_pattern(r"(.+)\.shape\[(-?\d+)\]")
_POINTER_AFFIX = late_pattern(r"^p_|_?(?:ptrs?|pointer|tensor)$")


@dataclass(frozen=True, slots=True)
class Given:
    """One argument: where it is written, its value, the parameter that takes it if known.

    ``unseen`` where it is not written in the call itself (``**options``): ``node`` is the call.
    """

    node: ast.AST
    value: Value
    parameter: str | None = None
    unseen: bool = False

    @property
    def label(self) -> str:
        """What the argument is called: by the parameter, or else by the variable given."""
        if self.parameter is not None:
            return self.parameter.lower()
        match self.node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name.lower()
        return ""

    @property
    def text(self) -> str:
        """The text of the array that is handed over."""
        for one in alternatives(self.value):
            if isinstance(one, Object) and one.cls in POINTERS:
                text = one.fact("text")
                if isinstance(text, Const):
                    return str(text.value)
        if self.unseen and self.parameter is not None:
            return self.parameter
        return text_of(self.node)


def spread(value: Value) -> Iterator[Value]:
    """An argument's parts: those of tuples and lists that are known item by item."""
    if not isinstance(value, Sequence):
        yield value
    elif value.items is None:
        yield value.element
    elif len(value.items) <= MOST_ITEMS:
        for item in value.items:
            yield from spread(item)


def array_behind(value: Value) -> Value:
    """The array that an address leads to; any other value as it is."""
    found = [
        one.fact("of") if isinstance(one, Object) and one.cls in POINTERS else one
        for one in alternatives(value)
    ]
    return join(found) if len(found) > 1 else found[0]


def is_pointer(value: Value) -> bool:
    """Whether ``value`` is an address."""
    return any(isinstance(v, Object) and v.cls in POINTERS for v in alternatives(value))


def is_strides(value: Value) -> bool:
    """Whether ``value`` is strides, one of them, or a number worked out from them."""
    return any(isinstance(v, Object) and v.cls == STRIDES for v in alternatives(value))


def with_strides(given: Listing[Given]) -> list[bool]:
    """Whether the strides of each argument are handed over in the same call."""
    texts: set[str] = set()
    arrays: set[int] = set()
    for one in given:
        for strides in _strides_in(one.value):
            arrays.update(id(v) for v in alternatives(strides.fact("of")))
            text = strides.fact("text")
            if isinstance(text, Const):
                texts.add(str(text.value))
        texts.update(_strides_written(one.node))
    named = _strides_by_name(given)
    widths = frozenset[tuple[str, str]]().union(*(_widths(one.value) for one in given))
    return [
        one.text in texts
        or _looks_into(array_behind(one.value), texts)
        or (bool(widths) and _pitch_given(array_behind(one.value), widths))
        or any(id(v) in arrays for v in alternatives(array_behind(one.value)))
        or index in named
        for index, one in enumerate(given)
    ]


def _widths(value: Value) -> set[tuple[str, str]]:
    """The lengths of axes that are handed over: of which array, and which axis."""
    found = set()
    for one in alternatives(value):
        if isinstance(one, Linear) and not one.offset and len(one.terms) == 1:
            symbol, count = one.terms[0]
            length = _LENGTH.fullmatch(symbol.name)
            if symbol.kind == "size" and count == 1 and length is not None:
                found.add((length[1], length[2]))
    return found


def _looks_into(value: Value, texts: set[str]) -> bool:
    """Whether a view steps through memory as arrays do whose strides are handed over."""
    return bool(texts) and all(
        isinstance(one, Tensor) and one.born is not None and _base(one.born) in texts
        for one in alternatives(value)
    )


def _base(view: ast.AST) -> str:
    """The text of the array that a view looks into."""
    match view:
        case ast.Subscript(value=base) | ast.Attribute(value=base):
            return text_of(base)
        case ast.Call(func=ast.Attribute(value=base), args=args):
            whole = isinstance(base, ast.Name) and base.id in ("torch", "np", "numpy", "cupy", "cp")
            return text_of(args[0] if whole and args else base)
    return ""


def _pitch_given(value: Value, widths: frozenset[tuple[str, str]]) -> bool:
    """Whether columns were cut out of arrays whose width, their pitch, is handed over."""
    return all(
        isinstance(one, Tensor) and one.born is not None and not widths.isdisjoint(_cut(one.born))
        for one in alternatives(value)
    )


def _cut(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The array and the axis (by the numbers that it may have) of which a part was cut out."""
    match node:
        case ast.Subscript(value=base, slice=ast.Tuple(elts=[*first, ast.Slice(step=None)])):
            yield text_of(base), "-1"
            plain = not any(isinstance(e, ast.Constant) and e.value is ... for e in first)
            yield from ((text_of(base), str(n)) for n in ([len(first)] if plain else range(1, 5)))
        case ast.Call(func=ast.Attribute(attr="chunk" | "split" | "narrow")):
            yield from ((_base(node), str(n)) for n in (-1, *range(1, 5)))


def _strides_in(value: Value, depth: int = 0) -> Iterator[Object]:
    for one in alternatives(value):
        if isinstance(one, Object) and one.cls == STRIDES:
            yield one
        elif depth > 2:
            continue
        elif isinstance(one, Sequence):
            for item in one.items or (one.element,):
                yield from _strides_in(item, depth + 1)
        elif isinstance(one, Mapping):
            for _, item in one.items:
                yield from _strides_in(item, depth + 1)
        elif isinstance(one, Object) and one.cls not in POINTERS:
            for _, item in one.facts:
                yield from _strides_in(item, depth + 1)


def _strides_written(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.Name, ast.Constant)):
        return
    for part in walk(node):
        if isinstance(part, ast.Attribute) and part.attr in ("stride", "strides", "strides_as"):
            yield text_of(part.value)


def _strides_by_name(given: Listing[Given]) -> set[int]:
    """The arguments that a parameter called after them, or after no other, takes strides of."""
    labels = [one.label for one in given]
    arrays = [
        index
        for index, one in enumerate(given)
        if any(isinstance(v, Tensor) for v in alternatives(array_behind(one.value)))
        or _POINTER_AFFIX.search(labels[index])
    ]
    found: set[int] = set()
    for place, label in enumerate(labels):
        if not STRIDE_NAME.search(label) or place in arrays:
            continue
        named = {index for index in arrays if _named_after(label, labels[index])}
        found |= named or {index for index in arrays if index < place}
    return found


def _named_after(stride: str, array: str) -> bool:
    """``stride_qz`` and ``q_row_stride`` are named after ``q`` and ``q_ptr``."""
    base = _POINTER_AFFIX.sub("", array)
    rest = _NAMING.sub("_", stride).strip("_")
    if not base or not rest:
        return False
    if rest.startswith(base + "_") or rest.endswith("_" + base):
        return True
    for token in rest.split("_"):
        if token.startswith(base) and len(token) - len(base) <= 2:
            return True
        if len(token) == 2 and token[0] == base[0] and len(base) > 2:
            return True
    return False


def column_major(value: Value) -> bool:
    """Whether the program asked for column-major order by name where it made the array."""
    return all(
        isinstance(one, Tensor) and one.born is not None and _asks_for_columns(one.born)
        for one in alternatives(value)
    )


def _asks_for_columns(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = text_of(node.func).rpartition(".")[2]
    return name == "asfortranarray" or any(
        k.arg in ("order", "requirements") and "F" in text_of(k.value) for k in node.keywords
    )
