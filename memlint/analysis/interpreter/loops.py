"""Loops: their indices as symbols, their bodies to a fixpoint, and the accesses made in them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from memlint.analysis import knowledge
from memlint.analysis.events import Access, Compiled, Loop, LoopNest, SlotStore, Workers
from memlint.analysis.interpreter.machine import UNKNOWN, text_of
from memlint.analysis.interpreter.state import OpenLoop, Scope, Variables, merge
from memlint.analysis.interpreter.statements import Statements
from memlint.analysis.knowledge import Args, SliceValue
from memlint.analysis.values import (
    Absent,
    Alternatives,
    Const,
    Function,
    Instance,
    Linear,
    Mapping,
    Object,
    Sequence,
    Symbol,
    Tensor,
    Unknown,
    Value,
    alternatives,
    deps_of,
    devices_of,
    join,
    loaders_of,
    plain,
    symbol_value,
)

PASSES = 4
ZERO, ONE = Const(0), Const(1)
# Wrappers that yield what they wrap, one by one.
COUNTED = {"builtins.range": "range", "numba.prange": "prange", "numba.pndindex": "prange"}


class Loops(Statements):
    """Loops and comprehensions."""

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        iterable = self.evaluate(node.iter)
        loops, target = self.loops_over(iterable, node, node.target)
        self._run_loop(
            node, loops, node.body, node.orelse, lambda: self.assign(node.target, target)
        )

    def _while(self, node: ast.While) -> None:
        counter = _counter(node)
        if counter is None:
            forever = isinstance(node.test, ast.Constant) and bool(node.test.value)
            loop = self._loop(node, "while", "", UNKNOWN, UNKNOWN, UNKNOWN)
            self._run_loop(
                node,
                [loop],
                node.body,
                node.orelse,
                lambda: None if forever else self._test(node.test),
                endless=forever,
            )
            return
        name, step, stop_node = counter
        start = self.read(name) or UNKNOWN
        loop = self._loop(node, "while", name, start, self.evaluate(stop_node), step)
        self._run_loop(
            node,
            [loop],
            node.body,
            node.orelse,
            lambda: self.bind(name, symbol_value(loop.symbol)),
        )

    def _test(self, test: ast.expr) -> None:
        self.evaluate(test)
        self._refine(test, truth=True)

    def _loop(
        self, node: ast.AST, kind: str, variable: str, start: Value, stop: Value, step: Value
    ) -> Loop:
        symbol = Symbol("loop", variable or "<loop>", self.sites.at(node, f"loop {variable}"))
        return Loop(node, kind, symbol, variable, start, stop, step, _trips(start, stop, step))

    def loops_over(
        self, iterable: Value, node: ast.AST, target: ast.expr
    ) -> tuple[list[Loop], Value]:
        """The loops that a ``for`` over ``iterable`` stands for, and what its target gets."""
        names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
        first = names[0] if names else ""
        for one in alternatives(iterable):
            if not isinstance(one, Object):
                continue
            if one.cls in COUNTED:
                return self._counted(one, node, first)
            if one.cls in ("numpy.ndindex", "itertools.product"):
                return self._product(one, node, names)
            if one.cls == "builtins.enumerate":
                inner = one.fact("0")
                loop = self._loop(node, "iterable", first, ZERO, UNKNOWN, ONE)
                loop.iterates = inner
                element = self.element(inner)
                return [loop], Sequence("tuple", (symbol_value(loop.symbol), element))
        loop = self._loop(node, "iterable", first, ZERO, UNKNOWN, ONE)
        loop.iterates = iterable
        element = self.element(iterable)
        if isinstance(element, Unknown):
            element = replace(element, deps=element.deps | {loop.symbol})
        return [loop], element

    def _counted(self, one: Object, node: ast.AST, name: str) -> tuple[list[Loop], Value]:
        bounds = [v for key, v in one.facts if key.isdigit()]
        start: Value = ZERO
        stop: Value = UNKNOWN
        step: Value = ONE
        if len(bounds) == 1:
            stop = bounds[0]
        elif len(bounds) >= 2:
            start, stop = bounds[0], bounds[1]
            step = bounds[2] if len(bounds) > 2 else ONE
        loop = self._loop(node, COUNTED[one.cls], name, start, stop, step)
        return [loop], symbol_value(loop.symbol)

    def _product(self, one: Object, node: ast.AST, names: list[str]) -> tuple[list[Loop], Value]:
        bounds = [v for key, v in one.facts if key.isdigit()]
        if len(bounds) == 1 and isinstance(bounds[0], Sequence) and bounds[0].items is not None:
            bounds = list(bounds[0].items)
        if not bounds or (len(bounds) == 1 and len(names) > 1):
            bounds = [UNKNOWN] * max(len(names), 1)
        kind = "ndindex" if one.cls == "numpy.ndindex" else "product"
        loops = []
        for index, bound in enumerate(bounds):
            stop = bound
            if isinstance(bound, Object) and bound.cls in COUNTED:
                inner, _ = self._counted(bound, node, "")
                stop = inner[0].stop
            name = (
                names[index] if len(names) == len(bounds) else f"{names[0] if names else ''}{index}"
            )
            loops.append(self._loop(node, kind, name, ZERO, stop, ONE))
        values = tuple(symbol_value(loop.symbol) for loop in loops)
        if kind == "ndindex" and len(names) == 1 and len(loops) == 1:
            return loops, Sequence("tuple", values)
        return loops, Sequence("tuple", values)

    # The fixpoint

    def _run_loop(
        self,
        node: ast.AST,
        loops: list[Loop],
        body: list[ast.stmt],
        orelse: list[ast.stmt],
        start_pass: Callable[[], None],
        *,
        endless: bool = False,
    ) -> None:
        frame = self.frame
        entry = self.scope.vars
        header = dict(entry)
        workers, conditions = frame.workers, frame.conditions
        opened = [OpenLoop(loop) for loop in loops]
        frame.loops.extend(opened)
        inner = opened[-1]
        self._start_prange(node, loops)
        breaks: list[Variables] = []
        try:
            for _ in range(PASSES):
                inner.breaks, inner.continues, inner.accesses = [], [], []
                inner.conditions = frame.conditions = conditions
                self.scope.vars = dict(header)
                start_pass()
                self.execute_body(body)
                ends = [*inner.continues, *([self.scope.vars] if frame.live else [])]
                frame.live = True
                breaks = inner.breaks
                merged = merge([header, *ends])
                new = _widen(header, merged or header, loops[-1].symbol)
                if new == header:
                    break
                header = new
        finally:
            del frame.loops[len(frame.loops) - len(opened) :]
            frame.workers, frame.conditions = workers, conditions
        self._emit_nest(opened)
        after: list[Variables | None] = [] if endless and breaks else [header]
        if not (endless and not breaks):
            self.scope.vars = dict(header)
        self.scope.vars = header
        self.execute_body(orelse)
        if after:
            after = [self.scope.vars if frame.live else None]
            frame.live = True
        merged = merge([*after, *breaks])
        if merged is None:
            frame.live = False
        else:
            self.scope.vars = merged

    def _start_prange(self, node: ast.AST, loops: list[Loop]) -> None:
        compiled = self.frame.compiled
        parallel = isinstance(compiled, Compiled) and compiled.parallel
        if loops[0].kind == "prange" and parallel:
            depth = len(self.frame.loops) - len(loops)
            symbols = frozenset(loop.symbol for loop in loops)
            self.frame.workers = Workers("prange", symbols, node, depth)

    def _emit_nest(self, opened: list[OpenLoop]) -> None:
        accesses = tuple(a for a in opened[-1].accesses if isinstance(a, Access))
        if not accesses:
            return
        outer = tuple(o.loop for o in self.frame.loops)
        loops = outer + tuple(o.loop for o in opened)
        compiled = self.frame.compiled
        self.emit(
            LoopNest(
                loops,
                accesses,
                compiled if isinstance(compiled, Compiled) else None,
                self.frame.name,
            )
        )

    # Accesses

    def note_access(
        self,
        node: ast.AST,
        base_node: ast.expr,
        base: Value,
        items: tuple[Value | SliceValue, ...],
        mode: str,
    ) -> None:
        frame = self.frame
        if not frame.loops and frame.workers is None:
            return
        base = join(plain(one) for one in alternatives(base))
        if not all(isinstance(one, (Tensor, Unknown)) for one in alternatives(base)):
            return
        loops = tuple(o.loop for o in frame.loops)
        conditional = bool(frame.loops) and frame.conditions > frame.loops[-1].conditions
        access = Access(
            node, self.statement, text_of(base_node), base, items, mode, conditional, loops
        )
        if frame.loops:
            frame.loops[-1].accesses.append(access)
        if mode != "load" and frame.workers is not None:
            self._note_slot(access, frame.workers)

    def _note_slot(self, access: Access, workers: Workers) -> None:
        deps = frozenset().union(
            *(deps_of(i) for i in access.index if not isinstance(i, SliceValue))
        )
        told_apart = deps & workers.symbols or any(s.kind == "thread" for s in deps)
        if not told_apart:
            return
        compiled = self.frame.compiled
        base = access.value
        site = base.site if isinstance(base, Tensor) else None
        self.emit(
            SlotStore(
                access,
                workers,
                access.loops[workers.depth + 1 :] if workers.kind == "prange" else access.loops,
                compiled if isinstance(compiled, Compiled) else None,
                site.node if site is not None else None,
            )
        )

    # Iteration

    def element(self, value: Value) -> Value:
        value = plain(value)
        match value:
            case Alternatives(values):
                return join(self.element(v) for v in values if not isinstance(v, Absent))
            case Sequence(items=items):
                return join(items) if items else value.element
            case Tensor():
                return knowledge.subscript(value, (UNKNOWN,), self.statement)
            case Unknown():
                return Unknown("", value.deps, value.loaders, value.devices)
            case Object():
                return self.element_of_object(value)
            case Instance():
                return self._element_of_instance(value)
        return Unknown(loaders=loaders_of(value), devices=devices_of(value))

    def element_of_object(self, value: Object) -> Value:
        raise NotImplementedError

    def _element_of_instance(self, value: Instance) -> Value:
        if value.site in self.loaders:
            return Unknown(loaders=frozenset({value.site}))
        for name in ("__iter__", "__getitem__"):
            method = self.class_attribute(value.cls, name)
            if not isinstance(method, Function):
                continue
            bound = Function(method.node, method.scope, value, method.name)
            args = Args(() if name == "__iter__" else (UNKNOWN,), {}, False)
            result = self.call_function(bound, args, self.statement)
            if name == "__getitem__":
                return result
            if isinstance(result, Instance):
                step = self.class_attribute(result.cls, "__next__")
                if isinstance(step, Function):
                    bound = Function(step.node, step.scope, result, step.name)
                    return self.call_function(bound, Args((), {}, False), self.statement)
                return UNKNOWN
            return self.element(result)
        return UNKNOWN

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        kind = {"ListComp": "list", "SetComp": "set"}.get(type(node).__name__, "generator")
        first = node.generators[0]
        outer = self.scope
        iterable = self.evaluate(first.iter)
        site = self.sites.at(node) if kind == "list" else None
        self.scope = Scope("comprehension", outer)
        try:
            if (
                len(node.generators) == 1
                and not first.ifs
                and isinstance(iterable, Sequence)
                and iterable.items is not None
                and len(iterable.items) <= 16
            ):
                items = []
                for item in iterable.items:
                    self.assign(first.target, item)
                    items.append(self.evaluate(node.elt))
                return Sequence(kind, tuple(items), UNKNOWN, site)
            element = self._run_generators(node.generators, [node.elt], iterable)[0]
            return Sequence(kind, None, element, site)
        finally:
            self.scope = outer

    def _dict_comprehension(self, node: ast.DictComp) -> Value:
        outer = self.scope
        iterable = self.evaluate(node.generators[0].iter)
        self.scope = Scope("comprehension", outer)
        try:
            values = self._run_generators(node.generators, [node.key, node.value], iterable)
        finally:
            self.scope = outer
        return Mapping((("", values[1]),), False, self.sites.at(node))

    def _run_generators(
        self, generators: list[ast.comprehension], results: list[ast.expr], iterable: Value
    ) -> list[Value]:
        if not generators:
            return [self.evaluate(result) for result in results]
        first = generators[0]
        loops, target = self.loops_over(iterable, first, first.target)
        opened = [OpenLoop(loop) for loop in loops]
        self.frame.loops.extend(opened)
        opened[-1].conditions = self.frame.conditions
        try:
            self.assign(first.target, target)
            for condition in first.ifs:
                self.evaluate(condition)
                self._refine(condition, truth=True)
            rest = generators[1:]
            inner = self.evaluate(rest[0].iter) if rest else UNKNOWN
            return self._run_generators(rest, results, inner)
        finally:
            del self.frame.loops[len(self.frame.loops) - len(opened) :]


def _trips(start: Value, stop: Value, step: Value) -> int | None:
    match start, stop, step:
        case Const(int() as a), Const(int() as b), Const(int() as c) if c != 0:
            return len(range(a, b, c))
    return None


def _widen(header: Variables, merged: Variables, symbol: Symbol) -> Variables:
    """The state at the head of a loop after one more iteration; what counts up is let go."""
    if all(merged[name] is header.get(name) for name in merged):
        return header
    widened = dict(merged)
    for name, value in merged.items():
        old = header.get(name)
        if value is old or value == old:
            if old is not None:
                widened[name] = old
            continue
        numbers = [v for v in alternatives(value) if isinstance(v, (Linear, Const)) and _counts(v)]
        if len(numbers) > 1:
            widened[name] = Unknown(deps=deps_of(value) | {symbol})
    return widened


def _counts(value: Linear | Const) -> bool:
    return isinstance(value, Linear) or type(value.value) in (int, float)


def _counter(node: ast.While) -> tuple[str, Value, ast.expr] | None:
    """The index of ``while i < n: ...; i += c``: its name, step and bound."""
    test = node.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    if not isinstance(test.left, ast.Name) or not isinstance(
        test.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.NotEq)
    ):
        return None
    name = test.left.id
    steps = [s for statement in node.body if (s := _increment(statement, name)) is not None]
    stores = sum(
        1
        for statement in node.body
        for n in ast.walk(statement)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
    )
    if len(steps) == 1 and stores == 1:
        return name, Const(steps[0]), test.comparators[0]
    return None


def _increment(statement: ast.stmt, name: str) -> int | None:
    match statement:
        case ast.AugAssign(
            target=ast.Name(id=target),
            op=ast.Add() | ast.Sub() as op,
            value=ast.Constant(value=int() as step),
        ) if target == name:
            return step if isinstance(op, ast.Add) else -step
        case ast.Assign(
            targets=[ast.Name(id=target)],
            value=ast.BinOp(
                left=ast.Name(id=source), op=ast.Add(), right=ast.Constant(value=int() as step)
            ),
        ) if target == name == source:
            return step
    return None
