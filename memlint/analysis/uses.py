"""Where the value of an expression goes within its function: a def-use helper.

Unlike what made a value, which is may-information, this is complete for one function: every
place that may take the value is told, or at least that it leaves what can be followed
("returned", "stored", "captured" ...).  A rule that needs "nothing else uses this" asks here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TypeAlias

from memlint.analysis.walking import children, parents_in, walk
from memlint.late_dataclass import dataclass

# Python 3.10 has no ``except*``.
_TRIES: tuple[type[ast.Try], ...] = (ast.Try, getattr(ast, "TryStar", ast.Try))
# Statements after which the next one runs, and that bind names as such alone.
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Assert, ast.Delete)
# Loops too are followed by the next statement, whether or not what is in them leaves them.
_PASSED = (*_SIMPLE, ast.For, ast.AsyncFor, ast.While)
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Names: TypeAlias = tuple[ast.Name, ...]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Use:
    """One place that takes a value.

    ``kind`` is "receiver" (``v.name(...)``), "argument" (``name(v)``, ``name([v, w])``,
    ``name(key=v)``), "operand" (of an operator, ``name`` is the class of its node),
    "attribute" (``v.name`` that is not called), "item" (``v[...]`` is read), "index"
    (``x[v]``), "updated" (``v += ...``), "written" (``v[...] = ...``, ``v.name = ...``, and the
    same with an operator), "returned", "yielded", "stored" (in an attribute, an item, a global
    name, by unpacking), "contained" (in a display that is no argument), "captured" (by a nested
    function), "iterated", "tested", "formatted" or "other".  ``node`` is the
    expression or statement that takes it, ``value`` the expression that it is taken as.
    ``position`` and ``keyword`` say as which argument.
    """

    kind: str
    node: ast.AST
    value: ast.expr
    name: str = ""
    position: int | None = None
    keyword: str | None = None


class Uses:
    """The uses of the values of one program."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._parents = parents_in(tree)
        self._reached: dict[tuple[ast.AST, str], tuple[ast.Name, ...] | None] = {}
        self._declared: dict[ast.AST, frozenset[str]] = {}
        self._mentions = _Mentions()
        self._calls: dict[str, list[ast.Call]] | None = None

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node that holds ``node``."""
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around ``node``, innermost first."""
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def scope_of(self, node: ast.AST) -> ast.AST:
        """The function, class or module that ``node`` is evaluated in."""
        inner = node
        for above in self.ancestors(node):
            if isinstance(above, (*FUNCTIONS, ast.ClassDef)) and _runs_inside(inner, above):
                return above
            inner = above
        return self._tree

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class around ``node``."""
        return next((a for a in self.ancestors(node) if isinstance(a, ast.ClassDef)), None)

    def functions(self) -> Iterator[Function]:
        """The functions of the program."""
        yield from (node for node in self._parents if isinstance(node, FUNCTIONS))

    def classes(self) -> Iterator[ast.ClassDef]:
        """The classes of the program."""
        yield from (node for node in self._parents if isinstance(node, ast.ClassDef))

    def calls(self) -> Iterator[ast.Call]:
        """The calls of the program."""
        yield from (node for node in self._parents if isinstance(node, ast.Call))

    def calls_of(self, name: str) -> tuple[ast.Call, ...]:
        """The calls of what has this name, be it behind a dot."""
        if self._calls is None:
            self._calls = {}
            for call in self.calls():
                self._calls.setdefault(dotted(call.func).rpartition(".")[2], []).append(call)
        return tuple(self._calls.get(name, ()))

    def names_of(self, node: ast.expr) -> tuple[str, ...]:
        """The names that the value of ``node`` is bound to at once."""
        return tuple(name.id for name in self._bound(node))

    def of(self, node: ast.expr) -> tuple[Use, ...]:
        """All that may take the value of ``node``, through the names it is bound to."""
        return tuple(self._taken(node))

    def of_parameter(self, function: Function, name: str) -> tuple[Use, ...]:
        """All that may take what is given for a parameter."""
        arguments = function.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        if not any(one.arg == name for one in every):
            return ()
        reach = _Reach(name, None, self._mentions)
        reach.run(_body(function), alive=True)
        return tuple(use for load in reach.loads for use in self._taken_by_load(load, function))

    # From an expression to what takes it

    def _taken(self, node: ast.expr, through: _Names = ()) -> Iterator[Use]:
        """``through`` are the names on the way; ``a, b = b, a`` in a loop leads back to them."""
        above = self._parents.get(node)
        match above:
            case ast.Assign() | ast.AnnAssign():
                targets = above.targets if isinstance(above, ast.Assign) else [above.target]
                for target in targets:
                    yield from self._assigned(target, above, node, through)
            case ast.NamedExpr(target=target) if above.value is node:
                yield from self._assigned(target, above, node, through)
                yield from self._taken(above, through)
            case ast.IfExp(test=test):
                if test is node:
                    yield Use("tested", above, node)
                else:
                    yield from self._taken(above, through)
            case ast.Tuple() | ast.List() if (facing := self._facing(above, node)) is not None:
                yield from self._assigned(facing, self._parents[above], node, through)
            case ast.Expr():
                return
            case _:
                yield _use(above, node, self._parents)

    def _facing(self, display: ast.Tuple | ast.List, node: ast.expr) -> ast.expr | None:
        """The target that ``node`` is assigned to in ``a, b = x, y``."""
        above = self._parents.get(display)
        if not isinstance(above, ast.Assign) or len(above.targets) != 1:
            return None
        target = above.targets[0]
        if not isinstance(target, (ast.Tuple, ast.List)) or len(target.elts) != len(display.elts):
            return None
        if any(isinstance(e, ast.Starred) for e in (*target.elts, *display.elts)):
            return None
        return target.elts[display.elts.index(node)]

    def _assigned(
        self, target: ast.expr, statement: ast.AST, node: ast.expr, through: _Names
    ) -> Iterator[Use]:
        if not isinstance(target, ast.Name):
            yield Use("stored", statement, node)
            return
        if target in through:
            return
        loads = self._loads(target)
        if loads is None:
            yield Use("stored", statement, node, target.id)
            return
        scope = self.scope_of(target)
        for load in loads:
            yield from self._taken_by_load(load, scope, (*through, target))

    def _taken_by_load(self, load: ast.Name, scope: ast.AST, through: _Names = ()) -> Iterator[Use]:
        if isinstance(load.ctx, ast.Store):  # ``v += ...``
            yield Use("updated", self._parents[load], load)
        elif self.scope_of(load) is not scope:
            yield Use("captured", load, load, load.id)
        else:
            yield from self._taken(load, through)

    def _bound(self, node: ast.expr) -> Iterator[ast.Name]:
        above = self._parents.get(node)
        match above:
            case ast.Assign(targets=targets):
                yield from (t for t in targets if isinstance(t, ast.Name))
            case ast.AnnAssign(target=ast.Name() as target):
                yield target
            case ast.NamedExpr(target=target):
                yield target
            case ast.IfExp() if above.test is not node:
                yield from self._bound(above)
            case ast.Tuple() | ast.List():
                if isinstance(facing := self._facing(above, node), ast.Name):
                    yield facing

    # From a definition of a name to the loads that it reaches

    def _loads(self, target: ast.Name) -> tuple[ast.Name, ...] | None:
        """The loads that a definition reaches; ``None`` where the name is not a local one."""
        key = (target, target.id)
        if key not in self._reached:
            self._reached[key] = self._reach(target)
        return self._reached[key]

    def _reach(self, target: ast.Name) -> tuple[ast.Name, ...] | None:
        scope = self.scope_of(target)
        if isinstance(scope, ast.ClassDef):
            return None
        if target.id in self._names_declared(scope):
            return None
        reach = _Reach(target.id, target, self._mentions)
        reach.run(_body(scope), alive=False)
        return tuple(reach.loads)

    def _names_declared(self, scope: ast.AST) -> frozenset[str]:
        """The names that a function, or one inside it, declares global or nonlocal."""
        if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return frozenset()
        if scope not in self._declared:
            nodes = (n for n in walk(scope) if isinstance(n, (ast.Global, ast.Nonlocal)))
            self._declared[scope] = frozenset(name for node in nodes for name in node.names)
        return self._declared[scope]


class _Mentions:
    """Which statements speak of a name, each looked through once."""

    def __init__(self) -> None:
        self._names: dict[ast.AST, frozenset[str]] = {}

    def speaks_of(self, statement: ast.AST, name: str) -> bool:
        names = self._names.get(statement)
        if names is None:
            found = (node.id for node in walk(statement) if isinstance(node, ast.Name))
            names = self._names[statement] = frozenset(found)
        return name in names


@lru_cache(maxsize=2)
def uses_in(tree: ast.Module) -> Uses:
    """The uses of the values of ``tree``, worked out once."""
    return Uses(tree)


def _body(scope: ast.AST) -> list[ast.AST]:
    """What runs when a scope is entered."""
    if isinstance(scope, ast.Lambda):
        return [scope.body]
    return list(scope.body)  # type: ignore[attr-defined]


def _runs_inside(node: ast.AST, scope: ast.AST) -> bool:
    """Whether a child of a definition is evaluated in it, not where it stands."""
    return any(node is one for one in _body(scope))


def _use(above: ast.AST | None, node: ast.expr, parents: dict[ast.AST, ast.AST]) -> Use:
    """The use of ``node`` by the node that holds it."""
    match above:
        case ast.Attribute():
            return _attribute(above, node, parents)
        case ast.Call():
            if above.func is node:
                return Use("other", above, node)
            return Use("argument", above, node, dotted(above.func), above.args.index(node))
        case ast.keyword(arg=key):
            call = parents[above]
            if isinstance(call, ast.Call):
                return Use("argument", call, node, dotted(call.func), None, key)
        case ast.Tuple() | ast.List():
            return _displayed(above, node, parents)
        case ast.BinOp() | ast.UnaryOp():
            return Use("operand", above, node, type(above.op).__name__)
        case ast.Compare(ops=ops):
            return Use("operand", above, node, type(ops[0]).__name__)
        case ast.AugAssign(op=op):
            return Use("operand", above, node, type(op).__name__)
        case ast.Subscript():
            if above.value is not node:
                return Use("index", above, node)
            return Use("item" if isinstance(above.ctx, ast.Load) else "written", above, node)
        case ast.Slice():
            return Use("index", parents[above], node)
        case ast.Return():
            return Use("returned", above, node)
        case ast.Yield() | ast.YieldFrom():
            return Use("yielded", above, node)
        case ast.For() | ast.AsyncFor() | ast.comprehension():
            return Use("iterated", above, node)
        case ast.If() | ast.While() | ast.Assert():
            return Use("tested", above, node)
        case ast.FormattedValue():
            return Use("formatted", above, node)
        case ast.Lambda():
            return Use("returned", above, node)
        case ast.Dict() | ast.Set():
            return Use("contained", above, node)
    return Use("other", above if above is not None else node, node)


def _attribute(above: ast.Attribute, node: ast.expr, parents: dict[ast.AST, ast.AST]) -> Use:
    if not isinstance(above.ctx, ast.Load):
        return Use("written", above, node, above.attr)
    call = parents.get(above)
    if isinstance(call, ast.Call) and call.func is above:
        return Use("receiver", call, node, above.attr)
    return Use("attribute", above, node, above.attr)


def _displayed(
    display: ast.Tuple | ast.List, node: ast.expr, parents: dict[ast.AST, ast.AST]
) -> Use:
    above = parents.get(display)
    position: int | None = None
    key: str | None = None
    match above:
        case ast.Call(args=args) if display in args:
            position = args.index(display)
        case ast.keyword(arg=key):
            above = parents[above]
        case ast.Return():
            return Use("returned", above, node)
        case ast.Subscript(slice=inner) if inner is display:
            return Use("index", above, node)
    if isinstance(above, ast.Call):
        return Use("argument", above, node, dotted(above.func), position, key)
    return Use("contained", display, node)


def dotted(node: ast.AST) -> str:
    """The text of a callee that is a chain of names, else its last name or nothing."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            base = dotted(value)
            return f"{base}.{name}" if base else name
    return ""


