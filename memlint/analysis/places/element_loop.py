"""Which functions may compute with the elements of an array one by one: a sieve.

What such a loop may hold is told by its syntax, so that only the arrays are left to be known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memlint.analysis.element_loops import computes, counts_axes, is_arithmetic
from memlint.analysis.last_name import last_name
from memlint.analysis.walking import kinds_in, walk

# What these give is no array.
_NO_ARRAYS = frozenset(
    {"items", "keys", "split", "splitlines", "listdir", "glob", "rglob", "iterdir", "modules",
     "children", "parameters", "named_modules", "named_children", "named_parameters", "sorted",
     "list", "tuple", "set", "dict", "range", "fields", "dir", "vars", "getmembers", "finditer",
     "findall"}
)  # fmt: skip
_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp,
             ast.GeneratorExp, ast.Constant, ast.JoinedStr)  # fmt: skip
# Libraries that make arrays.
_LIBRARIES = ("np.", "numpy.", "torch.", "cp.", "cupy.")
# The statements that do arithmetic, or choose what does.
_ARITHMETIC = (ast.Assign, ast.AugAssign, ast.If, ast.Pass)
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Over what they give is run as over what they are given.
_TOGETHER = frozenset({"zip", "enumerate"})


def may_compute_by_elements(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function has a loop, or a sum over a generator, that only does arithmetic with
    what may be elements of arrays."""
    del around, source
    return next(_places(function), None) is not None


def computes_with_what_is_given(function: ast.AST, around: str, source: str) -> bool:
    """Whether the arrays of such a loop may be what the function, or its object, is given."""
    del source
    kinds = kinds_in(function)
    given = {one.arg for one in kinds[ast.arg]}
    if not given:
        return False
    used = _names_behind(_places(function), kinds) & given
    if used - {"self", "cls"}:
        return True
    called = {one.func for one in kinds[ast.Call]} if used else set()
    return any(
        _is_given(one.attr, around)
        for one in kinds[ast.Attribute]
        if isinstance(one.value, ast.Name) and one.value.id in used and one not in called
    )


def _is_given(attribute: str, around: str) -> bool:
    """Whether an attribute may be set to something else than what a library makes."""
    settings = re.findall(rf"\.{attribute}\b(?: *:[^=\n]*)? *=(?!=) *(\S*)", around)
    return not settings or not all(one.startswith(_LIBRARIES) for one in settings)


def _names_behind(places: Iterable[ast.AST], kinds: Mapping[type[ast.AST], list[Any]]) -> set[str]:
    """The names in these places, and those that they were set by."""
    behind: dict[str, set[str]] = {}
    for targets, value in _settings(kinds):
        used = _names_in(value)
        for name in _names_in(*targets):
            behind.setdefault(name, set()).update(used)
    seen = _names_in(*places)
    waiting = list(seen)
    while waiting:
        new = behind.get(waiting.pop(), set()) - seen
        seen |= new
        waiting += new
    return seen


def _settings(
    kinds: Mapping[type[ast.AST], list[Any]],
) -> Iterator[tuple[list[ast.expr], ast.expr]]:
    """What names are set to, and what they run over."""
    for one in kinds[ast.Assign]:
        yield one.targets, one.value
    for one in (*kinds[ast.AnnAssign], *kinds[ast.NamedExpr], *kinds[ast.AugAssign]):
        if one.value is not None:
            yield [one.target], one.value
    for one in (*kinds[ast.For], *kinds[ast.comprehension]):
        yield [one.target], one.iter
    for one in kinds[ast.withitem]:
        if one.optional_vars is not None:
            yield [one.optional_vars], one.context_expr


def _names_in(*nodes: ast.AST) -> set[str]:
    return {one.id for node in nodes for one in walk(node) if isinstance(one, ast.Name)}


def _places(function: ast.AST) -> Iterator[ast.AST]:
    kinds = kinds_in(function)
    yield from filter(_is_loop, kinds[ast.For])
    summed = [one.args[0] for one in kinds[ast.Call] if _is_summed(one)]
    if summed:
        picks = _picks_in_loops(kinds)
        yield from (one for one in summed if picks or _takes_from_elsewhere(one))


