"""Matrix products that loops compute one multiplication at a time.

A *sum* here is an operation that adds the product of two elements to what was there.  It makes
a matrix product where the two elements share the loop that is summed over, each of them has a
loop of its own besides, and the result is stored by just those two.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import field

from memlint.analysis.elements import Element, axes_of, element_of, factors, stored_element
from memlint.analysis.events import Access, Called, Compiled, Loop, LoopNest
from memlint.analysis.knowledge import SliceValue
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
from memlint.analysis.walking import walk
from memlint.late_dataclass import dataclass

SUMS = frozenset({"builtins.sum", "numpy.sum", "math.fsum", "torch.sum"})
ADDITIONS = frozenset(
    {"operator.iadd", "operator.isubtract", "operator.add", "operator.subtract", *SUMS}
)
INTEGERS = frozenset(
    {"bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"}
)
# What a sum may go through before it is stored: a bias is added, an activation taken.
THROUGH = ("operator.", "math.", "numpy.", "torch.", "builtins.", ".item")
DEPTH = 6

Pair = tuple[Element, Element]


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """A matrix product written as loops.

    ``node`` is the addition, ``result`` the element that is stored, ``None`` where a list is
    built.  ``loops`` are those of the product, outermost first: ``rows`` of the left factor
    alone, ``columns`` of the right one alone, ``summed`` of both but not of the result;
    ``shared`` are those that all three have.  ``store`` is the subscript that is stored to.
    """

    node: ast.AST
    left: Element
    right: Element
    result: Element | None
    loops: tuple[Loop, ...]
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    summed: tuple[Loop, ...]
    shared: tuple[Loop, ...]
    store: ast.AST
    compiled: Compiled | None


@dataclass(frozen=True, slots=True)
class _Place:
    """The loops around a place, and those on some of whose iterations it is not reached."""

    loops: tuple[Loop, ...]
    partial: frozenset[Symbol]


@dataclass(slots=True)
class Products:
    """Collects what loops access, and finds the matrix products in it."""

    _picked: dict[int, _Place] = field(default_factory=dict)
    _stores: dict[int, tuple[Access, LoopNest]] = field(default_factory=dict)
    _lists: list[Called] = field(default_factory=list)
    _totals: dict[str, list[Called]] = field(default_factory=dict)

    def note_nest(self, nest: LoopNest) -> None:
        """Keep the accesses of a nest."""
        for access in nest.accesses:
            if access.mode == "load":
                self._picked[id(access.node)] = _Place(access.loops, access.partial)
            else:
                self._stores[id(access.node)] = (access, nest)

    def note_list(self, called: Called) -> None:
        """Keep a sum, or what is appended to a list, or added to a variable."""
        if called.name != "operator.iadd":
            self._lists.append(called)
        elif isinstance(called.statement, ast.AugAssign):
            target = called.statement.target
            if isinstance(target, ast.Name):
                self._totals.setdefault(target.id, []).append(called)

    def found(self) -> Iterator[MatrixProduct]:
        """Each matrix product."""
        for access, nest in self._stores.values():
            yield from self._stored(access, nest)
        for called in self._lists:
            yield from self._listed(called)

    def _stored(self, access: Access, nest: LoopNest) -> Iterator[MatrixProduct]:
        """What is stored in arrays."""
        if access.mode == "update":
            if not isinstance(access.statement, ast.AugAssign):
                return
            if not isinstance(access.statement.op, (ast.Add, ast.Sub)):
                return
            sums: list[tuple[ast.AST, Value]] = [(access.statement, access.given)]
        else:
            sums = [*_sums_in(access.given, set()), *self._added_to_variables(access)]
        seen: set[int] = set()
        for node, added in sums:
            pair = self._two_elements(added) if id(node) not in seen else None
            if pair is None:
                continue
            seen.add(id(node))
            keys = tuple(
                Sequence("slice", (item.start, item.stop, item.step))
                if isinstance(item, SliceValue)
                else item
                for item in access.index
            )
            for one in alternatives(access.value):
                result = stored_element(access.node, one, keys)
                place = _Place(access.loops, access.partial)
                if result is not None:
                    yield from self._product(node, pair, result, place, access.node, nest.compiled)
                    break

    def _added_to_variables(self, access: Access) -> Iterator[tuple[ast.AST, Value]]:
        """What inner loops add to a variable that is stored: ``z = bias[j]``, ``z += ...``."""
        if not isinstance(access.statement, ast.Assign) or not access.loops:
            return
        for name in walk(access.statement.value):
            for called in self._totals.get(name.id, ()) if isinstance(name, ast.Name) else ():
                loops = tuple(one.loop.node for one in called.context.loops)
                outer = tuple(loop.node for loop in access.loops)
                if loops[: len(outer)] == outer and len(called.args.positional) > 1:
                    yield called.node, called.args.positional[1]

    def _listed(self, called: Called) -> Iterator[MatrixProduct]:
        """What is put into lists: by ``append``, or by a comprehension around a sum."""
        context = called.context
        place = _Place(
            tuple(one.loop for one in context.loops),
            frozenset(one.loop.symbol for one in context.loops if one.conditional),
        )
        if called.name == ".append":
            sums = list(_sums_in(called.args.get("", 0), set()))
        elif all(not isinstance(loop.node, ast.stmt) for loop in place.loops):
            sums = [
                (called.node, added) for added in _added_by(called.name, called.args.positional)
            ]
        else:
            return
        for node, added in sums:
            pair = self._two_elements(added)
            if pair is not None:
                yield from self._product(node, pair, None, place, called.node, context.compiled)

    def _two_elements(self, product: Value) -> Pair | None:
        """The two elements that are multiplied, where what else is depends on no loop."""
        found: list[Element] = []
        parts = list(factors(product))
        for part in parts if len(parts) > 1 else ():
            element = element_of(part)
            if element is not None and any(map(_moves, element.index)):
                found.append(element)
            elif _depends(part):
                return None
        if len(found) != 2 or any(id(one.picked) not in self._picked for one in found):
            return None
        return found[0], found[1]

    def _product(
        self,
        node: ast.AST,
        pair: Pair,
        result: Element | None,
        place: _Place,
        store: ast.AST,
        compiled: Compiled | None,
    ) -> Iterator[MatrixProduct]:
        places = [place, *(self._picked[id(one.picked)] for one in pair)]
        loops = {loop.symbol: loop for one in places for loop in one.loops}
        partial = frozenset[Symbol]().union(*(one.partial for one in places))
        around = frozenset(loop.symbol for loop in place.loops)
        every = frozenset(loops)
        left, right = axes_of(pair[0], every), axes_of(pair[1], every)
        if left is None or right is None:
            return
        kept = frozenset((*left, *right)) & around
        if result is not None:
            stored = axes_of(result, every)
            if stored is None or result.text in (pair[0].text, pair[1].text):
                return
            kept = frozenset(stored)
        rows = frozenset(left).difference(right)
        columns = frozenset(right).difference(left)
        both = frozenset(left).intersection(right)
        summed, shared = both - kept, both & kept
        if not (rows and columns and summed) or kept != rows | columns | shared:
            return
        used = rows | columns | summed
        nest = sorted((loop for one, loop in loops.items() if one in used), key=_first_line)
        if used & partial or _is_under_condition(node, nest) or not _run_through(used, loops):
            return

        def chosen(wanted: frozenset[Symbol]) -> tuple[Loop, ...]:
            return tuple(loop for symbol, loop in loops.items() if symbol in wanted)

        product = MatrixProduct(
            node,
            pair[0],
            pair[1],
            result,
            tuple(nest),
            chosen(rows),
            chosen(columns),
            chosen(summed),
            chosen(shared),
            store,
            compiled,
        )
        if _is_worth_it(product):
            yield product


def _first_line(loop: Loop) -> tuple[int, int]:
    return getattr(loop.node, "lineno", 0), getattr(loop.node, "col_offset", 0)


def _is_under_condition(node: ast.AST, nest: list[Loop]) -> bool:
    """Whether an addition stands in an ``if`` within the loops."""
    return any(
        isinstance(one, (ast.If, ast.IfExp, ast.Try)) and any(part is node for part in walk(one))
        for loop in nest[:1]
        for one in walk(loop.node)
    )


def _run_through(used: frozenset[Symbol], loops: dict[Symbol, Loop]) -> bool:
    """Whether loops run over whole axes: neither triangles nor what the data say."""
    for symbol in used:
        loop = loops[symbol]
        if loop.kind == "iterable" or loop.step != Const(1):
            return False
        starts, stops = deps_of(loop.start), deps_of(loop.stop)
        moving = {one for one in starts | stops if one.kind == "loop"}
        tiled = all(
            one in loops and loops[one].step != Const(1) and one not in used for one in moving
        )
        if moving and not (tiled and moving <= starts & stops):
            return False
    return True


def _sums_in(value: Value, seen: set[int], depth: int = DEPTH) -> Iterator[tuple[ast.AST, Value]]:
    """The additions that a value came out of, each with what it adds."""
    for one in alternatives(value):
        made = made_of(one)
        if made is None or depth == 0 or id(made) in seen:
            continue
        seen.add(id(made))
        if made.name in ADDITIONS:
            for added in _added_by(made.name, made.inputs):
                yield made.node, added
        if _goes_on(made):
            for part in made.inputs:
                yield from _sums_in(part, seen, depth - 1)


def _added_by(name: str, operands: tuple[Value, ...]) -> Iterator[Value]:
    """What an addition adds."""
    if name in SUMS:
        for one in alternatives(operands[0]) if operands else ():
            if isinstance(one, Sequence) and one.kind in ("generator", "list"):
                yield one.element
        return
    yield from operands[1:2]
    if name == "operator.add":
        yield from operands[:1]


def _goes_on(made: Made) -> bool:
    return made.name.startswith(THROUGH) and made.name != "operator.getitem"


def _moves(item: Value) -> bool:
    return any(symbol.kind == "loop" for symbol in deps_of(item))


def _depends(value: Value, depth: int = DEPTH) -> bool:
    """Whether a value changes with a loop."""
    if _moves(value):
        return True
    made = made_of(value)
    if made is None or depth == 0:
        return False
    return any(_depends(part, depth - 1) for part in made.inputs)


def _is_worth_it(product: MatrixProduct) -> bool:
    arrays = [product.left, product.right, *([product.result] if product.result else [])]
    if any(_is_integer(one.array) for one in arrays):
        return False
    compiled = product.compiled is not None
    short = [loop.trips is not None and loop.trips <= SHORT for loop in product.loops]
    if any(short) if compiled else all(short):
        return False
    if compiled or any(_is_array(one) for one in arrays):
        return True
    return any(map(_by_shape, product.loops))


def _is_integer(array: Value) -> bool:
    return any(isinstance(one, Tensor) and one.dtype in INTEGERS for one in alternatives(array))


def _is_array(element: Element) -> bool:
    """Whether it is known that an element is of an array, not of a list of lists."""
    return element.tupled or any(isinstance(one, Tensor) for one in alternatives(element.array))


def _by_shape(loop: Loop) -> bool:
    """Whether a loop ends where an array does."""
    return any(symbol.kind == "size" for symbol in deps_of(loop.stop))
