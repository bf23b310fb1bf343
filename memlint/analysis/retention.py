"""Accumulators that outlive an iteration and are given parts of graphs of autograd."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memlint.analysis.events import Called, Enclosing
from memlint.analysis.graphs import COUNTED, LOSS, last_name
from memlint.analysis.knowledge.autograd import OPERATORS
from memlint.analysis.uses import Uses
from memlint.analysis.values import (
    Const,
    Mapping,
    Object,
    Ref,
    Sequence,
    Value,
    alternatives,
    graphs_of,
    leaves,
    made_of,
)
from memlint.analysis.walking import children, walk
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern
from memlint.source.model import Source
from memlint.source.project import is_foreign

GROWING = frozenset({".append", ".add", ".extend", ".insert", ".appendleft"})
SUMMING = frozenset({"operator.iadd", "operator.isubtract", "operator.add", "operator.subtract"})
SETTING = "operator.setitem"
LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass(frozen=True, slots=True)
class Kept:
    """A part of a graph that is put into an accumulator: ``target`` is its text, ``given`` the
    expression that is added, ``value`` what is known of it.  ``node`` is where to say so,
    ``grows`` whether one more is kept each time, not their sum."""

    called: Called
    node: ast.expr | ast.stmt
    target: str
    given: ast.expr
    value: Value
    grows: bool


def kept(called: Called, uses: Uses) -> Kept | None:
    """What an operation puts into an accumulator, where that is a part of a graph."""
    if called.context.compiled is not None:
        return None
    found = _accumulated(called)
    if found is None:
        return None
    target, given, value, grows = found
    if not graphs_of(value) or COUNTED.search(last_name(given)):
        return None
    if grows and _is_cut(target, called.source):
        return None
    node: ast.expr | ast.stmt = called.node if grows else called.statement  # type: ignore[assignment]
    return Kept(called, node, target, given, value, grows)


def _is_cut(target: str, source: Source) -> bool:
    """Whether a program takes from a list again what it puts in: a window that moves along."""
    name = re.escape(re.split(r"[.\[]", target.removeprefix("self."), maxsplit=1)[0])
    return source.holds(
        late_pattern(
            rf"\b{name}\.(?:pop|popleft)\(|\bdel [\w.]*\b{name}\[|\b{name} = [\w.]*\b{name}\["
        )
    )


def _accumulated(called: Called) -> tuple[str, ast.expr, Value, bool] | None:
    node, given = called.node, called.args.positional
    if called.name in GROWING:
        return _grown(called)
    if called.context.grad is False:
        return None
    if isinstance(node, ast.AugAssign) and called.name in SUMMING:
        if isinstance(node.value, ast.List):  # ``losses += [loss]``
            only = node.value.elts[0] if len(node.value.elts) == 1 else node.value
            return ast.unparse(node.target), only, given[1], True
        return ast.unparse(node.target), node.value, given[1], False
    if isinstance(node, ast.BinOp) and called.name in SUMMING:
        target = _target(called.statement)
        if target is None or not _is_kept_as_it_is(node, called.statement):
            return None
        for side, other, value in (
            (node.left, node.right, given[1]),
            (node.right, node.left, given[0]),
        ):
            if _rests_on(side, target):
                return target, other, value, False
    if called.name == SETTING and isinstance(node, ast.Subscript):
        key = called.args.keywords.get("key")
        keys = key.items if isinstance(key, Sequence) else None
        dictionary = any(isinstance(one, Mapping) for one in alternatives(given[1]))
        if dictionary and keys and not all(isinstance(one, Const) for one in keys):
            value_node = getattr(called.statement, "value", None)
            if isinstance(value_node, ast.expr):
                return ast.unparse(node.value), value_node, given[0], True
    return None


def _grown(called: Called) -> tuple[str, ast.expr, Value, bool] | None:
    node = called.node
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
        return None
    if not called.args.positional or not _is_list(called.receiver, node.func.value):
        return None
    return ast.unparse(node.func.value), node.args[-1], called.args.positional[-1], True


def _is_list(receiver: Value | None, text: ast.expr) -> bool:
    """Whether something is known to be a list, or an unbounded queue."""
    if receiver is None:
        return False
    for one in alternatives(receiver):
        if isinstance(one, Sequence) and one.kind in ("list", "set"):
            continue
        if isinstance(one, Object) and one.cls == "collections.deque":
            if any(key in ("maxlen", "1") for key, _ in one.facts):
                return False
            continue
        if not (isinstance(text, ast.Subscript) and _is_item_of_lists(one)):
            return False
    return True


def _is_item_of_lists(value: Value) -> bool:
    """``defaultdict(list)[key]``."""
    made = made_of(value)
    if made is None or made.name != "operator.getitem" or not made.inputs:
        return False
    base = made_of(made.inputs[0])
    return (
        base is not None
        and base.name == "collections.defaultdict"
        and base.inputs[:1] == (Ref("builtins.list"),)
    )


def _target(statement: ast.AST) -> str | None:
    match statement:
        case ast.Assign(targets=[ast.Name() | ast.Attribute() | ast.Subscript() as target]):
            return ast.unparse(target)
        case ast.AnnAssign(target=ast.Name() | ast.Attribute() as target):
            return ast.unparse(target)
    return None


def _is_kept_as_it_is(node: ast.BinOp, statement: ast.AST) -> bool:
    """Whether what a statement assigns is a sum, scaled or chosen at most: no call takes it."""
    waiting: list[ast.AST] = [getattr(statement, "value", statement)]
    while waiting:
        one = waiting.pop()
        if one is node:
            return True
        if isinstance(one, (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.NamedExpr)):
            waiting += children(one)
    return False


def _rests_on(node: ast.expr, target: str) -> bool:
    """Whether a side of a sum is the target itself, scaled or with something added."""
    match node:
        case ast.BinOp(left=left, right=right):
            return _rests_on(left, target) or _rests_on(right, target)
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return ast.unparse(node) == target
    return False


# Whether it outlives an iteration


def outlives(one: Kept, loop: ast.AST, place: ast.AST, target: str, uses: Uses) -> bool:
    """Whether an accumulator that goes by ``target`` at ``place`` is there before an iteration of
    ``loop`` begins and after it ends."""
    if isinstance(loop, LOOPS) and any(_makes_anew(s, target) for s in _always_run(loop.body)):
        return False
    inside, around = uses.scope_of(place), uses.scope_of(loop)
    if inside is around:
        return True
    if any(_makes_anew(s, target) for s in _always_run(getattr(inside, "body", []))):
        return False
    root = re.split(r"[.\[(]", target, maxsplit=1)[0]
    if root in ("self", "cls") and target != root:
        return True
    outer = {
        name
        for node in walk(inside)
        if isinstance(node, (ast.Global, ast.Nonlocal))
        for name in node.names
    }
    if root in outer:
        return True
    local = {a.arg for a in walk(inside) if isinstance(a, ast.arg)} | {
        n.id for n in walk(inside) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return one.grows and root not in local


def _always_run(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, (ast.With, ast.AsyncWith, ast.Try)):
            yield from _always_run(statement.body)


def _makes_anew(statement: ast.stmt, target: str) -> bool:
    """Whether a statement gives the target, or what it is an item of, a new value."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            pass
        case ast.AnnAssign(target=one, value=ast.expr() as value):
            targets = [one]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=base, attr="clear" | "reset"))):
            return ast.unparse(base) == target
        case ast.Delete(targets=[ast.Subscript(value=base)]):
            return ast.unparse(base) == target
        case _:
            return False
    names = [
        ast.unparse(part)
        for one in targets
        for part in (one.elts if isinstance(one, (ast.Tuple, ast.List)) else [one])
    ]
    if not any(target == name or target.startswith((f"{name}.", f"{name}[")) for name in names):
        return False
    return not any(
        isinstance(n, (ast.Name, ast.Attribute, ast.Subscript)) and ast.unparse(n) in names
        for n in walk(value)
    )


