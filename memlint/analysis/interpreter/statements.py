"""Statements: paths that split and join, loops to a fixpoint, definitions and imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable

from memlint.analysis.interpreter.calls import Calls
from memlint.analysis.interpreter.expressions import cuda_condition
from memlint.analysis.interpreter.machine import UNKNOWN, dotted, name_of
from memlint.analysis.interpreter.optional import without_stand_ins
from memlint.analysis.interpreter.refine import refinements
from memlint.analysis.interpreter.state import Scope, Variables, merge
from memlint.analysis.knowledge import Args, SliceValue, canonical
from memlint.analysis.values import (
    WITH_CUDA,
    Absent,
    Alternatives,
    Bound,
    Class,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Ref,
    Sequence,
    Site,
    Tensor,
    Unknown,
    Value,
    alternatives,
    join,
    plain,
)

# A context manager that is held by one worker at a time, whatever it is made by.
LOCK = Object("memlint.lock", Site(ast.Pass(), "lock"))
LOCK_MODULES = ("threading.", "multiprocessing.", "torch.multiprocessing.")
LOCKS = ("Lock", "Semaphore", "Condition")
LOCK_NAME = re.compile(r"(^|_)(r?lock|mutex|semaphore|condition)(_|s?$)", re.IGNORECASE)


class Statements(Calls):
    """Execution of statements."""

    def execute_body(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            if not self.frame.live:
                return
            self.spend()
            self.statement = statement
            handler = self._STATEMENTS.get(type(statement))
            if handler is not None:
                handler(self, statement)

    # Simple statements

    def _expression(self, node: ast.Expr) -> None:
        self.evaluate(node.value)

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1 and isinstance(node.targets[0], (ast.Name, ast.Attribute)):
            self.targets[id(node.value)] = node.targets[0]
        if self._parallel(node):
            return
        value = self.evaluate(node.value)
        for target in node.targets:
            self.assign(target, value)

    def _parallel(self, node: ast.Assign) -> bool:
        """``a, b = x, y``: each target gets its own value."""
        target = node.targets[0]
        if (
            len(node.targets) != 1
            or not isinstance(target, ast.Tuple)
            or not isinstance(node.value, ast.Tuple)
            or len(target.elts) != len(node.value.elts)
            or any(isinstance(e, ast.Starred) for e in (*target.elts, *node.value.elts))
        ):
            return False
        for one, value in zip(target.elts, node.value.elts, strict=True):
            if isinstance(one, ast.Name):
                self.targets[id(value)] = one
        values = [self.evaluate(v) for v in node.value.elts]
        for one, result in zip(target.elts, values, strict=True):
            self.assign(one, result)
        return True

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            if isinstance(node.target, (ast.Name, ast.Attribute)):
                self.targets[id(node.value)] = node.target
            self.assign(node.target, self.evaluate(node.value))

    def _augmented(self, node: ast.AugAssign) -> None:
        value = self.evaluate(node.value)
        target = node.target
        if isinstance(target, ast.Subscript):
            base, items = self.target_subscript(target, "update")
            self._store_item(base, items, UNKNOWN)
            return
        old = self.evaluate(target)
        new = self.binary(type(node.op), old, value, node)
        if isinstance(old, Tensor):
            new = old
        if isinstance(old, (Mapping, Sequence)) and old.site is not None:
            if isinstance(new, Mapping):
                new = Mapping(new.items, new.complete, old.site)
            self.replace_object(old.site, new)
        self.assign(target, new)

    def assign(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name():
                self.bind(target.id, value)
            case ast.Tuple() | ast.List():
                self._unpack(target.elts, value)
            case ast.Starred():
                self.assign(target.value, Sequence("list", None, value))
            case ast.Attribute():
                self._assign_attribute(target, value)
            case ast.Subscript():
                base, items = self.target_subscript(target, "store")
                self._store_item(base, items, value)

    def _assign_attribute(self, target: ast.Attribute, value: Value) -> None:
        for base in alternatives(self.evaluate(target.value)):
            if isinstance(base, Instance):
                strong = self.frame.name.endswith("__init__") and self.frame.receiver == base
                self.heap.put(base, target.attr, value, strong=strong)
            if isinstance(base, (Instance, Object)):
                self.store_on_object(base, target.attr, value)
            elif isinstance(base, (Unknown, Bound)):
                self.store_on_unknown(target, value)

    def store_on_object(self, base: Object | Instance, name: str, value: Value) -> None:
        """``base.name = value``, or under an empty name ``base[key] = value``."""
        raise NotImplementedError

    def store_on_unknown(self, target: ast.Attribute, value: Value) -> None:
        raise NotImplementedError

    def _store_item(self, base: Value, items: tuple[Value | SliceValue, ...], value: Value) -> None:
        key = items[0] if items else UNKNOWN
        if isinstance(base, Mapping) and base.site is not None:
            if isinstance(key, Const) and isinstance(key.value, str):
                new = {**dict(base.items), key.value: value}
                self.replace_object(
                    base.site, Mapping(tuple(new.items()), base.complete, base.site)
                )
            else:
                grown = {**dict(base.items), "": join((base.get(""), value))}
                self.replace_object(base.site, Mapping(tuple(grown.items()), False, base.site))
        elif isinstance(base, Sequence) and base.site is not None:
            element = join((self.element(base), value))
            self.replace_object(base.site, Sequence(base.kind, None, element, base.site))
        elif isinstance(base, (Instance, Object)):
            self.store_on_object(base, "", value)

    def _unpack(self, targets: list[ast.expr], value: Value) -> None:
        star = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
        for index, target in enumerate(targets):
            if star is not None and index >= star:
                self.assign(target, UNKNOWN if index == star else self.element(value))
            else:
                self.assign(target, self._unpacked(value, index))

    def _unpacked(self, value: Value, index: int) -> Value:
        value = plain(value)
        match value:
            case Alternatives(values):
                return join(self._unpacked(v, index) for v in values if not isinstance(v, Absent))
            case Sequence(items=items) if items is not None:
                return items[index] if index < len(items) else UNKNOWN
            case Object(cls="memlint.shape"):
                text = value.fact("of")
                return self.size_symbol(str(getattr(text, "value", "")), index)
            case Unknown():
                return Unknown(value.origin, value.deps, value.loaders, value.devices)
        return self.element(value)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.scope.owner(target.id).vars.pop(target.id, None)

    def _return(self, node: ast.Return) -> None:
        value = self.evaluate(node.value) if node.value is not None else Const(None)
        self.frame.returns.append(value)
        self.frame.live = False

    def _raise(self, node: ast.Raise) -> None:
        if node.exc is not None:
            self.evaluate(node.exc)
        self.frame.live = False

    def _assert(self, node: ast.Assert) -> None:
        self.evaluate(node.test)
        self._refine(node.test, truth=True, certain=True)

    def _globals(self, node: ast.Global) -> None:
        self.scope.globals.update(node.names)

    def _nonlocals(self, node: ast.Nonlocal) -> None:
        self.scope.nonlocals.update(node.names)

    # Branches

    def _if(self, node: ast.If) -> None:
        test = self.evaluate(node.test)
        if isinstance(test, Const):
            self.execute_body(node.body if test.value else node.orelse)
            return
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            self.execute_body(node.body)
            return
        before = self.scope.vars
        states: list[Variables | None] = []
        raises = isinstance(node.body[-1], ast.Raise)
        cuda = _needs_cuda(node.test, test)
        frame = self.frame
        for truth, body in ((True, node.body), (False, node.orelse)):
            self.scope.vars = dict(before)
            self._refine(node.test, truth=truth, certain=raises and not truth)
            without = cuda is (not truth)
            frame.without_cuda += without
            states.append(self._branch(body))
            frame.without_cuda -= without
        self._continue_with(states)
        if cuda is not None and states[not cuda] is None:
            frame.without_cuda += 1

    def _branch(self, body: list[ast.stmt]) -> Variables | None:
        self.frame.conditions += 1
        self.execute_body(body)
        self.frame.conditions -= 1
        state = self.scope.vars if self.frame.live else None
        self.frame.live = True
        return state

    def _continue_with(self, states: list[Variables | None]) -> None:
        merged = merge(states)
        if merged is None:
            self.frame.live = False
            return
        self.scope.vars = merged
        if any(state is None for state in states):
            # What follows in this loop body runs only on the paths that are left.
            self.frame.conditions += 1

    def _refine(self, test: ast.expr, *, truth: bool, certain: bool = False) -> None:
        """``certain`` where the test holds on every path that goes on."""
        for node, change in refinements(test, truth=truth):
            if isinstance(node, ast.NamedExpr):
                node = node.target
            if not isinstance(node, (ast.Name, ast.Attribute)):
                continue
            old = self.evaluate(node)
            new = change(old)
            if new is old or new == old:
                continue
            if isinstance(node, ast.Name):
                self.bind(node.id, new)
                if certain:
                    for one in alternatives(old):
                        if isinstance(one, Tensor):
                            self._refine_callers(one, change(one))
            else:
                for base in alternatives(self.evaluate(node.value)):
                    if isinstance(base, Instance):
                        self.heap.put(base, node.attr, new, strong=True)

    def _conditional(self, node: ast.IfExp) -> Value:
        """``x if x.is_contiguous() else x.contiguous()``: each side under its condition."""
        test = self.evaluate(node.test)
        if isinstance(test, Const):
            return self.evaluate(node.body if test.value else node.orelse)
        cuda = _needs_cuda(node.test, test)
        sides = []
        for truth, side in ((True, node.body), (False, node.orelse)):
            without = cuda is (not truth)
            self.frame.without_cuda += without
            sides.append(self._where(node.test, side, truth))
            self.frame.without_cuda -= without
        return join(sides)

    def _where(self, test: ast.expr, node: ast.expr, truth: bool) -> Value:
        if next(refinements(test, truth=truth), None) is None:
            return self.evaluate(node)
        before = self.scope.vars
        self.scope.vars = dict(before)
        try:
            self._refine(test, truth=truth)
            return self.evaluate(node)
        finally:
            self.scope.vars = before

    def _refine_callers(self, old: Value, new: Value) -> None:
        """What a helper asserts of its argument holds of its caller's variable too."""
        for scope in self.suspended:
            for name, value in scope.vars.items():
                if value is old:
                    scope.vars[name] = new
                    self.refined_callers += 1

    def _match(self, node: ast.Match) -> None:
        subject = self.evaluate(node.subject)
        before = self.scope.vars
        states: list[Variables | None] = []
        total = False
        for case in node.cases:
            self.scope.vars = dict(before)
            self._bind_pattern(case.pattern, subject)
            if case.guard is not None:
                self.evaluate(case.guard)
            elif isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None:
                total = True
            states.append(self._branch(case.body))
        if not total:
            states.append(dict(before))
        self._continue_with(states)

    def _bind_pattern(self, pattern: ast.pattern, subject: Value) -> None:
        match pattern:
            case ast.MatchAs(pattern=inner, name=name):
                if inner is not None:
                    self._bind_pattern(inner, subject)
                if name is not None:
                    self.bind(name, subject)
            case ast.MatchSequence(patterns=patterns):
                for index, one in enumerate(patterns):
                    self._bind_pattern(one, self._unpacked(subject, index))
            case ast.MatchStar(name=name) | ast.MatchMapping(rest=name) if name is not None:
                self.bind(name, UNKNOWN)
        for child in ast.iter_child_nodes(pattern):
            if isinstance(child, ast.pattern) and not isinstance(
                pattern, (ast.MatchAs, ast.MatchSequence)
            ):
                self._bind_pattern(child, UNKNOWN)

    def _try(self, node: ast.Try) -> None:
        before = dict(self.scope.vars)
        self.execute_body(node.body)
        after = self.scope.vars if self.frame.live else None
        self.frame.live = True
        states: list[Variables | None] = []
        if after is not None:
            self.scope.vars = after
            self.execute_body(node.orelse)
            states.append(self.scope.vars if self.frame.live else None)
            self.frame.live = True
        for handler in node.handlers:
            start = merge([before, after])
            self.scope.vars = dict(start or before)
            if handler.name:
                self.bind(handler.name, UNKNOWN)
            state = self._branch(handler.body)
            states.append(without_stand_ins(node, handler, after, state))
        merged = merge(states)
        self.scope.vars = merged if merged is not None else before
        self.execute_body(node.finalbody)
        if merged is None:
            self.frame.live = False

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        contexts = self.frame.contexts
        for item in node.items:
            value = self.evaluate(item.context_expr)
            for one in alternatives(value):
                if self.is_context(one):
                    self.frame.contexts += (one,)
            if LOCK_NAME.search(_last_name(item.context_expr)) or _is_lock(value):
                self.frame.contexts += (LOCK,)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, self._entered(value, item.context_expr))
        self.execute_body(node.body)
        self.frame.contexts = contexts

    def _entered(self, value: Value, node: ast.expr) -> Value:
        """What ``with value as x`` binds."""
        match value:
            case Sequence(kind="generator"):
                return self.element(value)
            case Instance():
                method = self.class_attribute(value.cls, "__enter__")
                if isinstance(method, Function):
                    bound = Function(method.node, method.scope, value, method.name)
                    return self.call_function(bound, Args((), {}, False), node)
        return value

    # Definitions

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        prefix = self.class_prefix
        value = Function(node, self.scope, None, f"{prefix}{node.name}")
        if id(node) not in self.registered:
            self.registered.add(id(node))
            self.functions.append((value, None))
        self.bind(node.name, self._decorated(value, node))

    def _decorated(self, value: Function, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
        result: Value = value
        for decorator in reversed(node.decorator_list):
            trait = self.evaluate(decorator)
            traits = self.traits.setdefault(id(node), [])
            if trait not in traits:
                traits.append(trait)
            if isinstance(trait, (Ref, Object, Unknown)) and not isinstance(result, Function):
                continue
            called = self.call(trait, Args((result,), {}, False), decorator)
            if isinstance(called, (Function, Class)):
                result = called
        return result

    def _class(self, node: ast.ClassDef) -> None:
        value = Class(node, self.scope)
        bases = [self.evaluate(base) for base in node.bases]
        self.bases[id(node)] = bases
        decorators = [self.evaluate(decorator) for decorator in node.decorator_list]
        self.class_traits[id(node)] = decorators
        outer, self.scope = self.scope, Scope("class", self.scope)
        outer_prefix, self.class_prefix = self.class_prefix, f"{self.class_prefix}{node.name}."
        first = len(self.functions)
        try:
            self.execute_body(node.body)
            self.members[id(node)] = self.scope.vars
        finally:
            self.scope, self.class_prefix = outer, outer_prefix
        for index in range(first, len(self.functions)):
            function, owner = self.functions[index]
            if (
                owner is None
                and isinstance(function.scope, Scope)
                and function.scope.kind == "class"
            ):
                self.functions[index] = (function, value)
                self.owners[id(function.node)] = value
                if any(name_of(d) == "numba.experimental.jitclass" for d in decorators):
                    trait = Ref("numba.experimental.jitclass")
                    self.traits.setdefault(id(function.node), []).append(trait)
        if all(known.node is not node for known in self.classes):
            self.classes.append(value)
        self.bind(node.name, value)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.imports.add(alias.name.partition(".")[0])
            if alias.asname:
                self.bind(alias.asname, Ref(canonical(alias.name)))
            else:
                head = alias.name.partition(".")[0]
                self.bind(head, Ref(head))

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        self.imports.add((node.module or "").partition(".")[0])
        for alias in node.names:
            if alias.name == "*":
                self.star_imports.append(module)
            else:
                name = dotted(module, alias.name) if module.strip(".") else module + alias.name
                self.bind(alias.asname or alias.name, Ref(name))

    _STATEMENTS: dict[type[ast.AST], Callable[..., None]] = {}

    statement: ast.stmt
    targets: dict[int, ast.expr]
    bases: dict[int, list[Value]]
    class_traits: dict[int, list[Value]]
    members: dict[int, Variables]
    owners: dict[int, Class]
    registered: set[int]
    star_imports: list[str]
    class_prefix: str

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        raise NotImplementedError

    def _while(self, node: ast.While) -> None:
        raise NotImplementedError

    def _break(self, node: ast.Break) -> None:
        if self.frame.loops:
            self.frame.loops[-1].breaks.append(dict(self.scope.vars))
        self.frame.live = False

    def _continue(self, node: ast.Continue) -> None:
        if self.frame.loops:
            self.frame.loops[-1].continues.append(dict(self.scope.vars))
        self.frame.live = False


def _last_name(node: ast.expr) -> str:
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", getattr(node, "attr", ""))


def _is_lock(value: Value) -> bool:
    classes = [one.cls for one in alternatives(value) if isinstance(one, Object)]
    return any(name.startswith(LOCK_MODULES) and name.endswith(LOCKS) for name in classes)


def _needs_cuda(test: ast.expr, value: Value) -> bool | None:
    """Whether a condition holds just where CUDA is used (or is not); ``None`` for all others."""
    condition = cuda_condition(value)
    if condition:
        return condition == WITH_CUDA
    name = test.id if isinstance(test, ast.Name) else getattr(test, "attr", "")
    words = name.lower().split("_")
    return True if {"cuda", "gpu"} & set(words) and "no" not in words else None


Statements._STATEMENTS = {
    ast.Expr: Statements._expression,
    ast.Assign: Statements._assign,
    ast.AnnAssign: Statements._annotated,
    ast.AugAssign: Statements._augmented,
    ast.Delete: Statements._delete,
    ast.Return: Statements._return,
    ast.Raise: Statements._raise,
    ast.Assert: Statements._assert,
    ast.Global: Statements._globals,
    ast.Nonlocal: Statements._nonlocals,
    ast.If: Statements._if,
    ast.Match: Statements._match,
    ast.Try: Statements._try,
    ast.With: Statements._with,
    ast.AsyncWith: Statements._with,
    ast.FunctionDef: Statements._function,
    ast.AsyncFunctionDef: Statements._function,
    ast.ClassDef: Statements._class,
    ast.Import: Statements._import,
    ast.ImportFrom: Statements._import_from,
    ast.Break: Statements._break,
    ast.Continue: Statements._continue,
    ast.For: lambda self, node: self._for(node),
    ast.AsyncFor: lambda self, node: self._for(node),
    ast.While: lambda self, node: self._while(node),
}
if hasattr(ast, "TryStar"):
    Statements._STATEMENTS[ast.TryStar] = Statements._try
