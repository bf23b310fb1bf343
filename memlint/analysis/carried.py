"""What variables hold at the end of a piece of code, in terms of what they held at its start.

A walk over statements, in the order in which they may run, that follows one call (the
*seed*): a concatenation, or the call of a function that concatenates.  It tells which
variables end as what the seed made of what some variable was before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import field
from enum import IntEnum, auto

from memlint.analysis.walking import walk
from memlint.late_dataclass import dataclass

TRIES: tuple[type[ast.Try], ...] = (ast.Try, getattr(ast, "TryStar", ast.Try))
PASSES = 3


class How(IntEnum):
    """How a value comes from what a variable held: unchanged, longer, or a part of it."""

    KEPT = auto()
    GROWN = auto()
    CUT = auto()
    FRESH = auto()


Origin = tuple[str, How]
Origins = frozenset[Origin]
State = dict[str, Origins]
FRESH: Origin = ("", How.FRESH)
NEW: Origins = frozenset({FRESH})

# Methods and functions whose result has the length of what they are given.
PRESERVING_METHODS = frozenset(
    {"to", "cuda", "cpu", "detach", "clone", "contiguous", "float", "half", "double", "long",
     "int", "bool", "bfloat16", "type", "type_as", "astype", "numpy", "copy", "requires_grad_",
     "detach_", "squeeze", "unsqueeze", "t", "transpose", "permute", "pin_memory", "share_memory_",
     "tolist", "reset_index", "to_numpy", "block_until_ready", "swapaxes"}
)  # fmt: skip
PRESERVING_FUNCTIONS = frozenset(
    {"asarray", "array", "ascontiguousarray", "as_tensor", "tensor", "from_numpy", "Parameter",
     "Variable", "copy", "deepcopy", "squeeze", "unsqueeze", "transpose", "list", "tuple"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Seed:
    """A call, and what it makes longer: its value is what its ``operands`` are, made longer;
    item ``i`` of its value what ``items[i]`` are; after it, the variable ``k`` is what
    ``effects[k]`` was.  Operands are expressions or names of variables where the call stands.
    """

    node: ast.AST
    operands: tuple[ast.expr | str, ...] = ()
    items: tuple[tuple[int, tuple[ast.expr | str, ...]], ...] = ()
    effects: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a function ends: its values, item by item where it returns tuples, and its variables."""

    value: Origins
    items: tuple[Origins, ...]
    variables: State


@dataclass(slots=True)
class _Jumps:
    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)


