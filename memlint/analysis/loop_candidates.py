"""Which functions may compute the same thing over and over, by their syntax alone: a sieve.

It asks what :mod:`memlint.analysis.invariance` asks, of one function at a time, and errs on the
side of yes: only what a loop itself binds and stores into counts as changed by it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memlint.analysis.changes import Changes, bound_in, called_name
from memlint.analysis.invariance import FEW, only_reads
from memlint.analysis.looped_text import called_in_loops
from memlint.analysis.paths import names_in, path_of
from memlint.analysis.surroundings import Loop, Surroundings, stores_elsewhere
from memlint.analysis.walking import children, kinds_in, nodes_of, walk
from memlint.late_dataclass import dataclass
from memlint.rule import UnitTest

_OWNER = ("self", "cls")
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)


def repeats(names: frozenset[str], counts: Callable[[ast.Call], bool]) -> UnitTest:
    """A test whether a function calls one of ``names``, in a way that counts, with the same
    arguments in each iteration of a loop: its own, or one that calls it."""

    def test(function: ast.AST, around: str, source: str) -> bool:
        return any(True for _ in _repeated(function, names, counts, source))

    return test


def repeats_what_is_given(names: frozenset[str], counts: Callable[[ast.Call], bool]) -> UnitTest:
    """A test whether that depends on how the function is called."""

    def test(function: ast.AST, around: str, source: str) -> bool:
        given = {one.arg for one in kinds_in(function)[ast.arg]}
        given.difference_update(_OWNER)
        return any(
            one.loop is None
            or not given.isdisjoint(names_in(one.call))
            or (isinstance(one.loop, (ast.For, ast.AsyncFor, ast.comprehension))
                and not given.isdisjoint(names_in(one.loop.iter)))
            for one in _repeated(function, names, counts, source)
        )  # fmt: skip

    return test


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A call that is repeated by a loop; ``None`` where that is one of a caller."""

    call: ast.Call
    loop: Loop | None


def _repeated(
    function: ast.AST, names: frozenset[str], counts: Callable[[ast.Call], bool], source: str
) -> Iterator[_Candidate]:
    kinds = kinds_in(function)
    calls = [one for one in kinds[ast.Call] if _is_one(one, names) and counts(one)]
    if not calls or not (any(map(kinds.get, _LOOPS)) or _is_looped(kinds, source)):
        return
    parents = {id(below): one for one in nodes_of(function) for below in children(one)}
    around = Surroundings(lambda node: parents.get(id(node)))
    for call in calls:
        if next(around.loops(call), None) is None:
            if _is_called_in_loops(call, around, source):
                yield _Candidate(call, None)
            continue
        loop = None if around.used_up(call, stores_elsewhere) else _loop_of(call, around)
        whole = around.whole(call)
        if loop is None and whole is not None and not around.used_up(whole, stores_elsewhere):
            loop = _loop_of(whole, around)
        if loop is not None:
            yield _Candidate(call, loop)


def _is_looped(kinds: Mapping[type[ast.AST], list[Any]], source: str) -> bool:
    """Whether a loop may call one of these functions."""
    return any(
        called_in_loops(source, one.name)
        for kind in (ast.FunctionDef, ast.AsyncFunctionDef)
        for one in kinds[kind]
    )


def _loop_of(node: ast.expr, around: Surroundings) -> Loop | None:
    """The innermost loop of more than a few iterations that repeats an expression for nothing."""
    for loop, branch in around.loops(node):
        changes = _changes_in(loop, around)

        def is_steady(condition: ast.If, changes: Changes = changes) -> bool:
            return only_reads(condition.test, changes, any_device=False)

        if not only_reads(node, changes, any_device=True) or not around.runs_in_most(
            branch, loop, node, is_steady
        ):
            return None
        if not _is_short(loop):
            return loop
    return None


def _changes_in(loop: Loop, around: Surroundings) -> Changes:
    return bound_in(one for part in around.region(loop) for one in walk(part))


def _is_short(loop: Loop) -> bool:
    """Whether a loop has a few iterations for certain."""
    match getattr(loop, "iter", None):
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int() as count)]):
            return count <= FEW
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return len(items) <= FEW and not any(isinstance(one, ast.Starred) for one in items)
    return False


def _is_called_in_loops(call: ast.Call, around: Surroundings, source: str) -> bool:
    """Whether a call in no loop of its function is one of every call of that, with what the
    function leaves as it was given, and something calls it by its name."""
    function: ast.AST | None = call
    while function is not None and not isinstance(
        function, (ast.FunctionDef, ast.AsyncFunctionDef)
    ):
        if isinstance(function, (ast.Lambda, ast.ClassDef)):
            return False
        function = around.parent(function)
    if function is None or not called_in_loops(source, function.name):
        return False
    if not around.always_runs(call):
        return False
    if not around.is_returned(call) and around.used_up(call, stores_elsewhere):
        return False
    bound = bound_in(one for part in function.body for one in walk(part))
    return only_reads(call, bound, any_device=True)


def _is_one(node: ast.Call, names: frozenset[str]) -> bool:
    name = called_name(node)
    return name in names and not _is_numpy(node.func, name)


def _is_numpy(function: ast.expr, name: str) -> bool:
    """``np.asarray(x)``, which moves nothing."""
    path = path_of(function)
    return name in ("array", "asarray") and path is not None and path[0] in ("np", "numpy")
