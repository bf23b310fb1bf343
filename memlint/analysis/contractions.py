"""Matrix products that loops compute one multiplication at a time.

A *sum* here is an operation that adds the product of two elements to what was there.  It makes
a matrix product where the two elements share the loop that is summed over, each of them has a
loop of its own besides, and the result is stored by just those two.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from memlint.analysis.elements import (
    Element,
    axes_of,
    element_of,
    factors,
    is_plain_object,
    stored_element,
)
from memlint.analysis.events import Called, Loop
from memlint.analysis.locality import SHORT
from memlint.analysis.values import (
    Const,
    Made,
    Sequence,
    Symbol,
    Tensor,
    Value,
    alternatives,
    deps_of,
    made_of,
)

SUMS = frozenset({"builtins.sum", "numpy.sum", "math.fsum", "torch.sum"})
ADDITIONS = frozenset(
    {"operator.iadd", "operator.isubtract", "operator.add", "operator.subtract", *SUMS}
)
STORES = frozenset({"operator.setitem", ".append"})
INTEGERS = frozenset(
    {"bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"}
)
# What a sum may go through before it is stored: a bias is added, an activation taken.
THROUGH = ("operator.", "math.", "numpy.", "torch.", "builtins.", ".item")
DEPTH = 6


@dataclass(frozen=True, slots=True)
class Sum:
    """An addition of a product of two elements: ``loops`` are those around it, ``partial`` the
    indices of those on whose iterations it may not run."""

    called: Called
    left: Element
    right: Element
    loops: Mapping[Symbol, Loop]
    partial: frozenset[Symbol]


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """A matrix product written as loops.

    ``result`` is the element that is stored, ``None`` where a list is built.  ``rows`` are the
    loops of the left factor alone, ``columns`` those of the right one alone, ``summed`` those
    that both have and the result has not, ``shared`` those that all three have.
    """

    total: Sum
    result: Element | None
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    summed: tuple[Loop, ...]
    shared: tuple[Loop, ...]
    store: ast.AST

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops of the product."""
        return (*self.rows, *self.columns, *self.summed)


@dataclass(slots=True)
class Products:
    """Collects operations, and finds the matrix products among them."""

    told: dict[Symbol, Loop] = field(default_factory=dict)
    _additions: list[Called] = field(default_factory=list)
    _stores: list[Called] = field(default_factory=list)

    def note(self, called: Called) -> None:
        """Keep an operation that adds or stores."""
        if called.name in STORES:
            self._stores.append(called)
        if called.name in ADDITIONS:
            self._additions.append(called)

    def found(self) -> Iterator[MatrixProduct]:
        """Each matrix product, in the order of its additions."""
        sums: dict[int, list[Sum]] = {}
        for called in self._additions:
            total = self._sum(called)
            if total is None:
                continue
            sums.setdefault(id(called.node), []).append(total)
            yield from self._stored_at_once(total)
        if not sums:
            return
        for called in self._stores:
            value = called.args.get("", 0)
            for node in _came_out_of(value, set()):
                for total in sums.get(id(node), ()):
                    yield from self._stored_by(total, called)

    def _sum(self, called: Called) -> Sum | None:
        loops = {one.loop.symbol: one.loop for one in called.context.loops}
        for added in _added(called):
            inside = dict(loops)
            if called.name in SUMS:
                inside.update(self.told)
            pair = _two_elements(added, frozenset(inside))
            if pair is not None:
                partial = frozenset(
                    one.loop.symbol for one in called.context.loops if one.conditional
                )
                return Sum(called, *pair, inside, partial)
        return None

    def _stored_at_once(self, total: Sum) -> Iterator[MatrixProduct]:
        called = total.called
        key = called.args.keywords.get("key")
        if isinstance(key, Sequence) and key.items is not None:
            target = called.node.target if isinstance(called.node, ast.AugAssign) else called.node
            result = stored_element(target, called.args.get("", 0), key.items)
            yield from self._product(total, result, frozenset(total.loops), called.node)
        elif called.name in SUMS:
            # A list of lists is built around it.
            built = [one.loop for one in called.context.loops]
            if built and not any(isinstance(one.node, ast.stmt) for one in built):
                around = frozenset(one.symbol for one in built)
                yield from self._product(total, None, around, called.node)

    def _stored_by(self, total: Sum, store: Called) -> Iterator[MatrixProduct]:
        around = frozenset(one.loop.symbol for one in store.context.loops)
        if any(one.conditional and one.loop.symbol in total.loops for one in store.context.loops):
            return
        key = store.args.keywords.get("key")
        if store.name == ".append":
            yield from self._product(total, None, around, store.node)
        elif isinstance(key, Sequence) and key.items is not None:
            result = stored_element(store.node, store.args.get("", 1), key.items)
            yield from self._product(total, result, around, store.node)

    def _product(
        self, total: Sum, result: Element | None, around: frozenset[Symbol], store: ast.AST
    ) -> Iterator[MatrixProduct]:
        loops = frozenset(total.loops)
        left, right = axes_of(total.left, loops), axes_of(total.right, loops)
        if left is None or right is None:
            return
        kept = frozenset((*left, *right)) & around
        if result is not None:
            stored = axes_of(result, around)
            if stored is None or result.text in (total.left.text, total.right.text):
                return
            kept = frozenset(stored)
        rows = frozenset(left).difference(right)
        columns = frozenset(right).difference(left)
        both = frozenset(left).intersection(right)
        summed = both - kept
        if not (rows and columns and summed) or kept != rows | columns | (both & kept):
            return
        used = rows | columns | summed
        if used & total.partial or not self._runs_through(used, total.loops):
            return
        product = MatrixProduct(
            total,
            result,
            _in_order(rows, total.loops),
            _in_order(columns, total.loops),
            _in_order(summed, total.loops),
            _in_order(both & kept, total.loops),
            store,
        )
        if _is_worth_it(product):
            yield product

    def _runs_through(self, used: frozenset[Symbol], loops: Mapping[Symbol, Loop]) -> bool:
        """Whether loops run over whole axes: neither triangles nor what the data say."""
        if not any(symbol in self.told for symbol in used):
            return False
        for symbol in used:
            loop = loops[symbol]
            if loop.kind == "iterable" or loop.step != Const(1):
                return False
            bounds = deps_of(loop.start), deps_of(loop.stop)
            moving = {one for one in bounds[0] | bounds[1] if one.kind == "loop"}
            tiled = all(
                one in loops and loops[one].step != Const(1) and one not in used for one in moving
            )
            if moving and not (tiled and moving <= bounds[0] & bounds[1]):
                return False
        return True