def emptied_elsewhere(target: str, text: str) -> bool:
    """Whether the program makes an attribute's list anew in more than one place."""
    name = re.escape(target.rpartition(".")[2])
    made = re.findall(rf"\.{name}\s*(?::[^=\n]+)?=\s*(?:\[\s*\]|list\(|\{{|deque\()", text)
    return (
        len(made) > 1
        or re.search(rf"\.{name}(\.clear\(|\[:\]\s*=)|del [\w.]+\.{name}\[", text) is not None
    )


# Where to say it


def place_of(one: Kept, uses: Uses) -> tuple[ast.AST, str, ast.expr | None]:
    """Where the part of the graph is handed over: the accumulation itself, or the call of the
    meter that it is an argument of; what the accumulator goes by there, and the argument."""
    place: ast.AST = one.node
    target, given = one.target, one.given
    calls = list(one.called.context.calls)
    found: ast.expr | None = given
    while calls:
        if not is_foreign(place):
            scope = uses.scope_of(place)
            origin = _origin(one.value, scope, uses)
            if origin is None or uses.scope_of(origin) is scope:
                break
        call = calls.pop()
        if not isinstance(call, ast.Call):
            break
        place = call
        func = call.func
        if target.startswith("self."):
            target = ast.unparse(func.value if isinstance(func, ast.Attribute) else func)
        found = _handed(call, _origin(one.value, uses.scope_of(call), uses), uses)
    return place, target, found


def _handed(call: ast.Call, origin: ast.AST | None, uses: Uses) -> ast.expr | None:
    """The argument of a call that is the part of the graph which ``origin`` gives."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if len(given) == 1:
        return given[0]
    names = uses.names_of(origin) if isinstance(origin, ast.expr) else ()
    exact = [g for g in given if g is origin or (isinstance(g, ast.Name) and g.id in names)]
    if not exact:
        exact = [g for g in given if LOSS.search(last_name(g))]
    return exact[0] if len(exact) == 1 else None


def _origin(value: Value, scope: ast.AST, uses: Uses) -> ast.AST | None:
    """The expression that a part of a graph comes from, through arithmetic in ``scope``."""
    for leaf in leaves(value):
        made = made_of(leaf)
        if made is None or not graphs_of(leaf):
            continue
        if made.name in OPERATORS and uses.scope_of(made.node) is scope:
            for part in made.inputs:
                if graphs_of(part):
                    inner = _origin(part, scope, uses)
                    if inner is not None:
                        return inner
        return made.node
    return None


def innermost_of(loops: tuple[Enclosing, ...], nodes: set[int]) -> Enclosing | None:
    """The innermost loop that is among ``nodes``."""
    return next((one for one in reversed(loops) if id(one.loop.node) in nodes), None)
