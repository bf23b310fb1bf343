"""Graphs of autograd as rules ask about them: what a value rests on, and whether it surely does."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator

from memlint.analysis.events import Called
from memlint.analysis.knowledge.autograd import (
    CARRYING,
    CARRYING_OTHERS,
    JOINING,
    LEAVING,
    OPERATORS,
)
from memlint.analysis.values import (
    Made,
    Site,
    Value,
    graphs_of,
    leaves,
    made_of,
    possible_graphs,
)
from memlint.late_pattern import late_pattern

BACKWARD = frozenset({".backward", ".manual_backward", "torch.autograd.backward",
                      "torch.autograd.grad"})  # fmt: skip
MOST = 400
# What losses are called, as functions or objects that nobody can see into.
LOSS = late_pattern(
    r"loss|crit|objective|(^|_)(bce|mse|nll|ce|kl|elbo|energy|penalty|cost)(_|$)|entropy",
    re.IGNORECASE,
)
# What numbers are called that are mostly counted, not differentiated.
COUNTED = late_pattern(
    r"(^|_)(acc|accs|accuracy|correct|hits?|iou|dice|top_?\d|n|num|count|idx|index|preds?|labels?|"
    r"targets?|masks?|precision|recall|f1|psnr|ssim|metrics?|scores?|rewards?|stats?|infos?|items|logs?)"
    r"(\d*|s)(_|$)",
    re.IGNORECASE,
)
_LEAVING = frozenset(f".{name}" for name in LEAVING)
_SURE_METHODS = frozenset(f".{name}" for name in CARRYING | CARRYING_OTHERS)
_SURE_FUNCTIONS = frozenset(f"torch.{name}" for name in CARRYING | CARRYING_OTHERS | JOINING)


def differentiated(called: Called) -> Value:
    """What a call of ``backward``, or one like it, is told to differentiate."""
    given = called.args.positional
    if called.receiver is not None and possible_graphs(called.receiver):
        return called.receiver
    for one in given:
        if possible_graphs(one):
            return one
    if called.name == ".backward" and called.receiver is not None and not given:
        return called.receiver
    return given[0] if given else called.receiver or _nothing()


def _nothing() -> Value:
    return Value()


def makings(value: Value) -> Iterator[Made]:
    """The operations that a value was computed by, back to where a graph ends."""
    seen: set[int] = set()
    waiting = [value]
    while waiting and len(seen) < MOST:
        for leaf in leaves(waiting.pop()):
            made = made_of(leaf)
            if made is None or id(made) in seen:
                continue
            seen.add(id(made))
            yield made
            if made.name in _LEAVING:
                continue
            waiting.extend(made.inputs)
            waiting.extend(one for _, one in made.keywords)


def nodes_behind(value: Value) -> frozenset[int]:
    """The expressions that a value was computed by, as identities."""
    return frozenset(id(made.node) for made in makings(value))


def surely_in_graph(value: Value, anchors: Container[int], depth: int = 0) -> bool:
    """Whether ``value`` is a part of a graph by operations that are known to hand it on, from
    one of the expressions ``anchors`` on."""
    if not graphs_of(value) or depth > 12:
        return False
    return all(_surely(leaf, anchors, depth) for leaf in leaves(value) if graphs_of(leaf))


def _surely(leaf: Value, anchors: Container[int], depth: int) -> bool:
    made = made_of(leaf)
    if made is None:
        return True
    if id(made.node) in anchors:
        return True
    if not _hands_on(made):
        return False
    return any(surely_in_graph(one, anchors, depth + 1) for one in made.inputs) or any(
        surely_in_graph(one, anchors, depth + 1) for _, one in made.keywords
    )


def _hands_on(made: Made) -> bool:
    name = made.name
    if name in OPERATORS or name in _SURE_METHODS or name in _SURE_FUNCTIONS:
        return True
    if name.startswith(("torch.nn.functional.", "torch.nn.")):
        return True
    if name == "call" or name.startswith("."):
        return isinstance(made.node, ast.Call) and bool(LOSS.search(last_name(made.node)))
    return False


def last_name(node: ast.AST) -> str:
    """The last name of what an expression is about."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", getattr(node, "attr", ""))


def shared(one: Value, other: Value) -> frozenset[Site]:
    """The graphs that two values may have in common."""
    return possible_graphs(one) & possible_graphs(other)