def _in_order(symbols: frozenset[Symbol], loops: Mapping[Symbol, Loop]) -> tuple[Loop, ...]:
    return tuple(loop for symbol, loop in loops.items() if symbol in symbols)


def _added(called: Called) -> Iterator[Value]:
    """What an addition adds."""
    operands = called.args.positional
    if called.name in SUMS:
        for one in alternatives(operands[0]) if operands else ():
            if isinstance(one, Sequence) and one.kind in ("generator", "list"):
                yield one.element
        return
    yield from operands[1:2]
    if called.name == "operator.add":
        yield from operands[:1]


def _two_elements(product: Value, loops: frozenset[Symbol]) -> tuple[Element, Element] | None:
    """The two elements that are multiplied, where what else is depends on no loop."""
    found: list[Element] = []
    parts = list(factors(product))
    for part in parts if len(parts) > 1 else ():
        element = element_of(part)
        if element is not None and any(deps_of(item) & loops for item in element.index):
            found.append(element)
        elif _depends(part, loops):
            return None
    return (found[0], found[1]) if len(found) == 2 else None


def _depends(value: Value, loops: frozenset[Symbol], depth: int = DEPTH) -> bool:
    if deps_of(value) & loops:
        return True
    made = made_of(value)
    if made is None or depth == 0:
        return False
    return any(_depends(part, loops, depth - 1) for part in made.inputs)


def _came_out_of(value: Value, seen: set[int], depth: int = DEPTH) -> Iterator[ast.AST]:
    """The nodes of the operations that gave a value."""
    for one in alternatives(value):
        made = made_of(one)
        if made is None or depth == 0 or id(made) in seen:
            continue
        seen.add(id(made))
        yield made.node
        if _goes_on(made):
            for part in made.inputs:
                yield from _came_out_of(part, seen, depth - 1)


def _goes_on(made: Made) -> bool:
    return made.name.startswith(THROUGH) and made.name != "operator.getitem"


def _is_worth_it(product: MatrixProduct) -> bool:
    total = product.total
    arrays = [total.left, total.right, *([product.result] if product.result else [])]
    if any(_is_integer(one.array) for one in arrays):
        return False
    compiled = total.called.context.compiled is not None
    short = [loop.trips is not None and loop.trips <= SHORT for loop in product.loops]
    if any(short) if compiled else all(short):
        return False
    if compiled or any(_is_array(one) for one in arrays):
        return True
    in_list = product.result is not None and is_plain_object(product.result.array)
    return not in_list and any(map(_by_shape, product.loops))


def _is_integer(array: Value) -> bool:
    return any(isinstance(one, Tensor) and one.dtype in INTEGERS for one in alternatives(array))


def _is_array(element: Element) -> bool:
    """Whether it is known that an element is of an array, not of a list of lists."""
    return element.tupled or any(isinstance(one, Tensor) for one in alternatives(element.array))


def _by_shape(loop: Loop) -> bool:
    """Whether a loop ends where an array does."""
    return any(symbol.kind == "size" for symbol in deps_of(loop.stop))