def _is_loop(node: ast.For) -> bool:
    return (
        not node.orelse
        and all(isinstance(one, _ARITHMETIC) for one in node.body)
        and _may_be_of_elements(node)
        and not counts_axes(node.iter)
        and is_arithmetic(node.body)
    )


def _may_be_of_elements(node: ast.For) -> bool:
    """Whether a loop may pick elements by an index, or run over those of an array."""
    taken, inner = _names_in(node.target), [below for one in node.body for below in walk(one)]
    stored = {
        one.id for one in inner if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    keys = [_names_in(one.slice) for one in inner if isinstance(one, ast.Subscript)]
    if any(
        _names_in(target.slice).isdisjoint(taken | stored)
        for one in inner
        if isinstance(one, ast.Assign)
        for target in one.targets
        if isinstance(target, ast.Subscript)
    ):
        return False
    together = last_name(node.iter.func) if isinstance(node.iter, ast.Call) else ""
    if together not in _TOGETHER and any(not one.isdisjoint(taken | stored) for one in keys):
        return not isinstance(node.iter, _DISPLAYS) and together not in _NO_ARRAYS - {"range"}
    if any(_is_no_array(one) for one in _runs_over(node.iter)):
        return False
    match together, node.target:
        case "enumerate", ast.Tuple(elts=[ast.Name(id=counter), *_]):
            taken.discard(counter)
    return all(one.isdisjoint(taken) for one in keys)


def _runs_over(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func=func, args=[_, *_] as given) if last_name(func) in _TOGETHER:
            for one in given if last_name(func) == "zip" else given[:1]:
                yield from _runs_over(one)
        case _:
            yield node


def _is_no_array(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=func):
            return last_name(func) in _NO_ARRAYS
        case ast.Attribute(attr="shape") | ast.Subscript(value=ast.Attribute(attr="shape")):
            return True
    return isinstance(node, _DISPLAYS)


def _is_summed(node: ast.Call) -> bool:
    match node:
        case ast.Call(
            func=func, args=[ast.GeneratorExp(elt=elt, generators=[ast.comprehension(ifs=[])])]
        ):
            return _may_be_sum(func) and computes(elt, set(), set())
    return False


def _may_be_sum(func: ast.expr) -> bool:
    """Whether a function may be the one that adds up: no other is known by these names."""
    return last_name(func) not in ("any", "all", "min", "max", "tuple", "list", "set", "sorted",
                                   "join", "dict", "frozenset", "extend", "update", "next", "prod",
                                   "fromiter", "array", "append", "Counter")  # fmt: skip


def _picks_in_loops(kinds: Mapping[type[ast.AST], list[Any]]) -> bool:
    """Whether a loop may pick an element by its index."""
    picking = [
        one
        for one in kinds[ast.Subscript]
        if isinstance(one.ctx, ast.Load) and _names_in(one.slice)
    ]
    if not picking:
        return False
    looped = {below for kind in _LOOPS for one in kinds[kind] for below in walk(one)}
    return any(one in looped for one in picking)


def _takes_from_elsewhere(node: ast.GeneratorExp) -> bool:
    """Whether a generator computes with a name that it does not bind itself, or runs over what
    may be a list of elements."""
    over = node.generators[0].iter
    if not any(_is_no_list(one) for one in _runs_over(over)):
        return True
    target = {one.id for one in walk(node.generators[0].target) if isinstance(one, ast.Name)}
    called = {one.func for one in walk(node.elt) if isinstance(one, ast.Call)}
    return any(
        isinstance(one, ast.Name) and one.id not in target and one not in called
        for one in walk(node.elt)
    )


def _is_no_list(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=func):
            return last_name(func) in _NO_ARRAYS - {"list", "tuple", "sorted", "set"}
        case ast.Attribute(attr="shape") | ast.Subscript(value=ast.Attribute(attr="shape")):
            return True
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return all(isinstance(one, ast.Constant) for one in parts)
    return isinstance(node, (ast.Constant, ast.JoinedStr))
