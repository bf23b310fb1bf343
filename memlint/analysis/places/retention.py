"""Which functions may keep parts of graphs from one iteration to the next, as their text tells:
a sieve."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache

from memlint.analysis.graphs import COUNTED
from memlint.analysis.knowledge.autograd import LEAVING
from memlint.analysis.last_name import last_name
from memlint.analysis.leading_names import called_otherwise, code_of, leading_to
from memlint.analysis.places.evaluation import EVALUATING, Networks, may_be_told
from memlint.analysis.places.moved import Bindings, bindings_of
from memlint.analysis.retention import GROWING, LOOPS
from memlint.analysis.values import OUTSIDE_GRAPHS
from memlint.analysis.walking import children, kinds_in, nodes_of, walk
from memlint.late_pattern import late_pattern

NAMED = late_pattern(
    r"def (\w+_)?(eval|evaluate|evaluation|valid|validate|validation|val)(_\w+)?\(|"
    r"def (\w+_)?test\("
)
_WALKS = frozenset({"backward", "manual_backward", "grad"})
_WALKING = late_pattern(r"(?<!def )\b(?:(?:manual_)?backward|grad)\s*\(")
_GROWING = frozenset(name[1:] for name in GROWING)
_KEEPING = late_pattern(
    rf"[+-]=|\.(?:{'|'.join(sorted(_GROWING))})\(|(\b[\w.]+) ?= ?\1 ?[+-]|\] ?=(?!=)|"
    r"=[^=\n]*[\w)\]] ?[+-] ?[\w(]"
)
_NUMBERS = frozenset(
    {"float", "int", "len", "str", "range", "bool", "round", "format", "repr", "type", "id", "open",
     "isinstance", "hash", "ord", "chr", "print"}
)  # fmt: skip
_CONTAINERS = frozenset({"dict", "list", "defaultdict", "OrderedDict"})
_DEPTH = 8
_LOOPING: tuple[type[ast.AST], ...] = (
    *LOOPS, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


def may_retain(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function may keep parts of graphs in a loop, or a method from call to call."""
    walking, evaluates = _walking(source), _evaluates(source)
    if not walking and not evaluates and not _goes_back(source):
        return False
    kinds = kinds_in(function)
    loops = [one for kind in _LOOPING for one in kinds[kind]]
    if not loops and not _walks(kinds[ast.Call]):
        return False
    nodes = nodes_of(function)
    values = _Values(bindings_of(function), source)
    if any(_trains(loop, source, walking) and values.are_kept_in(walk(loop)) for loop in loops):
        return True
    if _walks(kinds[ast.Call]) and values.are_kept_in(nodes):
        return True  # a method that keeps a part of a graph in its object
    if not loops or not evaluates:
        return False
    networks = Networks(function, nodes, around, source)
    return any(
        values.are_kept_in(inner := walk(loop))
        and any(isinstance(one, ast.Call) and networks.are_run_by(one) for one in inner)
        for loop in loops
    )


def _walks(calls: Iterable[ast.Call]) -> bool:
    """Whether one of these calls walks a graph."""
    return any(last_name(one.func) in _WALKS for one in calls)


@lru_cache(maxsize=4)
def _goes_back(source: str) -> bool:
    return "backward" in source


@lru_cache(maxsize=4)
def _walking(source: str) -> frozenset[str]:
    """The functions that walk a graph, or lead to one that does."""
    if "backward" not in source and "grad(" not in source:
        return frozenset()
    return leading_to(source, _WALKING)


@lru_cache(maxsize=4)
def _evaluates(source: str) -> bool:
    code = code_of(source)
    evaluates = any(word in code for word in EVALUATING) or NAMED.search(code) is not None
    return evaluates and may_be_told(source)


def _trains(loop: ast.AST, source: str, walking: frozenset[str]) -> bool:
    calls = [one for one in walk(loop) if isinstance(one, ast.Call)]
    return any(last_name(call.func) in _WALKS | walking for call in calls) or (
        bool(walking) and called_otherwise(source, walking)
    )


