"""Which functions may keep a small view of an array that they make for the moment: a sieve."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from memlint.analysis.last_name import last_name
from memlint.analysis.places.followed import may_be_followed
from memlint.analysis.places.small_part import counted, may_be_small, settings
from memlint.analysis.places.temporary import Temporaries, may_be_sole_key, may_make, names_bound
from memlint.analysis.walking import children, kinds_in, walk
from memlint.late_pattern import late_pattern

_ADDING = frozenset({"append", "appendleft"})
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.DictComp, ast.SetComp,
          ast.GeneratorExp)  # fmt: skip
_KEPT_OPEN = (ast.Subscript, ast.IfExp, ast.BoolOp, ast.Tuple, ast.List, ast.NamedExpr, ast.Await)
_LIBRARIES = frozenset({"np", "numpy", "torch", "F", "nn", "math", "os", "re", "json", "cp"})
_GIVES_PART = late_pattern(
    r"(?:return\b|lambda\b[^:\n]*:)[ \t]*"
    r"(?:\w+\[(?![^\]\n]*\(None)[^\"'\]\n]*\][ \t,)]*(?:#[^\n]*)?$|[^\n]*narrow\()",
    re.MULTILINE,
)


def may_keep_view(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function keeps what may be a small view of an array that it makes."""
    del around
    kinds = kinds_in(function)
    if any(_gathers_view(one.elt) for one in kinds[ast.ListComp]) or any(
        _gathers_view(one.value) for one in kinds[ast.DictComp]
    ):
        return True
    stored = {one.id for one in kinds[ast.Name] if isinstance(one.ctx, ast.Store)}
    held = [one for one in _held(kinds) if _is_open(one, stored)]
    added = [
        one.args[0]
        for one in kinds[ast.Call]
        if isinstance(one.func, ast.Attribute)
        and one.func.attr in _ADDING
        and one.args
        and _is_open(one.args[0], stored)
    ]
    if not held and not added:
        return False
    taken = [one for one in kinds[ast.Subscript] if _may_have_base(one.value, stored)]
    counters = counted(kinds) if taken else frozenset()
    views = [one for one in taken if may_be_small(one, counters)]
    views += [one for one in kinds[ast.Call] if last_name(one.func) == "narrow"]
    giving = _giving_parts(source)
    if giving:
        giving &= {last_name(one.func) for one in kinds[ast.Call]}
    if not views and not giving:
        return False
    temporaries = Temporaries(kinds)
    if _keeps(held, views, temporaries, kinds, source, giving):
        return True
    if not added:
        return False
    looped = _looped(kinds)
    added = [one for one in added if one in looped]
    if not added:
        return False
    return _keeps(added, views, temporaries.within(looped), kinds, source, giving)


def _may_have_base(taken: ast.expr, stored: set[str]) -> bool:
    """Whether what a part is taken of may have been made in the function."""
    if isinstance(taken, ast.Name):
        return taken.id in stored
    return any(
        may_make(one) or (isinstance(one, ast.Name) and one.id in stored) for one in walk(taken)
    )