def attributes_set(node: ast.expr, uses: Uses) -> Iterator[tuple[str, ast.ClassDef]]:
    """The attributes of a class that the value of ``node`` is assigned to at once: ``self.x``."""
    above, owner = uses.parent(node), uses.class_of(node)
    if owner is None or not isinstance(above, ast.Assign):
        return
    for target in above.targets:
        if isinstance(target, ast.Attribute) and dotted(target) == f"self.{target.attr}":
            yield dotted(target), owner


class _Reach:
    """A walk over the statements of a function, in the order in which they may run.

    The state is whether the name may hold the value of the definition at hand.
    """

    def __init__(self, name: str, target: ast.Name | None, mentions: _Mentions) -> None:
        self._target = target
        self._mentions = mentions
        self._name = name
        self._seen: set[int] = set()
        self._jumps: list[list[bool]] = []
        # Whether the definition may have been reached since a ``try`` began.
        self._ever = False
        self.loads: list[ast.Name] = []

    def run(self, body: Iterable[ast.AST], *, alive: bool) -> bool:
        for statement in body:
            alive = self._step(statement, alive)
        return alive

    def _step(self, node: ast.AST, alive: bool) -> bool:
        if isinstance(node, _PASSED) and not self._mentions.speaks_of(node, self._name):
            return alive
        if isinstance(node, _TRIES):
            return self._try(node, alive)
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                alive = self._step(test, alive)
                taken = self.run(body, alive=alive)
                other = self.run(orelse, alive=alive)
                return taken or other
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(node, alive)
            case ast.Match(subject=subject, cases=cases):
                alive = self._step(subject, alive)
                ends = [self._case(case, alive) for case in cases]
                return alive or any(ends)
            case ast.Return() | ast.Raise():
                self._children(node, alive)
                return False
            case ast.Break() | ast.Continue():
                if self._jumps:
                    self._jumps[-1].append(alive)
                return False
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
                self._nested(node)
                if not isinstance(node, ast.Lambda) and node.name == self._name:
                    return False
                return alive
            case ast.Assign() | ast.AnnAssign() | ast.NamedExpr():
                if node.value is not None:
                    alive = self._step(node.value, alive)
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    alive = self._step(target, alive)
                return alive
            case ast.AugAssign(target=ast.Name() as target, value=value) if target.id == self._name:
                alive = self._step(value, alive)
                if alive:
                    self._load(target)
                return alive
            case ast.Name():
                return self._name_at(node, alive)
            case ast.IfExp(test=test, body=yes, orelse=no):
                alive = self._step(test, alive)
                taken = self._step(yes, alive)
                other = self._step(no, alive)
                return taken or other
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                # Its own variables are no definitions for what follows.
                self._children(node, alive)
                return alive
        return self._children(node, alive)

    def _children(self, node: ast.AST, alive: bool) -> bool:
        for child in children(node):
            alive = self._step(child, alive)
        return alive

    def _case(self, case: ast.match_case, alive: bool) -> bool:
        if case.guard is not None:
            alive = self._step(case.guard, alive)
        return self.run(case.body, alive=alive)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, alive: bool) -> bool:
        head = node.test if isinstance(node, ast.While) else node.iter
        alive = self._step(head, alive)
        for _ in range(2):
            self._jumps.append([])
            inside = alive
            if not isinstance(node, ast.While):
                inside = self._step(node.target, inside)
            end = self.run(node.body, alive=inside)
            alive = any((alive, end, *self._jumps.pop()))
            if isinstance(node, ast.While):
                alive = self._step(node.test, alive)
        after = self.run(node.orelse, alive=alive)
        return alive or after

    def _try(self, node: ast.Try, alive: bool) -> bool:
        outer, self._ever = self._ever, alive
        end = self.run(node.body, alive=alive)
        before = self._ever
        end = self.run(node.orelse, alive=end)
        for handler in node.handlers:
            end = self.run(handler.body, alive=before) or end
        if node.finalbody:
            end = self.run(node.finalbody, alive=end or before)
        self._ever = self._ever or outer
        return end

    def _name_at(self, node: ast.Name, alive: bool) -> bool:
        if node.id != self._name:
            return alive
        if isinstance(node.ctx, ast.Store):
            self._ever = self._ever or node is self._target
            return node is self._target
        if isinstance(node.ctx, ast.Del):
            return False
        if alive:
            self._load(node)
        return alive

    def _nested(self, node: ast.AST) -> None:
        """What a nested function loads may be what the name holds whenever that is called."""
        for one in walk(node):
            if isinstance(one, ast.Name) and one.id == self._name and isinstance(one.ctx, ast.Load):
                self._load(one)

    def _load(self, node: ast.Name) -> None:
        if id(node) not in self._seen:
            self._seen.add(id(node))
            self.loads.append(node)