class _Values:
    """Which values of a function may be parts of graphs, and which are kept."""

    def __init__(self, bindings: Bindings, source: str) -> None:
        self._bindings = bindings
        self._source = source

    def are_kept_in(self, nodes: list[ast.AST]) -> bool:
        """Whether what may be a part of a graph is put into an accumulator."""
        alone = {id(one.value) for one in nodes if isinstance(one, ast.Expr)}
        return any(self._is_kept(one) for node in nodes for one in _given(node)) or any(
            self._keeps(one, id(one) in alone) for one in nodes if isinstance(one, ast.Call)
        )

    def _is_kept(self, node: ast.expr) -> bool:
        return COUNTED.search(last_name(node)) is None and self._may_be_in_graph(node, 0)

    def _keeps(self, call: ast.Call, alone: bool) -> bool:
        """Whether a call may keep what it is given: an object that is called, where nothing is
        done with what it gives."""
        keeping = _keeping(self._source)
        if last_name(call.func) not in keeping and not (alone and "__call__" in keeping):
            return False
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        return any(self._may_be_in_graph(one, 0) for one in given)

    def _is_filled(self, name: str) -> bool:
        """Whether a name stands for a container that is made empty, to be filled."""
        return any(
            (isinstance(one, ast.Dict) and not one.keys)
            or (isinstance(one, ast.List) and not one.elts)
            or (isinstance(one, ast.Call) and last_name(one.func) in _CONTAINERS)
            for one in self._bindings.bound(name)
        )

    def _may_be_in_graph(self, node: ast.AST, depth: int) -> bool:
        match node:
            case ast.Constant() | ast.JoinedStr() | ast.Compare() | ast.Lambda():
                return False
            case ast.Call(func=ast.Attribute(attr=name)):
                return name not in LEAVING
            case ast.Call(func=ast.Name(id=name)):
                return name not in _NUMBERS
            case ast.Attribute(value=value, attr=name):
                return name not in OUTSIDE_GRAPHS and self._may_be_in_graph(value, depth)
            case ast.Name(id=name):
                bound = self._bindings.bound(name)
                return (
                    depth >= _DEPTH
                    or not bound
                    or any(self._may_be_in_graph(one, depth + 1) for one in bound)
                )
            case ast.Subscript(value=ast.Name(id=name)) if self._is_filled(name):
                return True
            case ast.Subscript(value=value):
                return self._may_be_in_graph(value, depth)
            case ast.BinOp() | ast.UnaryOp() | ast.Tuple() | ast.List() | ast.Dict() | ast.IfExp():
                return any(
                    self._may_be_in_graph(one, depth)
                    for one in children(node)
                    if isinstance(one, ast.expr)
                )
        return True


@lru_cache(maxsize=4)
def _keeping(source: str) -> frozenset[str]:
    """The functions that may put what they are given into an accumulator."""
    return leading_to(source, _KEEPING)


def _given(node: ast.AST) -> Iterator[ast.expr]:
    """What a node puts into an accumulator."""
    match node:
        case ast.AugAssign(op=ast.Add() | ast.Sub(), value=value):
            yield value.elts[0] if isinstance(value, ast.List) and value.elts else value
        case ast.Assign(targets=[target], value=ast.IfExp(body=one, orelse=other)):
            for value in (one, other):
                if isinstance(value, ast.BinOp):
                    yield from _added(value, ast.unparse(target))
        case ast.Assign(targets=[target], value=ast.BinOp(op=ast.Add() | ast.Sub()) as value):
            yield from _added(value, ast.unparse(target))
        case ast.AnnAssign(target=target, value=ast.BinOp(op=ast.Add() | ast.Sub()) as value):
            yield from _added(value, ast.unparse(target))
        case ast.Assign(targets=targets, value=value):
            if any(isinstance(t, ast.Subscript) and _is_key(t.slice) for t in targets):
                yield value
        case ast.Call(func=ast.Attribute(attr=name), args=[*_, last]) if name in _GROWING:
            yield last


def _is_key(node: ast.expr) -> bool:
    return not isinstance(node, ast.Constant)


def _added(value: ast.BinOp, target: str) -> Iterator[ast.expr]:
    """``total = total + loss``: what is added."""
    if target in ast.unparse(value):
        yield value