def is_given_anything(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function has a parameter: what an array is made of may then tell how large it
    is, or of what an axis."""
    del around, source
    return any(one.arg not in ("self", "cls") for one in kinds_in(function)[ast.arg])


def _is_open(kept: ast.expr, stored: set[str]) -> bool:
    """Whether what is kept may be a view at all."""
    match kept:
        case ast.Name(id=name):
            return name in stored
        case ast.Call(func=func, args=args, keywords=keywords):
            name = last_name(func)
            return name == "narrow" or (
                bool(args or keywords) and not name[:1].isupper() and not _is_of_library(func)
            )
    return isinstance(kept, _KEPT_OPEN)


def _is_of_library(func: ast.expr) -> bool:
    while isinstance(func, ast.Attribute):
        func = func.value
    return isinstance(func, ast.Name) and func.id in _LIBRARIES


def _keeps(
    kept: Iterable[ast.expr],
    views: Iterable[ast.expr],
    temporaries: Temporaries,
    kinds: Mapping[type[ast.AST], list[Any]],
    source: str,
    giving: frozenset[str],
) -> bool:
    """Whether one of these expressions may give a small view of a temporary array."""
    kept = list(kept)
    if not kept:
        return False
    found = {one for one in views if _is_of_temporary(one, temporaries)}
    if not found and not giving:
        return False
    names = _named(found, temporaries, kinds, source, giving)
    return any(_gives(one, found, names, temporaries, source, giving) for one in kept)


def _named(
    views: set[ast.expr],
    temporaries: Temporaries,
    kinds: Mapping[type[ast.AST], list[Any]],
    source: str,
    giving: frozenset[str],
) -> set[str]:
    """The names of views."""
    names = set[str]()
    waiting = [(names_bound(targets), value) for targets, value in settings(kinds)]
    before = -1
    while before != len(names):
        before = len(names)
        for bound, value in waiting:
            if (
                bound
                and not bound <= names
                and _gives(value, views, names, temporaries, source, giving)
            ):
                names |= bound
    return names


def _gives(
    node: ast.expr,
    views: set[ast.expr],
    names: set[str],
    temporaries: Temporaries,
    source: str,
    giving: frozenset[str],
) -> bool:
    """Whether the value of an expression may be one of the views, or one of these names."""

    def is_given(one: ast.expr) -> bool:
        return _gives(one, views, names, temporaries, source, giving)

    if node in views:
        return True
    match node:
        case ast.Name(id=name):
            return name in names
        case ast.IfExp(body=one, orelse=other):
            return is_given(one) or is_given(other)
        case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
            return any(map(is_given, parts))
        case ast.NamedExpr(value=value) | ast.Starred(value=value) | ast.Await(value=value):
            return is_given(value)
        case ast.Subscript(value=ast.Tuple() | ast.List() | ast.Dict() as value):
            return any(is_given(one) for one in children(value) if isinstance(one, ast.expr))
        case ast.Call(func=func, args=args, keywords=keywords):
            given = [*args, *(one.value for one in keywords)]
            if last_name(func) in giving and any(map(temporaries.may_be, given)):
                return True
            return any(map(is_given, given)) and _hands_on(func, source)
    return False


def _hands_on(func: ast.expr, source: str) -> bool:
    """Whether a function may give what it is given: one that is read, so no library's."""
    return not last_name(func)[:1].isupper() and may_be_followed(func, source)


@lru_cache(maxsize=4)
def _giving_parts(source: str) -> frozenset[str]:
    """The functions of a source that may give a part of an array that they are given."""
    found = set[str]()
    for one in _GIVES_PART.finditer(source):
        text = source[one.start() : one.end()]
        if text.startswith("lambda"):
            line = source[source.rfind("\n", 0, one.start()) + 1 : one.start()]
            found.update(re.findall(r"(\w+)\s*(?::[^=]*)?=\s*$", line))
        else:
            head = source.rfind("def ", 0, one.start())
            found.update(re.findall(r"def (\w+)", source[head : head + 200])[:1])
    return frozenset(found)


def _gathers_view(node: ast.expr) -> bool:
    """Whether a comprehension gathers small views of arrays that it makes itself."""
    match node:
        case ast.Subscript(value=value):
            return (
                isinstance(value, (ast.Call, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.NamedExpr,
                                   ast.IfExp, ast.Await, ast.Subscript))
                and may_be_small(node, frozenset())
                and any(may_make(one) for one in walk(value))
            )  # fmt: skip
        case ast.Call(func=func, args=args):
            return last_name(func) == "narrow" and any(
                may_make(below) for one in (*args, *children(func)) for below in walk(one)
            )
    return False


def _held(kinds: Mapping[type[ast.AST], list[Any]]) -> Iterator[ast.expr]:
    """What is set as an attribute or under a key."""
    for one in kinds[ast.Assign]:
        if _are_held(one.targets):
            yield one.value
    for one in kinds[ast.AnnAssign]:
        if one.value is not None and _are_held([one.target]):
            yield one.value


def _are_held(targets: list[ast.expr]) -> bool:
    return any(
        isinstance(one, (ast.Attribute, ast.Subscript))
        for target in targets
        for one in ([target] if not isinstance(target, (ast.Tuple, ast.List)) else target.elts)
    )


def _looped(kinds: Mapping[type[ast.AST], list[Any]]) -> set[ast.AST]:
    """All that is in a loop."""
    found = set[ast.AST]()
    for kind in _LOOPS:
        for one in kinds[kind]:
            if one not in found:
                found.update(walk(one))
    return found


# What is taken, and of what


def _is_of_temporary(view: ast.expr, temporaries: Temporaries) -> bool:
    """Whether a view may be of an array that was made in the function, and is itself no part of
    another one."""
    if isinstance(view, ast.Subscript):
        return temporaries.may_be(view.value, sliced=not may_be_sole_key(view.slice))
    assert isinstance(view, ast.Call)
    given = [*view.args, *(one.value for one in view.keywords)]
    if isinstance(view.func, ast.Attribute):
        given.append(view.func.value)
    return any(temporaries.may_be(one, sliced=True) for one in given)
