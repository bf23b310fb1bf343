"""How far apart the elements lie that workers store side by side."""

from __future__ import annotations

import ast

from memlint.analysis.axes import Layout, Size
from memlint.analysis.events import Loop, SlotStore
from memlint.analysis.knowledge import SliceValue
from memlint.analysis.linear import linear
from memlint.analysis.locality import DOUBLE, itemsize, layout_of
from memlint.analysis.values import (
    Const,
    Linear,
    Ref,
    Symbol,
    Tensor,
    Unknown,
    Value,
    alternatives,
    deps_of,
)
from memlint.analysis.walking import walk
from memlint.late_dataclass import dataclass

# A machine has no more workers than this, so that a loop of as many iterations may be one over
# workers; a longer one is not.
MOST_WORKERS = 256
FEW_STORES = 16


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a worker's element lies: ``distance`` bytes from the next worker's.

    ``seen`` tells that the array's making is known, ``exact`` that the size of its elements is.
    """

    axis: int
    symbol: Symbol
    distance: int
    itemsize: int
    seen: bool
    exact: bool
    sizes: tuple[Size, ...] | None


def slot_of(store: SlotStore) -> Slot | None:
    """The slot that a store goes to; ``None`` where it is not one per worker, or not known."""
    found = [_slot_in(store, one) for one in alternatives(store.access.value)]
    known = [one for one in found if one is not None]
    return min(known, key=lambda one: one.distance) if len(known) == len(found) else None


def _slot_in(store: SlotStore, value: Value) -> Slot | None:
    index = store.access.index
    symbols = [_worker_symbol(item, store) for item in index]
    axes = [axis for axis, symbol in enumerate(symbols) if symbol is not None]
    if len(axes) != 1 or any(_is_field(item) for item in index):
        return None
    axis = axes[0]
    item, symbol = index[axis], symbols[axis]
    form = None if isinstance(item, SliceValue) else linear(item)
    if form is None or symbol is None:
        return None
    seen = isinstance(value, Tensor)
    if not seen and len(index) > 1:
        return None
    layout, _ = layout_of(value, len(index))
    stride = _stride(layout, axis, len(index))
    step = _step(store.spread, symbol)
    if stride is None or step is None:
        return None
    size = itemsize(value.dtype) if isinstance(value, Tensor) else None
    width = size or DOUBLE
    distance = abs(form.coefficient(symbol) * step * stride) * width
    return Slot(axis, symbol, distance, width, seen, size is not None, layout.sizes)


def _worker_symbol(item: Value | SliceValue, store: SlotStore) -> Symbol | None:
    """The number of a worker that an index is computed from, and from no other worker's."""
    form = None if isinstance(item, SliceValue) else linear(item)
    if form is None:
        return None
    numbers = form.symbols & store.workers.symbols
    numbers |= {symbol for symbol in form.symbols if symbol.kind == "thread"}
    return next(iter(numbers)) if len(numbers) == 1 else None


def _is_field(item: Value | SliceValue) -> bool:
    return isinstance(item, Const) and isinstance(item.value, str)


def _stride(layout: Layout, axis: int, rank: int) -> int | None:
    """Elements from one position of an axis to the next, where that is known."""
    if layout.axes is None or len(layout.axes) != rank:
        return None
    one = layout.axes[axis]
    if one.memory is None or one.step is None:
        return None
    stride = one.step
    for size in layout.memory[one.memory + 1 :]:
        if not isinstance(size, int):
            return None
        stride *= size
    return stride


def _step(spread: Loop | None, symbol: Symbol) -> int | None:
    """How far the numbers of two workers are apart at least."""
    if spread is None or spread.symbol is not symbol:
        return 1
    step = spread.step
    return abs(step.value) if isinstance(step, Const) and type(step.value) is int else None


def stored_each_time(store: SlotStore, slot: Slot) -> bool:
    """Whether the element is written to memory on many iterations, not once at the end of a
    loop that keeps it in a register."""
    loops = [
        loop
        for loop in store.worker_loops
        if (loop.trips is None or loop.trips > FEW_STORES) and not _fills_few(loop, store, slot)
    ]
    by_thread = slot.symbol.kind == "thread"
    if by_thread and store.spread is not None and not loops:
        if _few(store.spread.stop) or _runs_shares(store.spread):
            return False
        loops = [store.spread]
    if not loops:
        return False
    if store.compiled is None or store.access.conditional:
        return True
    if by_thread and _within(slot.symbol, loops[-1]):
        return True
    running = {loop.symbol for loop in loops}
    if by_thread and store.spread is not None:
        running.add(store.spread.symbol)
    others = [item for axis, item in enumerate(store.access.index) if axis != slot.axis]
    several = [v for v in others if not isinstance(v, SliceValue) and len(alternatives(v)) > 1]
    return (bool(several) and _chosen_in(loops[-1], store)) or any(
        _varies(item, running) for item in others
    )


