"""In which order loops walk through memory."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from memlint.analysis.axes import Layout, Size, dense, fastest_axis, give_rank, stride_order
from memlint.analysis.events import Access, Loop, LoopNest
from memlint.analysis.knowledge import ITEMSIZE, SliceValue
from memlint.analysis.linear import linear
from memlint.analysis.values import (
    Const,
    Linear,
    Symbol,
    Tensor,
    Unknown,
    Value,
    alternatives,
    deps_of,
)
from memlint.late_dataclass import dataclass

# Loops of at most so many iterations are not driven by memory: what they touch stays in cache.
SHORT = 16
FEW_COLUMNS = 4
CACHED_BYTES = 32 * 1024
DOUBLE = 8


@dataclass(frozen=True, slots=True)
class Walk:
    """How an access walks through memory in a nest.

    ``kind`` is "dense" (along memory), "strided" (across it, while ``outer`` walks along it),
    "diagonal" (on two axes at once), "mixed" (it depends on the path) or "neutral".
    ``fast`` is the axis along which neighbours lie, ``slow`` the one that the inner loop walks.
    Neighbours are groups of ``together`` elements where an iteration takes a few of them, such
    as the channels of a pixel.
    """

    kind: str
    access: Access
    inner: Loop
    outer: Loop | None = None
    layout: Layout | None = None
    fast: int = -1
    slow: int = -1
    dtype: str | None = None
    assumed: bool = False
    array: Tensor | None = None
    together: int = 1


def long_loops(loops: tuple[Loop, ...]) -> list[Loop]:
    """The loops of a nest that are not short."""
    return [loop for loop in loops if loop.trips is None or loop.trips > SHORT]


def walk(access: Access, nest: LoopNest) -> Walk | None:
    """How ``access`` walks in the innermost long loop of a nest; ``None`` where it says nothing."""
    loops = nest.loops
    long = long_loops(loops)
    if len(long) < 2 or len(access.index) < 2:
        return None
    inner = long[-1]
    outers = [o for o in loops[: loops.index(inner)] if o.trips is None or o.trips > FEW_COLUMNS]
    found = [
        _one_walk(access, one, inner, outers, long, _components(access, nest))
        for one in alternatives(access.value)
    ]
    kinds = {one.kind for one in found}
    if len(kinds) > 1 or len({one.fast for one in found}) > 1:
        return Walk("mixed", access, inner) if kinds & {"dense", "strided"} else None
    return found[0]


def _one_walk(
    access: Access,
    value: Value,
    inner: Loop,
    outers: list[Loop],
    long: list[Loop],
    components: int,
) -> Walk:
    neutral = Walk("neutral", access, inner)
    if _takes_rows(access, value, inner):
        return Walk("dense", access, inner)
    if not all(_is_position(item) for item in access.index):
        return neutral
    layout, assumed = layout_of(value, len(access.index))
    if layout.rank != len(access.index):
        return neutral
    symbols = {loop.symbol for loop in long}
    driven = [deps_of(item) & symbols for item in access.index if not isinstance(item, SliceValue)]
    walked = [axis for axis, deps in enumerate(driven) if inner.symbol in deps]
    if not walked:
        return neutral
    if len(walked) > 1 or any(_mixes(item, symbols) for item in access.index):
        return Walk("diagonal", access, inner)
    order = stride_order(layout)
    fast = fastest_axis(layout) if order is not None else None
    if order is None or fast is None:
        return neutral
    together = 1
    if components and len(order) > 2 and fast == len(access.index) - 1 and not driven[fast]:
        together, fast = components, order[-2]
    slow = walked[0]
    if slow == fast:
        return Walk("dense", access, inner, fast=fast)
    outer = _driver(access.index[fast], outers)
    if outer is None or not (_is_linear(access.index[slow]) and _is_linear(access.index[fast])):
        return neutral
    array = value if isinstance(value, Tensor) else None
    dtype = array.dtype if array is not None else None
    return Walk(
        "strided", access, inner, outer, layout, fast, slow, dtype, assumed, array, together
    )


def _components(access: Access, nest: LoopNest) -> int:
    """How many elements of the last axis an iteration takes, where it takes the few that there
    are: ``x[i, j, c]`` for each of three ``c``, or ``x[i, j, 0]`` beside ``x[i, j, 1]``."""
    last = access.index[-1]
    if isinstance(last, SliceValue):
        return 0
    form = linear(last)
    if form is not None and form.symbols:
        inner = long_loops(nest.loops)[-1]
        within = nest.loops[nest.loops.index(inner) + 1 :]
        trips = [loop.trips for loop in within if loop.symbol in form.symbols]
        return trips[0] if len(trips) == 1 and trips[0] and trips[0] <= FEW_COLUMNS else 0
    taken = {
        item.value
        for other in nest.accesses
        if other.array == access.array and len(other.index) == len(access.index)
        for item in other.index[-1:]
        if isinstance(item, Const) and type(item.value) is int
    }
    first, *rest = sorted(taken) or [1]
    return len(taken) if first == 0 and rest and rest[-1] < FEW_COLUMNS else 0


def _takes_rows(access: Access, value: Value, inner: Loop) -> bool:
    """Whether each iteration takes a part that lies along memory: ``a[i, p:q]``."""
    if not any(isinstance(item, SliceValue) for item in access.index):
        return False
    layout, _ = layout_of(value, len(access.index))
    fast = fastest_axis(layout)
    if fast is None or layout.rank != len(access.index):
        return False
    return isinstance(access.index[fast], SliceValue) and inner.symbol in _index_deps(access)


def layout_of(value: Value, rank: int) -> tuple[Layout, bool]:
    """The layout of an array that is indexed with ``rank`` positions, and whether it is assumed:
    what nothing is known of counts as row-major."""
    if isinstance(value, Tensor):
        if value.layout.opaque or value.layout.rank is not None:
            return value.layout, value.assumed
        return give_rank(value.layout, rank), value.assumed
    return dense((None,) * rank), True


def _is_position(item: Value | SliceValue) -> bool:
    """Whether an item of a subscript is one position, as far as can be told."""
    if isinstance(item, SliceValue):
        return False
    return all(
        isinstance(one, (Linear, Unknown))
        or (isinstance(one, Const) and type(one.value) is int)
        or (isinstance(one, Tensor) and one.layout.rank in (0, None))
        for one in alternatives(item)
    )


def _is_linear(item: Value | SliceValue) -> bool:
    return not isinstance(item, SliceValue) and all(
        linear(one) is not None for one in alternatives(item)
    )


def _mixes(item: Value | SliceValue, symbols: set[Symbol]) -> bool:
    """Whether a linear index depends on two long loops."""
    if isinstance(item, SliceValue):
        return False
    forms = [linear(one) for one in alternatives(item)]
    return any(form is not None and len(form.symbols & symbols) > 1 for form in forms)


def _driver(item: Value | SliceValue, outers: list[Loop]) -> Loop | None:
    """The one outer loop that an index depends on."""
    if isinstance(item, SliceValue):
        return None
    deps = deps_of(item)
    drivers = [loop for loop in outers if loop.symbol in deps]
    return drivers[0] if len(drivers) == 1 else None


def worth_telling(found: Walk, nest: LoopNest) -> bool:
    """Whether a strided walk costs anything: not on small arrays, nor where the bounds of the
    loops depend on each other, nor in windows, nor on a table that is walked again and again."""
    outer, inner, layout, loops = found.outer, found.inner, found.layout, nest.loops
    if outer is None or layout is None or layout.sizes is None:
        return False
    wide, high = layout.sizes[found.fast], layout.sizes[found.slow]
    if (isinstance(wide, int) and wide <= FEW_COLUMNS) or (isinstance(high, int) and high <= SHORT):
        return False
    if outer.symbol in _bound_deps(inner) or inner.symbol in _bound_deps(outer):
        return False
    if is_window(inner, loops) or _is_reused(found, nest) or _is_triangular(long_loops(loops)):
        return False
    total = bytes_of(layout.sizes, found.dtype)
    return total is None or total > CACHED_BYTES


def _is_reused(found: Walk, nest: LoopNest) -> bool:
    """Whether a loop around the two moves on through other arrays but not through this one."""
    assert found.outer is not None
    around = long_loops(nest.loops[: nest.loops.index(found.outer)])
    own = _index_deps(found.access)
    others = [_index_deps(access) for access in nest.accesses]
    return any(
        loop.symbol not in own and any(loop.symbol in deps for deps in others) for loop in around
    )


def _index_deps(access: Access) -> frozenset[Symbol]:
    return frozenset[Symbol]().union(
        *(deps_of(item) for item in access.index if not isinstance(item, SliceValue))
    )


def _bound_deps(loop: Loop) -> frozenset[Symbol]:
    return deps_of(loop.start) | deps_of(loop.stop)


def is_window(loop: Loop, loops: tuple[Loop, ...]) -> bool:
    """Whether a loop runs over a part of an axis that another loop moves on: a tile, a sliding
    window, a segment.  A worker's share of all the work, cut out by a division, is none."""
    bounds = deps_of(loop.start) | deps_of(loop.stop)
    share = any(symbol.kind == "quotient" for symbol in bounds)
    moving = deps_of(loop.start) & deps_of(loop.stop)
    return any(
        other.symbol in moving and not (share and other.kind == "prange")
        for other in loops
        if other is not loop
    )