def path_of(node: ast.expr) -> str | None:
    """The text of a variable, an attribute of one, or an item under a plain key."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            base = path_of(value)
            return None if base is None else f"{base}.{name}"
        case ast.Subscript(value=value, slice=key) if not isinstance(key, (ast.Slice, ast.Tuple)):
            base = path_of(value)
            return None if base is None else f"{base}[{ast.unparse(key)}]"
    return None


def grown(state: State) -> Iterable[str]:
    """The variables that are what they were, made longer, and are never cut or begun anew."""
    for path, origins in state.items():
        if (path, How.GROWN) in origins and not ({(path, How.CUT), FRESH} & origins):
            yield path


class Flow:
    """One walk."""

    def __init__(self, seed: Seed) -> None:
        self.seed = seed
        self._line: int = getattr(seed.node, "lineno", 0)
        self._jumps: list[_Jumps] = []
        self._returns: list[tuple[Origins, tuple[Origins, ...]]] = []
        self._ends: list[State] = []

    def iteration(self, loop: ast.For | ast.AsyncFor | ast.While) -> State:
        """What variables are after one iteration."""
        self._jumps.append(_Jumps())
        state: State = {}
        if not isinstance(loop, ast.While):
            self._assign(loop.target, NEW, state)
        end = self._block(loop.body, state)
        return _join([end, *self._jumps.pop().continues]) or {}

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Outcome:
        """How a call of a function ends."""
        end = self._block(node.body, {})
        variables = _join([end, *self._ends]) or {}
        values = frozenset[Origin]().union(*(value for value, _ in self._returns))
        lengths = {len(items) for _, items in self._returns}
        items: tuple[Origins, ...] = ()
        if len(lengths) == 1:
            columns = zip(*(items for _, items in self._returns), strict=True)
            items = tuple(frozenset[Origin]().union(*column) for column in columns)
        return Outcome(values, items, variables)

    # Statements

    def _block(self, body: Sequence[ast.stmt], state: State | None) -> State | None:
        for statement in body:
            if state is None:
                return None
            state = self._statement(statement, state)
        return state

    def _statement(self, node: ast.stmt, state: State) -> State | None:
        match node:
            case ast.Assign(targets=targets, value=value):
                self._assign_value(targets, value, state)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign_value([target], value, state)
            case ast.Expr(value=value):
                self._value(value, state)
            case ast.Delete(targets=targets):
                for deleted in targets:
                    self._assign(deleted, NEW, state)
            case ast.Return(value=value):
                self._returned(value, state)
                self._ends.append(state)
                return None
            case ast.Raise():
                return None
            case ast.Break() | ast.Continue():
                if self._jumps:
                    jumps = self._jumps[-1]
                    ends = jumps.breaks if isinstance(node, ast.Break) else jumps.continues
                    ends.append(state)
                return None
            case ast.If():
                return self._if(node, state)
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(node, state)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    if item.optional_vars is not None:
                        self._assign(item.optional_vars, NEW, state)
                return self._block(node.body, state)
            case ast.Match(cases=cases):
                return _join([state, *(self._block(c.body, dict(state)) for c in cases)])
            case ast.Try() | ast.stmt() if isinstance(node, TRIES):
                return self._try(node, state)
        return state

    def _assign_value(self, targets: list[ast.expr], value: ast.expr, state: State) -> None:
        items = self._items(value, state)
        whole = self._value(value, state)
        for target in targets:
            if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == len(items):
                for one, origins in zip(target.elts, items, strict=True):
                    self._assign(one, origins, state)
            else:
                self._assign(target, whole, state)
                path = path_of(target)
                for i, origins in enumerate(items if path is not None else ()):
                    state[f"{path}[{i}]"] = origins

    def _items(self, value: ast.expr, state: State) -> tuple[Origins, ...]:
        """The items of a value that is unpacked, where they are known."""
        if isinstance(value, ast.Tuple):
            return tuple(self._value(one, state) for one in value.elts)
        if value is self.seed.node and self.seed.items:
            known = dict(self.seed.items)
            return tuple(
                self._grown(known[i], state) if i in known else NEW for i in range(max(known) + 1)
            )
        return ()

    def _assign(self, target: ast.expr, origins: Origins, state: State) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for one in target.elts:
                self._assign(one, NEW, state)
            return
        if isinstance(target, ast.Starred):
            target = target.value
        path = path_of(target)
        if path is None:
            return
        parts = (f"{path}.", f"{path}[")
        for other in [one for one in state if one.startswith(parts)]:
            state[other] = NEW
        state[path] = origins

    def _returned(self, value: ast.expr | None, state: State) -> None:
        if value is None:
            return
        self._returns.append((self._value(value, state), self._items(value, state)))

    def _if(self, node: ast.If, state: State) -> State | None:
        self._value(node.test, state)
        then, other = dict(state), dict(state)
        after_then = self._block(node.body, then)
        after_other = self._block(node.orelse, other)
        for end, opposite in ((after_then, node.orelse), (after_other, node.body)):
            # What ended in a jump was kept by it.
            begun = [end] if end is not None else self._kept_by_jumps()
            if _is_first(node.test, alone=not self._holds_seed(opposite)):
                for one in begun:
                    _forgive(one, state)
                if after_then is not None and after_other is not None:
                    _forgive_beside_growth(after_then, after_other)
                    _forgive_beside_growth(after_other, after_then)
        return _join([after_then, after_other])

    def _kept_by_jumps(self) -> list[State]:
        return self._jumps[-1].continues[-1:] if self._jumps else []

    def _try(self, node: ast.Try, state: State) -> State | None:
        before = dict(state)
        body = self._block(node.body, state)
        if body is not None:
            body = self._block(node.orelse, body)
        ends = [body]
        for handler in node.handlers:
            end = self._block(handler.body, dict(before))
            if end is not None and self._holds_seed(node.body):
                _forgive(end, before)
            ends.append(end)
        joined = _join(ends)
        return joined if joined is None else self._block(node.finalbody, joined)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, state: State) -> State | None:
        endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant)
        breaks: list[State] = []
        for _ in range(PASSES):
            self._jumps.append(_Jumps())
            body = dict(state)
            if not isinstance(node, ast.While):
                self._assign(node.target, NEW, body)
            end = self._block(node.body, body)
            jumps = self._jumps.pop()
            breaks = jumps.breaks
            after = _join([state, end, *jumps.continues]) or state
            if after == state:
                break
            state = after
        exit_state = None if endless else self._block(node.orelse, dict(state))
        return _join([exit_state, *breaks])

    def _holds_seed(self, body: Iterable[ast.AST]) -> bool:
        around = [part for part in body if _spans(part, self._line)]
        return any(one is self.seed.node for part in around for one in walk(part))

    # Expressions

    def _value(self, node: ast.expr, state: State) -> Origins:
        """Where the value of an expression comes from; effects of the seed take place."""
        if node is self.seed.node:
            return self._seeded(state)
        match node:
            case ast.Name() | ast.Attribute():
                path = path_of(node)
                return NEW if path is None else self._held(path, state)
            case ast.Subscript():
                return self._subscript(node, state)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._value(test, state)
                one, other = self._value(body, state), self._value(orelse, state)
                return _without_first(one, other) | _without_first(other, one)
            case ast.BoolOp(values=values):
                return frozenset[Origin]().union(*(self._value(v, state) for v in values))
            case ast.NamedExpr(target=target, value=value):
                origins = self._value(value, state)
                self._assign(target, origins, state)
                return origins
            case ast.Await(value=value):
                return self._value(value, state)
            case ast.Call():
                return self._call(node, state)
        if _spans(node, self._line):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr) and self._holds_seed([child]):
                    self._value(child, state)
        return NEW

    def _call(self, node: ast.Call, state: State) -> Origins:
        kept: ast.expr | None = None
        match node.func:
            case ast.Attribute(value=receiver, attr=name) if name in PRESERVING_METHODS:
                kept = receiver
                if node.args and name in PRESERVING_FUNCTIONS and not _is_array(receiver):
                    kept = node.args[0]
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in PRESERVING_FUNCTIONS:
                kept = node.args[0] if node.args else None
        around = _spans(node, self._line)
        if around:
            for argument in (*node.args, *(k.value for k in node.keywords)):
                if argument is not kept and self._holds_seed([argument]):
                    self._value(argument, state)
        if kept is not None:
            return self._value(kept, state)
        if around and isinstance(node.func, ast.Attribute) and self._holds_seed([node.func.value]):
            self._value(node.func.value, state)
        return NEW

    def _subscript(self, node: ast.Subscript, state: State) -> Origins:
        path = path_of(node)
        if path is not None and path in state:
            return state[path]
        base = self._value(node.value, state)
        part = frozenset((root, How.CUT) for root, how in base if how is not How.FRESH)
        if path is not None and FRESH not in base:
            part |= {(path, How.KEPT)}
        return part or NEW

    def _held(self, path: str, state: State) -> Origins:
        if path in state:
            return state[path]
        for outer, origins in state.items():
            if path.startswith((f"{outer}.", f"{outer}[")) and (outer, How.KEPT) not in origins:
                return NEW
        return frozenset({(path, How.KEPT)})

    def _seeded(self, state: State) -> Origins:
        value = self._grown(self.seed.operands, state)
        after = {path: self._grown(sources, state) for path, sources in self.seed.effects}
        state.update(after)
        return value

    def _grown(self, operands: Sequence[ast.expr | str], state: State) -> Origins:
        sources = [
            self._held(one, state) if isinstance(one, str) else self._value(one, state)
            for one in operands
        ]
        if len(sources) > 1 and frozenset.intersection(*map(_roots, sources)):
            return NEW  # ``cat([x, x])`` doubles: few steps, whatever the length
        return frozenset(
            (root, How.CUT if how is How.CUT else How.GROWN)
            for origins in sources
            for root, how in origins
            if how is not How.FRESH
        )


def _is_array(node: ast.expr) -> bool:
    """Whether ``node.copy()`` is a method of an array, not a function of a module."""
    return not (isinstance(node, ast.Name) and node.id in ("np", "numpy", "torch", "copy", "jnp"))


def _roots(origins: Origins) -> frozenset[str]:
    return frozenset(root for root, how in origins if how is not How.FRESH)


def _without_first(origins: Origins, other: Origins) -> Origins:
    """``x if acc is None else cat([acc, x])``: the first value begins nothing anew."""
    return origins - NEW if any(how is How.GROWN for _, how in other) else origins


def _join(states: Iterable[State | None]) -> State | None:
    joined: State | None = None
    for state in states:
        if joined is None:
            joined = None if state is None else dict(state)
        elif state is not None:
            _join_into(joined, state)
    return joined


def _join_into(joined: State, state: State) -> None:
    for path, origins in state.items():
        known = joined.get(path)
        if known is None:
            joined[path] = origins | {(path, How.KEPT)}
        elif known is not origins:
            joined[path] = known | origins
    for path, known in joined.items():
        if path not in state:
            joined[path] = known | {(path, How.KEPT)}


def _forgive(state: State, before: State) -> None:
    """Take it that what was begun in this branch is begun there once, not over and over."""
    for path, origins in state.items():
        if FRESH in origins and FRESH not in before.get(path, frozenset()):
            state[path] = origins - NEW


def _forgive_beside_growth(state: State, other: State) -> None:
    """``if cache is not None: k = cat([cache, k])``: without a cache, the first ``k`` begins it."""
    for path, known in other.items():
        if known is not NEW and any(how is How.GROWN for _, how in known):
            origins = state.get(path, frozenset())
            if FRESH in origins:
                state[path] = origins - NEW


def _is_first(test: ast.expr, *, alone: bool) -> bool:
    """Whether a test looks like that for the first iteration, or for its opposite.

    A mere flag counts only where it decides whether to concatenate (not ``alone``).
    """
    match test:
        case ast.BoolOp(values=values):
            return any(_is_first(value, alone=alone) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_first(operand, alone=alone)
        case ast.Compare(ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
            return True
        case ast.Compare(left=left, comparators=[ast.Constant(value=0 | 1 | None | "")]):
            return not isinstance(left, ast.BinOp)
        case ast.Call(func=ast.Name(id="hasattr" | "isinstance")):
            return True
        case ast.Call(func=ast.Name(id="len")):
            return True
        case ast.Name() | ast.Attribute() | ast.Call():
            return not alone
    return False


def _spans(node: ast.AST, line: int) -> bool:
    """Whether a node may hold one at ``line``; 0 stands for a line that is not known."""
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    return not (line and first and last) or first <= line <= last
