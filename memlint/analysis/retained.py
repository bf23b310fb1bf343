"""Whether a graph that is kept after a backward pass is walked once more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from memlint.analysis.events import Called
from memlint.analysis.graphs import differentiated, makings, nodes_behind
from memlint.analysis.uses import Uses
from memlint.analysis.values import Function, Site, Value, leaves, possible_graphs

# Functions that may walk a graph they are handed, where they are not seen.
WALKING = re.compile(r"grad|backward|hess|jacob|optimi[sz]e|update|closure|penalty", re.IGNORECASE)


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
        if other.node is called.node:
            continue
        if any(one.loop.node is inner for one in other.context.loops) and _may_share(
            differentiated(other), graphs, behind
        ):
            return True
    return (
        not _made_in(inner, value, uses)
        or _carried(inner, value)
        or _walked_elsewhere(called, inner, behind)
    )


def _may_share(value: Value, graphs: frozenset[Site], behind: frozenset[int]) -> bool:
    others = possible_graphs(value)
    if not others or not graphs:
        return True
    return bool(others & graphs) or not behind.isdisjoint(nodes_behind(value))


def _made_in(loop: ast.AST, value: Value, uses: Uses) -> bool:
    """Whether all calls that a value rests on are made in the loop, or in what it calls."""
    called = [one for one in makings(value) if isinstance(one.node, ast.Call)]
    within = {id(node) for node in ast.walk(loop)}
    if not any(id(one.node) in within for one in called):
        return False
    scope = uses.scope_of(loop)
    parts = {id(site.node) for site in possible_graphs(value)}
    return not any(
        id(one.node) in parts and id(one.node) not in within and uses.scope_of(one.node) is scope
        for one in called
    ) and not _outer_graph(value, within, scope, uses)


def _outer_graph(value: Value, within: set[int], scope: ast.AST, uses: Uses) -> bool:
    """Whether a value rests on a call before the loop whose result may have a graph."""
    return any(
        isinstance(one.node, ast.Call)
        and one.name == "call"
        and not (one.inputs and isinstance(one.inputs[0], Function))
        and id(one.node) not in within
        and uses.scope_of(one.node) is scope
        for one in makings(value)
    )


def _carried(loop: ast.AST, value: Value) -> bool:
    """Whether a call in the loop takes what it gave itself in the last iteration."""
    within = {id(node) for node in ast.walk(loop) if isinstance(node, ast.Call)}
    for made in makings(value):
        if id(made.node) not in within or made.name.endswith(("detach", "item", "data")):
            continue
        for one in (*made.inputs, *(given for _, given in made.keywords)):
            for leaf in leaves(one):
                if possible_graphs(leaf) and id(made.node) in nodes_behind(leaf):
                    return True
    return False


def _walked_elsewhere(called: Called, loop: ast.AST, behind: frozenset[int]) -> bool:
    """Whether something that is not seen, and may walk the graph, follows in the loop."""
    for node in ast.walk(loop):
        if not isinstance(node, ast.Call) or node is called.node:
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if not WALKING.search(name) or name in ("backward", "grad") or not node.args:
            continue
        harmless = re.search(r"zero|clip|no_grad|enabled|grads?_$", name)
        if not harmless and id(node) not in behind:
            return True
    return False
