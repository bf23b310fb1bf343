"""Which names of a function may stand for arrays that it makes itself, by its syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memlint.analysis.last_name import last_name
from memlint.analysis.parts import SAME, SPLITS
from memlint.analysis.walking import walk

_VIEWED_BY = frozenset(name.rpartition(".")[2] for name in SAME)
# What these give is no array, or is a part of another one itself.
_NO_ARRAYS = frozenset(name.rpartition(".")[2] for name in SPLITS) | {
    "splitext", "partition", "rsplit", "rpartition", "splitlines", "items", "keys", "groups",
    "groupby", "zip", "enumerate", "range", "sorted", "list", "tuple", "dict", "set", "str", "len",
    "int", "float", "bool", "repr", "isinstance", "hasattr", "type", "id", "locals", "globals",
    "vars", "dir", "open", "print", "format", "join", "strip", "replace", "startswith", "endswith",
    "lower", "upper", "deepcopy", "defaultdict", "OrderedDict", "listdir", "glob", "rglob",
}  # fmt: skip
# Attributes that are arrays of their own, for all that can be told.
_PARTS = frozenset({"real", "imag", "H", "mH"})
# Arguments that ask for a tuple of arrays.
_FOR_TUPLES = frozenset({"return_dict", "as_tuple"})
_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp,
             ast.GeneratorExp, ast.Constant, ast.JoinedStr, ast.Lambda)  # fmt: skip
_WRAPPERS = frozenset({"enumerate", "zip", "reversed", "iter", "tqdm", "sorted", "list", "tuple"})


def may_make(node: ast.AST) -> bool:
    """Whether an expression may make an array by itself."""
    match node:
        case ast.Call(func=func):
            return last_name(func) not in _NO_ARRAYS
        case ast.BinOp(left=left, right=right):
            return not (_is_plain(left) and _is_plain(right)) and not _is_text(left)
        case ast.UnaryOp(operand=operand, op=op):
            return not isinstance(op, ast.Not) and not _is_plain(operand)
        case ast.Compare(ops=[op, *_]):
            return not isinstance(op, (ast.In, ast.NotIn, ast.Is, ast.IsNot))
        case ast.Attribute(attr=name):
            return name in _PARTS
    return False


def may_be_sole_key(key: ast.expr) -> bool:
    """Whether a subscript has one position or slice, as that of a list has."""
    return not (
        isinstance(key, ast.Tuple)
        and len(key.elts) > 1
        and any(not isinstance(one, ast.Constant) for one in key.elts)
    )


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def names_bound(targets: Iterable[ast.expr]) -> set[str]:
    """The names that targets bind."""
    return {
        one.id
        for target in targets
        for one in walk(target)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }


class Temporaries:
    """The names that may stand for arrays made in the function with these nodes."""

    def __init__(
        self, kinds: Mapping[type[ast.AST], list[Any]], within: set[ast.AST] | None = None
    ) -> None:
        self._kinds = kinds
        self._names: set[str] = set()
        # Those of collections whose entries may be such arrays.
        self._collections: set[str] = set()
        self._within = within
        waiting = list(_bindings(kinds))
        before = -1
        while before != len(self._names):
            before = len(self._names)
            for target, value, is_entry in waiting:
                if within is None or value in within:
                    self._bind(target, value, is_entry=is_entry)

    def within(self, nodes: set[ast.AST]) -> Temporaries:
        """Those that are made by one of ``nodes``."""
        return Temporaries(self._kinds, nodes)

    def may_be(self, node: ast.expr, *, sliced: bool = True) -> bool:
        """Whether the value of an expression may be such an array; where it is not sliced along
        one of several axes, one that is known to be an array."""
        match node:
            case ast.Name(id=name):
                return name in self._names
            case ast.Call(func=ast.Attribute(value=inner, attr=name), args=args) if (
                name in _VIEWED_BY
            ):
                return any(self.may_be(one, sliced=sliced) for one in (inner, *args))
            case ast.Attribute(value=inner, attr=name) if name in _VIEWED_BY:
                return self.may_be(inner, sliced=sliced)
            case ast.Call(keywords=keywords) if not sliced and any(
                one.arg in _FOR_TUPLES for one in keywords
            ):
                return False
            case ast.IfExp(body=one, orelse=other):
                return self.may_be(one, sliced=sliced) or self.may_be(other, sliced=sliced)
            case ast.BoolOp(values=values):
                return any(self.may_be(one, sliced=sliced) for one in values)
            case ast.NamedExpr(value=value) | ast.Await(value=value) | ast.Starred(value=value):
                return self.may_be(value, sliced=sliced)
            case ast.Subscript(value=value):
                return sliced and self.may_be(value, sliced=True)
        return may_make(node)

    def _bind(self, target: ast.expr, value: ast.expr, *, is_entry: bool) -> None:
        match target, value:
            case (ast.Tuple(elts=targets) | ast.List(elts=targets), ast.Tuple(elts=values)) if len(
                targets
            ) == len(values):
                for one, other in zip(targets, values, strict=True):
                    self._bind(one, other, is_entry=is_entry)
            case ast.Name(id=name), ast.GeneratorExp(elt=elt) | ast.ListComp(elt=elt):
                if self.may_be(elt):
                    self._collections.add(name)
            case _, ast.Name(id=name) if is_entry and name not in self._collections:
                pass
            case _ if is_entry or self._may_give(value):
                self._names |= names_bound([target])

    def _may_give(self, value: ast.expr) -> bool:
        return not isinstance(value, _DISPLAYS) and self.may_be(value)


def _bindings(
    kinds: Mapping[type[ast.AST], list[Any]],
) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """What is bound to what, or to an entry of it."""
    for one in kinds[ast.Assign]:
        for target in one.targets:
            yield target, one.value, False
    for one in (*kinds[ast.AnnAssign], *kinds[ast.NamedExpr]):
        if one.value is not None:
            yield one.target, one.value, False
    for one in kinds[ast.withitem]:
        if one.optional_vars is not None:
            yield one.optional_vars, one.context_expr, False
    for one in (*kinds[ast.For], *kinds[ast.AsyncFor], *kinds[ast.comprehension]):
        yield from ((one.target, value, True) for value in _runs_over(one.iter))


def _runs_over(iterated: ast.expr) -> Iterator[ast.expr]:
    """What a loop runs over, as far as it may make arrays as its entries."""
    match iterated:
        case ast.Call(func=func, args=args) if last_name(func) in _WRAPPERS:
            for one in args:
                yield from _runs_over(one)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            yield from (one for one in parts if may_make(one))
        case ast.ListComp(elt=elt) | ast.GeneratorExp(elt=elt):
            yield elt
        case ast.Name():
            yield iterated
        case ast.Call() if may_make(iterated):
            yield iterated
