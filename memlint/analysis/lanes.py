"""What the neighbouring threads of a GPU touch: neighbouring elements, or whole rows apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.axes import fastest_axis
from memlint.analysis.events import LaneAccess
from memlint.analysis.knowledge import SliceValue
from memlint.analysis.linear import linear
from memlint.analysis.locality import CACHED_BYTES, bytes_of, layout_of
from memlint.analysis.values import Value, alternatives, deps_of, made_of, must_be
from memlint.analysis.walking import walk
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern
from memlint.rule import Replacement

# How neighbours along x lie: next to each other, a row apart, or not known.
TOGETHER, APART, NEUTRAL = "together", "apart", "neutral"


@dataclass(frozen=True, slots=True)
class Judged:
    """An access, how the neighbours of a warp lie in it, and whether its layout is assumed."""

    access: LaneAccess
    kind: str
    assumed: bool


def judge(access: LaneAccess) -> Judged:
    """How the neighbours along x lie in an access that both x and another axis drive."""
    if must_be(access.block_width, 1) or any(isinstance(i, SliceValue) for i in access.index):
        return Judged(access, NEUTRAL, assumed=True)
    found = [_judge_in(access, one) for one in alternatives(access.value)]
    kinds = {kind for kind, _ in found}
    kind = next((one for one in (TOGETHER, NEUTRAL) if one in kinds), APART)
    return Judged(access, kind, any(assumed for _, assumed in found))


def _judge_in(access: LaneAccess, value: Value) -> tuple[str, bool]:
    layout, assumed = layout_of(value, len(access.index))
    if len(access.index) == 1:
        item = access.index[0]
        return (NEUTRAL if isinstance(item, SliceValue) else _flat(item, access)), True
    fast = fastest_axis(layout)
    if fast is None or layout.rank != len(access.index):
        return NEUTRAL, assumed
    size = bytes_of(layout.sizes, getattr(value, "dtype", None)) if layout.sizes else None
    if size is not None and size <= CACHED_BYTES:
        return NEUTRAL, assumed
    lanes = [_lanes(item, access) for item in access.index]
    if "x" in lanes[fast]:
        return TOGETHER, assumed
    driven = [axis for axis, found in enumerate(lanes) if "x" in found]
    if lanes[fast] and driven and all(lanes[axis] == {"x"} for axis in driven):
        return APART, assumed
    return NEUTRAL, assumed


def _lanes(item: Value | SliceValue, access: LaneAccess) -> set[str]:
    """The axes of the thread's place that an index is computed from, also as the start of a
    loop that strides over the grid."""
    if isinstance(item, SliceValue):
        return set()
    starts = {loop.symbol: deps_of(loop.start) for loop in access.loops}
    deps = set(deps_of(item))
    for symbol in deps_of(item):
        deps |= starts.get(symbol, frozenset())
    return {symbol.name for symbol in deps if symbol.kind == "lane"}


def _flat(item: Value, access: LaneAccess) -> str:
    """``row * width + column`` in an array of one axis."""
    form = linear(item)
    if form is not None:
        by_axis = {symbol.name: abs(c) for symbol, c in form.terms if symbol.kind == "lane"}
        others = [c for axis, c in by_axis.items() if axis != "x"]
        if "x" not in by_axis or not others:
            return NEUTRAL
        if by_axis["x"] == 1:
            return TOGETHER
        return APART if 1 in others else NEUTRAL
    made = made_of(item)
    if made is None or made.name != "operator.add" or len(made.inputs) != 2:
        return NEUTRAL
    for scaled, rest in (made.inputs, made.inputs[::-1]):
        product = made_of(scaled)
        if product is None or product.name != "operator.multiply":
            continue
        rows, columns = _lanes(scaled, access), _lanes(rest, access)
        if "x" in columns and rows:
            return TOGETHER
        if rows == {"x"} and columns:
            return APART
    return NEUTRAL


def swapped_grid(kernel: ast.AST) -> Replacement | None:
    """``i, j = cuda.grid(2)`` with its names the other way round."""
    found: list[ast.Tuple] = []
    for node in walk(kernel):
        match node:
            case ast.Assign(
                targets=[ast.Tuple() as target],
                value=ast.Call(func=ast.Attribute(attr="grid") | ast.Name(id="grid")),
            ) if all(isinstance(one, ast.Name) for one in target.elts):
                found.append(target)
    if len(found) != 1:
        return None
    return Replacement(found[0], ", ".join(ast.unparse(one) for one in reversed(found[0].elts)))


_KERNEL = late_pattern(r"__global__")
_PLACE = late_pattern(r"\b(\w+)\s*=\s*([^;=]*\bthreadIdx\.[xyz][^;]*);")
_PICK = late_pattern(r"\b(\w+)\s*\[\s*\(?\s*(\w+)\s*\*\s*\w+\s*\)?\s*\+\s*(\w+)\s*\]")
_NAME = late_pattern(r"__global__[^(]*?(\w+)\s*\(")


@dataclass(frozen=True, slots=True)
class SourceAccess:
    """An access in the source of a CUDA kernel whose neighbours lie a row apart."""

    kernel: str
    text: str


def apart_in_source(source: str) -> Iterator[SourceAccess]:
    """The kernels of a CUDA source that take ``threadIdx.x`` for the row, one access of each."""
    starts = [match.start() for match in _KERNEL.finditer(source)]
    for start, end in zip(starts, [*starts[1:], len(source)], strict=True):
        body = source[start:end]
        if "__shared__" in body:
            continue
        axes = {
            name: {axis for axis in "xyz" if f"threadIdx.{axis}" in value}
            for name, value in _PLACE.findall(body)
        }
        picks = [
            (match[0], axes.get(match[2], set()), axes.get(match[3], set()))
            for match in _PICK.finditer(body)
        ]
        if any("x" in column and row for _, row, column in picks):
            continue
        named = _NAME.search(body)
        for text, row, column in picks:
            if row == {"x"} and column:
                yield SourceAccess(named[1] if named else "", text)
                break
