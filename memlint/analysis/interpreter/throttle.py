"""Conditions that hold only every so many iterations of the loop around them."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from weakref import WeakKeyDictionary

from memlint.analysis.last_name import last_name
from memlint.analysis.values import Value, alternatives, made_of
from memlint.analysis.walking import walk
from memlint.late_pattern import late_pattern

# What a predicate or a flag is called that is true now and then.
NOW_AND_THEN = late_pattern(
    r"(^|_)(every|interval|freq|frequency|period|periodic|cadence|sync_gradients|debug|verbose)($|_)"
    r"|(^|_)(should|time_to|do|is|to|need|needs)_(log|print|eval|evaluate|validate|save|report|"
    r"checkpoint|display|plot|flush|sync|sample|summarize|write|record|dump)",
    re.IGNORECASE,
)
LAST = late_pattern(r"(^|_)(last|final|first|end|done|finished|warmup)($|_)", re.IGNORECASE)
DEPTH = 6
# Calls that tell one process of several apart, or ask how the program was started.
_ASKS = late_pattern(r"(^|_)(rank|main|master|primary|leader|zero|available|initialized)($|_)")


def throttles(test: ast.expr, value: Value) -> bool | None:
    """The truth of ``test`` under which the program goes on only now and then, if it is such.

    ``step % n == 0`` is, as are comparisons of a counter with one number, predicates that
    are called so, and flags that were computed from any of these.
    """
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            found = throttles(inner, value)
            return None if found is None else not found
        case ast.BoolOp(op=ast.And(), values=parts):
            return True if any(throttles(part, value) is True for part in parts) else None
        case ast.BoolOp(op=ast.Or(), values=parts):
            found_parts = [throttles(part, value) for part in parts]
            if all(part is True for part in found_parts):
                return True
            return False if any(part is False for part in found_parts) else None
        case ast.Compare(ops=[op]):
            return _compared(test, op)
        case ast.BinOp(op=ast.Mod(), left=left) if not isinstance(left, ast.Constant):
            # ``if step % 100: continue``
            return False
    if NOW_AND_THEN.search(last_name(test)) or LAST.search(last_name(test)):
        return True
    return True if _computed_by_remainder(value) else None


@lru_cache(maxsize=256)
def _compared(test: ast.Compare, op: ast.cmpop) -> bool | None:
    sides = (test.left, test.comparators[0])
    if any(_has_remainder(side) for side in sides):
        # Of ``step % n != 0`` it is the other side that is rare.
        return not isinstance(op, (ast.NotEq, ast.IsNot))
    if any(NOW_AND_THEN.search(last_name(side)) for side in sides) and not isinstance(
        op, (ast.Lt, ast.LtE, ast.Is, ast.IsNot)
    ):
        return not isinstance(op, ast.NotEq)
    if isinstance(op, (ast.Eq, ast.NotEq)) and any(_counts(side) for side in sides):
        return isinstance(op, ast.Eq)
    return None


def _counts(side: ast.expr) -> bool:
    """A name that counts iterations."""
    name = last_name(side).lower()
    return bool(
        re.search(
            r"(^|_)(i|idx|step|steps|iter|iteration|it|batch_idx|batch|epoch|n_iter|itr)$", name
        )
    )


def _has_remainder(side: ast.expr) -> bool:
    return any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) for node in walk(side))


def _computed_by_remainder(value: Value, depth: int = 0) -> bool:
    """Whether a flag, or what a predicate returns, was computed by ``%``."""
    for one in alternatives(value):
        made = made_of(one)
        if made is None or depth > DEPTH:
            continue
        if made.name == "operator.remainder":
            return True
        if made.name in COMPARISONS and any(
            _computed_by_remainder(part, depth + 1) for part in made.inputs
        ):
            return True
    return False


COMPARISONS = frozenset(f"operator.{name}" for name in ("eq", "ne", "lt", "le", "gt", "ge", "not"))


def steady(test: ast.expr, loop: ast.AST) -> bool:
    """Whether ``test`` asks only for what does not change in ``loop``, or from one call of a
    function to the next: a rank, an option."""
    bound = _bound_in(loop)
    for node in walk(test):
        match node:
            case ast.Name(id=name) if name in bound:
                return False
            case ast.Attribute() if ast.unparse(node) in bound:
                return False
            case ast.Call():
                name = last_name(node)
                if not _ASKS.search(name) and name not in ("isinstance", "hasattr", "getattr"):
                    return False
            case ast.NamedExpr() | ast.Await() | ast.Yield() | ast.Subscript():
                return False
    return True


_BOUND: WeakKeyDictionary[ast.AST, set[str]] = WeakKeyDictionary()


def _bound_in(loop: ast.AST) -> set[str]:
    """The names and attributes that a loop, or a function that one calls, binds."""
    known = _BOUND.get(loop)
    if known is None:
        known = _BOUND[loop] = _bindings(loop)
    return known


def _bindings(loop: ast.AST) -> set[str]:
    bound = {
        ast.unparse(node)
        for node in walk(loop)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store)
    }
    if isinstance(loop, (ast.FunctionDef, ast.AsyncFunctionDef)):
        bound |= {node.arg for node in walk(loop.args) if isinstance(node, ast.arg)} - {"self"}
    return bound


_SET_LATER: WeakKeyDictionary[ast.ClassDef, frozenset[str]] = WeakKeyDictionary()


def attributes_set_later(cls: ast.ClassDef) -> frozenset[str]:
    """The attributes of ``self`` that methods of a class store, other than ``__init__``."""
    known = _SET_LATER.get(cls)
    if known is None:
        known = _SET_LATER[cls] = frozenset(
            node.attr
            for method in cls.body
            if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef))
            and method.name != "__init__"
            for node in walk(method)
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        )
    return known