def _runs_shares(spread: Loop) -> bool:
    """Whether each iteration of a parallel loop runs a loop over its share of the work, from
    and to where its number says: ``range(w * span, (w + 1) * span)``, ``range(w, n, workers)``."""
    names = {spread.variable}
    for node in walk(spread.node):
        if isinstance(node, ast.Assign) and _mentions(node.value, names):
            names.update(one.id for one in node.targets if isinstance(one, ast.Name))
        match node:
            case ast.For(iter=ast.Call(args=[start, stop, *rest])):
                if _mentions(start, names) and (rest or _mentions(stop, names)):
                    return True
    return False


def _mentions(node: ast.expr, names: set[str]) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id in names for inner in walk(node))


def _chosen_in(loop: Loop, store: SlotStore) -> bool:
    """Whether a name in the subscript is bound in the loop: ``k = 1 if x[i] > 0 else 0``."""
    names = {one.id for one in walk(store.access.node) if isinstance(one, ast.Name)}
    return any(
        isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and one.id in names
        for statement in getattr(loop.node, "body", [])
        for one in walk(statement)
    )


def _fills_few(loop: Loop, store: SlotStore, slot: Slot) -> bool:
    """Whether each iteration stores to an element of its own, of which there are few."""
    for axis, item in enumerate(store.access.index):
        form = None if isinstance(item, SliceValue) else linear(item)
        if form is not None and axis != slot.axis and loop.symbol in form.symbols:
            size = slot.sizes[axis] if slot.sizes is not None else None
            return isinstance(size, int) and size <= FEW_STORES
    return False


def _within(symbol: Symbol, loop: Loop) -> bool:
    """Whether the thread is asked for anew on each iteration of a loop."""
    first, last = getattr(loop.node, "lineno", 0), getattr(loop.node, "end_lineno", 0)
    return bool(first <= getattr(symbol.site.node, "lineno", 0) <= last)


def _varies(item: Value | SliceValue, running: set[Symbol]) -> bool:
    if isinstance(item, SliceValue):
        return False
    return bool(deps_of(item) & running) or any(isinstance(v, Tensor) for v in alternatives(item))


def one_per_worker(store: SlotStore, slot: Slot) -> bool:
    """Whether the iterations of a parallel loop are known to be workers, one for each thread
    or so, and not the elements of a long result."""
    spread = store.spread
    if slot.symbol.kind == "thread" or spread is None:
        return True
    if _few(spread.stop) or _few_in(slot):
        return True
    return any(_shares_out(loop, spread) for loop in store.worker_loops)


def _few(value: Value) -> bool:
    return all(_counts_workers(one) for one in alternatives(value))


def _few_in(slot: Slot) -> bool:
    size = slot.sizes[slot.axis] if slot.sizes is not None else None
    if isinstance(size, Symbol):
        return size.kind == "workers"
    return isinstance(size, int) and size <= MOST_WORKERS


def _counts_workers(value: Value) -> bool:
    match value:
        case Const(int() as number):
            return number <= MOST_WORKERS
        case Linear(terms=terms):
            return all(symbol.kind == "workers" for symbol, _ in terms)
        case Ref(name):
            return name.endswith("NUM_THREADS")
    return False


def _shares_out(loop: Loop, spread: Loop) -> bool:
    """Whether a loop runs over one worker's share: ``range(w * span, (w + 1) * span)`` with
    ``span = n // workers``, or ``range(w, n, workers)``."""
    deps = deps_of(loop.start) | deps_of(loop.stop)
    if spread.stop_text and any(
        symbol.kind == "quotient" and symbol.name == spread.stop_text for symbol in deps
    ):
        return True
    own = linear(loop.start)
    if own is None or own.symbols != {spread.symbol}:
        return False
    if spread.stop_text and loop.step_text == spread.stop_text:
        return True
    return not isinstance(spread.stop, Unknown) and loop.step == spread.stop
