"""Whether a graph that is kept after a backward pass is walked once more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from memlint.analysis.events import Called
from memlint.analysis.graphs import MOST, differentiated, makings, nodes_behind
from memlint.analysis.knowledge.autograd import LEAVING
from memlint.analysis.last_name import last_name
from memlint.analysis.uses import Uses
from memlint.analysis.values import Function, Made, Site, Value, leaves, made_of, possible_graphs
from memlint.late_pattern import late_pattern

# Functions that may walk a graph they are handed, where they are not seen.
# What is done to a batch before a model sees it, and what makes noise of its shape.
OF_BATCHES = frozenset({".to", ".cuda", ".float", ".half", ".unsqueeze", "operator.getitem"})
MAKING = frozenset(
    f"{name}{like}"
    for name in ("zeros", "ones", "empty", "full", "rand", "randn", "randint")
    for like in ("", "_like")
)
WALKING = late_pattern(
    r"grad|backward|hess|jacob|optimi[sz]e|update|closure|penalty", re.IGNORECASE
)


def needs_graph_again(called: Called, backwards: Iterable[Called], uses: Uses) -> bool:
    """Whether the graph of a backward pass that keeps it may be walked again, or is not made in
    the loop around it."""
    loops = [one for one in called.context.loops if one.role not in ("epoch", "parameters")]
    if not loops:
        return True
    inner = loops[-1].loop.node
    value = differentiated(called)
    behind = nodes_behind(value)
    graphs = possible_graphs(value)
    for other in backwards:
        if other.node is called.node or _precedes(other, called, uses):
            continue
        if any(one.loop.node is inner for one in other.context.loops) and _may_share(
            differentiated(other), graphs, behind
        ):
            return True
    own = _repeated(inner, called.node, uses)
    repeated = _with_helpers(own, value, uses)
    return (
        not _made_in(repeated, inner, value, uses)
        or any(_keeps(helper) for helper in repeated[len(own) :])
        or _carried(repeated, value)
        or any(_walked_elsewhere(called, part, behind, uses) for part in repeated)
    )


def _precedes(other: Called, called: Called, uses: Uses) -> bool:
    """Whether ``other`` is done before ``called``, in the same function or in one called there."""
    if _is_before(other.node, called.node, uses):
        return True
    ways = zip(
        (*other.context.calls, other.node), (*called.context.calls, called.node), strict=False
    )
    return next((_is_before(one, two, uses) for one, two in ways if one is not two), False)


def _is_before(one: ast.AST, other: ast.AST, uses: Uses) -> bool:
    """Whether of two expressions in one function the first is written before the second."""
    if uses.scope_of(one) is not uses.scope_of(other):
        return False
    return (getattr(one, "lineno", 0), getattr(one, "col_offset", 0)) < (
        getattr(other, "lineno", 0),
        getattr(other, "col_offset", 0),
    )


def _repeated(loop: ast.AST, node: ast.AST, uses: Uses) -> list[ast.AST]:
    """What runs anew in each iteration: the loop, and the function around ``node`` if the loop
    calls it."""
    around = loop
    if not isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
        around = next((a for a in uses.ancestors(loop) if isinstance(a, COMPREHENSIONS)), loop)
    scope = uses.scope_of(node)
    return [around] if scope is uses.scope_of(around) else [around, scope]


def _with_helpers(repeated: list[ast.AST], value: Value, uses: Uses) -> list[ast.AST]:
    """What runs anew in each iteration, and the functions among it that made parts of a value."""
    waiting = {
        id(scope): scope
        for one in makings(value)
        if isinstance(scope := uses.scope_of(one.node), (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    found = list(repeated)
    for part in found:
        called = {last_name(one.func) for one in ast.walk(part) if isinstance(one, ast.Call)}
        for key, scope in list(waiting.items()):
            if scope.name in called:
                found.append(waiting.pop(key))
    return found


def _keeps(helper: ast.AST) -> bool:
    """Whether a function may keep a part of the graph for when it is called again."""
    return any(
        isinstance(one, (ast.Attribute, ast.Subscript)) and isinstance(one.ctx, ast.Store)
        for one in ast.walk(helper)
    )


COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _may_share(value: Value, graphs: frozenset[Site], behind: frozenset[int]) -> bool:
    others = nodes_behind(value)
    if not others or not behind:
        return True
    if possible_graphs(value) & graphs:
        return True
    return any(id(one.node) in behind and _may_begin_graph(one) for one in makings(value))


def _may_begin_graph(made: Made) -> bool:
    """Whether an operation may make, or take in, a part of a graph that nobody can see: moving
    a batch, or asking for its size, does not."""
    if made.name.startswith(("builtins.", "collections.")) or made.name in OF_BATCHES:
        return False
    head, _, short = made.name.rpartition(".")
    return short not in (MAKING if head == "torch" else LEAVING)


def _made_in(repeated: list[ast.AST], loop: ast.AST, value: Value, uses: Uses) -> bool:
    """Whether all calls that a value rests on are made in each iteration."""
    called = [one for one in makings(value) if isinstance(one.node, ast.Call)]
    within = {id(node) for part in repeated for node in ast.walk(part)}
    if not any(id(one.node) in within for one in called):
        return False
    scope = uses.scope_of(loop)
    parts = {id(site.node) for site in possible_graphs(value)}
    return not any(
        id(one.node) not in within
        and uses.scope_of(one.node) is scope
        and (id(one.node) in parts or _may_have_graph(one))
        for one in called
    )


def _may_have_graph(made: Made) -> bool:
    """Whether a call may give a part of a graph that nobody can see."""
    return made.name == "call" and not (made.inputs and isinstance(made.inputs[0], Function))


def _carried(repeated: list[ast.AST], value: Value) -> bool:
    """Whether a call in the loop takes a part of the graph that it gave in the last iteration."""
    within = {
        id(node) for part in repeated for node in ast.walk(part) if isinstance(node, ast.Call)
    }
    return _comes_back(value, within, frozenset(), set())


def _comes_back(value: Value, within: set[int], path: frozenset[int], seen: set[int]) -> bool:
    for leaf in leaves(value):
        made = made_of(leaf)
        if made is None or not possible_graphs(leaf):
            continue
        if id(made.node) in path:
            return True
        if id(made) in seen or len(seen) > MOST:
            continue
        seen.add(id(made))
        further = path | {id(made.node)} if id(made.node) in within else path
        given = (*made.inputs, *(one for _, one in made.keywords))
        if any(_comes_back(one, within, further, seen) for one in given):
            return True
    return False


def _walked_elsewhere(called: Called, part: ast.AST, behind: frozenset[int], uses: Uses) -> bool:
    """Whether something that is not seen, and may walk the graph, runs in the loop."""
    seen = {getattr(function, "name", "") for function in uses.functions()}
    for node in ast.walk(part):
        if not isinstance(node, ast.Call) or node is called.node:
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if not WALKING.search(name) or name in ("backward", "grad") or not node.args:
            continue
        harmless = re.search(r"zero|clip|no_grad|enabled|grads?_$", name)
        if not harmless and name not in seen and id(node) not in behind:
            return True
    return False
