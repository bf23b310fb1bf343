"""Loops: their indices as symbols, their bodies to a fixpoint, and the accesses made in them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from memlint.analysis import knowledge
from memlint.analysis.axes import OPAQUE, Layout
from memlint.analysis.events import Loop
from memlint.analysis.interpreter.counting import counter_of, runs_once, trips
from memlint.analysis.interpreter.machine import UNKNOWN, text_of
from memlint.analysis.interpreter.nests import Nests
from memlint.analysis.interpreter.state import OpenLoop, Scope, Variables, merge
from memlint.analysis.knowledge import Args
from memlint.analysis.linear import symbol_value
from memlint.analysis.values import (
    MIXED,
    Absent,
    Alternatives,
    Const,
    Function,
    Instance,
    Linear,
    Made,
    Mapping,
    Object,
    Ref,
    Sequence,
    Site,
    Symbol,
    Tensor,
    Unknown,
    Value,
    alternatives,
    deps_of,
    devices_of,
    join,
    loaders_of,
    may_be_assumed_dense,
    plain,
    with_made,
)
from memlint.analysis.walking import walk

PASSES = 4
ZERO, ONE = Const(0), Const(1)
# Wrappers that yield what they wrap, one by one.
COUNTED = {"builtins.range": "range", "numba.prange": "prange"}
PRODUCTS = {
    "numpy.ndindex": "ndindex", "itertools.product": "product", "numba.pndindex": "prange",
}  # fmt: skip


class Loops(Nests):
    """Loops and comprehensions."""

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        iterable = self._numbers(node.iter, self.evaluate(node.iter))
        loops, target = self.loops_over(iterable, node, node.target)
        loops[-1].iterated = node.iter
        if self.frame.compiled is not None and len(loops) == 1:
            _name_bounds(loops[0], node.iter)
        self._run_loop(
            node, loops, node.body, node.orelse, lambda: self.assign(node.target, target)
        )

    def _numbers(self, node: ast.expr, iterable: Value) -> Value:
        """``numpy.arange(...)`` as the ``range`` that a loop over it is."""
        if not isinstance(iterable, Tensor) or not isinstance(node, ast.Call):
            return iterable
        if iterable.site is None or iterable.site.node is not node:
            return iterable
        if self.evaluate(node.func) != Ref("numpy.arange") or node.keywords:
            return iterable
        facts = tuple((str(i), self.evaluate(v)) for i, v in enumerate(node.args))
        return Object("builtins.range", iterable.site, facts)

    def _while(self, node: ast.While) -> None:
        counter = counter_of(node)
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
        self.note_truth(test, self.evaluate(test))
        self._refine(test, truth=True)

    def _loop(
        self, node: ast.AST, kind: str, variable: str, start: Value, stop: Value, step: Value
    ) -> Loop:
        symbol = Symbol("loop", variable or "<loop>", self.sites.at(node, f"loop {variable}"))
        return Loop(node, kind, symbol, variable, start, stop, step, trips(start, stop, step))

    def loops_over(
        self, iterable: Value, node: ast.AST, target: ast.expr
    ) -> tuple[list[Loop], Value]:
        """The loops that a ``for`` over ``iterable`` stands for, and what its target gets."""
        names = [n.id for n in walk(target) if isinstance(n, ast.Name)]
        first = names[0] if names else ""
        for one in alternatives(iterable):
            if not isinstance(one, Object):
                continue
            if one.cls in COUNTED:
                return self._counted(one, node, first)
            if one.cls in PRODUCTS:
                return self._product(one, node, names)
            if one.cls == "builtins.enumerate":
                inner = one.fact("0")
                loop = self._loop(node, "iterable", first, ZERO, UNKNOWN, ONE)
                loop.iterates, loop.trips = inner, _length(inner)
                element = _depending(self.element(inner), loop.symbol)
                return [loop], Sequence("tuple", (symbol_value(loop.symbol), element))
        loop = self._loop(node, "iterable", first, ZERO, UNKNOWN, ONE)
        loop.iterates, loop.trips = iterable, _length(iterable)
        return [loop], _depending(self.element(iterable), loop.symbol)

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
        kind = PRODUCTS[one.cls]
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
        workers, conditions, rare = frame.workers, frame.conditions, frame.throttles
        varied = frame.varied
        if runs_once(body):
            for loop in loops:
                loop.trips = 1
        opened = [OpenLoop(loop) for loop in loops]
        frame.loops.extend(opened)
        inner = opened[-1]
        self.start_prange(node, loops)
        breaks: list[Variables] = []
        missed = frame.missed
        try:
            for _ in range(PASSES):
                inner.breaks, inner.continues, inner.accesses = [], [], []
                inner.conditions = frame.conditions = conditions
                inner.throttles = frame.throttles = rare
                inner.varied = frame.varied = varied
                self.scope.vars = dict(header)
                frame.missed = False
                start_pass()
                self.execute_body(body)
                ends = [*inner.continues, *([self.scope.vars] if frame.live else [])]
                frame.live = True
                breaks = inner.breaks
                merged = merge([header, *ends])
                new = _widen(header, merged or header, loops[-1].symbol)
                missed = missed or frame.missed
                settled = all(new.get(name) == value for name, value in header.items())
                if settled and len(new) == len(header):
                    break
                before, header = header, new
                if settled and not frame.missed:
                    # What the body binds first, it bound before it read it: a second reading
                    # would find the same.
                    break
            else:
                header = _let_go(before, header)
        finally:
            del frame.loops[len(frame.loops) - len(opened) :]
            frame.workers, frame.conditions, frame.throttles = workers, conditions, rare
            frame.varied = varied
            frame.missed = missed
        self.note_nest(opened)
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

    # Iteration

    def element(self, value: Value) -> Value:
        value = plain(value)
        match value:
            case Alternatives(values):
                return join(self.element(v) for v in values if not isinstance(v, Absent))
            case Sequence(items=items):
                return join(items) if items else value.element
            case Tensor():
                row = knowledge.subscript(value, (ZERO,), self.statement)
                return with_made(row, Made("operator.getitem", self.statement, (value, ZERO)))
            case Unknown(made=made):
                if made is not None:
                    made = Made("builtins.next", self.statement, (value,))
                return Unknown("", value.deps, value.loaders, value.devices, made, value.graphs)
            case Object():
                return self.element_of_object(value)
            case Instance() if value.site not in self.iterated:
                self.iterated.add(value.site)
                try:
                    return self._element_of_instance(value)
                finally:
                    self.iterated.discard(value.site)
        return Unknown(loaders=loaders_of(value), devices=devices_of(value))

    # Objects whose iteration is being followed: one may hand out itself.
    iterated: set[Site]

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
        site = self.sites.at(node)
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
        iterable = self._numbers(first.iter, iterable)
        loops, target = self.loops_over(iterable, first.target, first.target)
        loops[-1].iterated = first.iter
        opened = [OpenLoop(loop) for loop in loops]
        self.frame.loops.extend(opened)
        opened[-1].conditions, opened[-1].throttles = self.frame.conditions, self.frame.throttles
        opened[-1].varied = self.frame.varied
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
            self.note_nest(opened)


def _depending(element: Value, symbol: Symbol) -> Value:
    """What a loop yields, which is another in each iteration."""
    if isinstance(element, Unknown):
        return replace(element, deps=element.deps | {symbol})
    return element


def _length(value: Value) -> int | None:
    """How many items an iterable yields, where that is known."""
    match value:
        case Sequence(items=items) if items is not None:
            return len(items)
        case Tensor(layout=Layout(axes=(axis, *_))) if type(axis.size) is int:
            return axis.size
    return None


def _name_bounds(loop: Loop, iterated: ast.expr) -> None:
    """Note the names that ``range(start, stop, step)`` is given."""
    if loop.kind in ("range", "prange") and isinstance(iterated, ast.Call) and iterated.args:
        stop = iterated.args[min(len(iterated.args), 2) - 1]
        loop.stop_text = text_of(stop) if isinstance(stop, (ast.Name, ast.Attribute)) else ""
        step = iterated.args[2] if len(iterated.args) > 2 else None
        loop.step_text = text_of(step) if isinstance(step, (ast.Name, ast.Attribute)) else ""


def _let_go(before: Variables, after: Variables) -> Variables:
    """What still changes in each pass may be anything, arrays of any layout."""
    return {
        name: value if before.get(name) == value else _anything(value)
        for name, value in after.items()
    }


def _anything(value: Value) -> Value:
    loaders, devices = loaders_of(value), devices_of(value)
    options = alternatives(value)
    kinds = {one.lib if isinstance(one, Tensor) else None for one in options}
    if None in kinds:
        origin = "" if all(map(may_be_assumed_dense, options)) else MIXED
        return Unknown(origin, deps_of(value), loaders, devices)
    lib = kinds.pop() if len(kinds) == 1 else ""
    return Tensor(lib or "", OPAQUE, devices=devices, loaders=loaders)


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
