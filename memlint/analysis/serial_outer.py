"""Parallel loops inside of serial ones whose own iterations could run in parallel."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from memlint.analysis.events import Access, Loop, LoopNest
from memlint.analysis.exchange import PURE_FUNCTIONS, PURE_MODULES
from memlint.analysis.knowledge import SliceValue
from memlint.analysis.linear import linear
from memlint.analysis.locality import SHORT
from memlint.analysis.values import Symbol, Tensor, alternatives
from memlint.analysis.walking import walk
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern
from memlint.rule import Replacement
from memlint.source.model import Source

# What a bound is called that is a small number: dimensions, channels, the order of a method.
FEW = late_pattern(
    r"(^|[_.])(d|dims?|ndims?|dimensions?|ch|channels?|components?|bands?|colou?rs?|planes?|orders?|"
    r"degree|levels?|groups?|classes|heads?|outputs?|axes|vars?|folds?)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class InnerParallel:
    """A parallel loop that a serial one starts anew on each iteration; ``store`` is what is
    stored by the serial one's index, ``seen`` tells that the arrays' making is known."""

    outer: Loop
    inner: Loop
    store: Access
    seen: bool


def inner_parallel(nests: Iterable[LoopNest]) -> Iterator[InnerParallel]:
    """Each such pair of loops, once."""
    known = list(nests)
    for nest in known:
        if nest.compiled is None or not nest.compiled.parallel or len(nest.loops) < 2:
            continue
        outer, inner = nest.loops[-2:]
        around = [loop.kind for loop in nest.loops[:-1]]
        if inner.kind != "prange" or "prange" in around or outer.kind != "range" or nest.heavy:
            continue
        if any(loop.trips is not None and loop.trips <= SHORT for loop in (outer, inner)):
            continue
        if FEW.search(outer.stop_text):
            continue
        under = [one for one in known if outer.symbol in {loop.symbol for loop in one.loops}]
        if len({one.loops[-1].symbol for one in under} - {outer.symbol}) > 1:
            continue
        accesses = [access for one in under for access in one.accesses]
        stores = _independent(accesses, outer)
        if not stores or not _runs_alone(outer.node, accesses):
            continue
        seen = all(
            isinstance(value, Tensor) and not value.assumed
            for access in stores
            for value in alternatives(access.value)
        )
        yield InnerParallel(outer, inner, stores[0], seen)


def _independent(accesses: Sequence[Access], outer: Loop) -> list[Access]:
    """The stores, where each of them goes to a part of its own of each iteration of ``outer``
    and nothing is read from the parts of others; none where that is not so."""
    stores = [access for access in accesses if access.mode != "load"]
    places: dict[str, object] = {}
    for access in stores:
        at = _place(access, outer.symbol)
        if at is None or places.setdefault(access.array, at) != at:
            return []
    for access in accesses:
        if access.array in places and _place(access, outer.symbol) != places[access.array]:
            return []
    return stores


def _place(access: Access, symbol: Symbol) -> tuple[int, object] | None:
    """On which axis, and how, an index moves with a loop."""
    for axis, item in enumerate(access.index):
        form = None if isinstance(item, SliceValue) else linear(item)
        if form is not None and form.coefficient(symbol):
            return axis, form
    return None


def _runs_alone(node: ast.AST, accesses: Iterable[Access]) -> bool:
    """Whether an iteration hands on nothing to the next one by a variable or by a call."""
    if not isinstance(node, ast.For) or node.orelse:
        return False
    arrays = {access.array for access in accesses}
    bound: set[str] = set()
    own = _bound_in(node)
    return all(_follow(statement, bound, own, arrays) for statement in node.body)


def _bound_in(node: ast.For) -> set[str]:
    return {
        one.id
        for statement in node.body
        for one in walk(statement)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }


def _follow(statement: ast.stmt, bound: set[str], own: set[str], arrays: set[str]) -> bool:
    """Read on through a statement; ``False`` where it reads a name that is bound later only,
    binds one on some paths, leaves the loop, or calls what may do more than compute."""
    match statement:
        case ast.For(target=target, body=body):
            if not _harmless(statement.iter, bound, own, arrays):
                return False
            bound |= _names(target)
            return all(_follow(one, bound, own, arrays) for one in body)
        case ast.Assign(targets=targets, value=value):
            if not all(_harmless(one, bound, own, arrays) for one in (value, *targets)):
                return False
            bound |= {name for target in targets for name in _names(target, ast.Store)}
            return True
        case ast.AugAssign(target=target, value=value):
            if isinstance(target, ast.Name) and target.id not in bound:
                return False
            return all(_harmless(one, bound, own, arrays) for one in (value, target))
        case ast.If(test=test, body=body, orelse=orelse):
            inside = set(bound)
            return _harmless(test, bound, own, arrays) and all(
                _follow(one, inside, own, arrays) for one in (*body, *orelse)
            )
        case ast.Pass():
            return True
    return False


def _names(node: ast.AST, context: type[ast.expr_context] | None = None) -> set[str]:
    return {
        one.id
        for one in walk(node)
        if isinstance(one, ast.Name) and (context is None or isinstance(one.ctx, context))
    }


def _harmless(node: ast.AST, bound: set[str], own: set[str], arrays: set[str]) -> bool:
    if _names(node, ast.Load) & own - bound:
        return False
    return all(_is_pure(call, arrays) for call in walk(node) if isinstance(call, ast.Call))


def _is_pure(call: ast.Call, arrays: set[str]) -> bool:
    function = call.func
    while isinstance(function, ast.Attribute):
        if isinstance(function.value, ast.Name) and function.value.id in PURE_MODULES:
            return True
        function = function.value
    name = function.id if isinstance(function, ast.Name) else ""
    return name in PURE_FUNCTIONS or not {ast.unparse(one) for one in call.args} & arrays


def parallel_outside(found: InnerParallel, source: Source) -> tuple[Replacement, ...]:
    """The replacements that run the outer loop in parallel and the inner one serially."""
    match found.outer.node, found.inner.node:
        case (
            ast.For(iter=ast.Call(func=ast.Name(id="range") as serial)),
            ast.For(iter=ast.Call(func=parallel)),
        ):
            return (
                Replacement(serial, source.segment(parallel)),
                Replacement(parallel, "range"),
            )
    return ()