def _is_triangular(loops: list[Loop]) -> bool:
    """Whether one of the loops starts or ends where another one is, but not both."""
    symbols = {loop.symbol for loop in loops}
    return any((deps_of(one.start) ^ deps_of(one.stop)) & symbols for one in loops)


def itemsize(dtype: str | None) -> int | None:
    """Bytes of one element."""
    return ITEMSIZE.get(dtype) if dtype is not None else None


def bytes_of(sizes: tuple[Size, ...], dtype: str | None) -> int | None:
    """The bytes of an array whose sizes are all known; elements count as 8 bytes if need be."""
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) != len(sizes):
        return None
    return prod(known) * (itemsize(dtype) or DOUBLE)


def size_text(size: Size) -> str:
    """A size in words for a message, empty where it is not known."""
    if isinstance(size, int):
        return str(size)
    return size.name if isinstance(size, Symbol) and size.kind == "size" else ""


def arrays_in(value: Value | None) -> Iterator[Value]:
    """What each alternative of a looped-over value is, ``zip`` and ``map`` taken apart."""
    from memlint.analysis.values import Object

    for one in alternatives(value) if value is not None else ():
        if isinstance(one, Object) and one.cls in ("builtins.zip", "builtins.map"):
            for key, part in one.facts:
                if key.isdigit():
                    yield from arrays_in(part)
        else:
            yield one
