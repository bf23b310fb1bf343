"""Paths that split and join: conditions, patterns, exceptions, contexts."""

from __future__ import annotations

import ast
import re
from itertools import pairwise

from memlint.analysis.interpreter.arithmetic import falsy
from memlint.analysis.interpreter.assignments import Assignments
from memlint.analysis.interpreter.expressions import cuda_condition
from memlint.analysis.interpreter.machine import UNKNOWN
from memlint.analysis.interpreter.optional import without_stand_ins
from memlint.analysis.interpreter.refine import refinements
from memlint.analysis.interpreter.state import Variables, merge
from memlint.analysis.interpreter.throttle import attributes_set_later, steady, throttles
from memlint.analysis.knowledge import Args
from memlint.analysis.last_name import last_name
from memlint.analysis.values import (
    WITH_CUDA,
    Const,
    Function,
    Instance,
    Object,
    Sequence,
    Site,
    Tensor,
    Value,
    alternatives,
    join,
)
from memlint.analysis.walking import walk
from memlint.late_pattern import late_pattern

# A context manager that is held by one worker at a time, whatever it is made by.
LOCK = Object("memlint.lock", Site(ast.Pass(), "lock"))
LOCK_MODULES = ("threading.", "multiprocessing.", "torch.multiprocessing.")
LOCKS = ("Lock", "Semaphore", "Condition")
LOCK_NAME = late_pattern(r"(^|_)(r?lock|mutex|semaphore|condition)(_|s?$)", re.IGNORECASE)


class Branches(Assignments):
    """Execution of statements with branches."""

    def _if(self, node: ast.If) -> None:
        test = self._tested(node.test)
        if isinstance(test, Const) and not self._may_change(node.test):
            self.execute_body(node.body if test.value else node.orelse)
            return
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            self.execute_body(node.body)
            return
        before = self.scope.vars
        states: list[Variables | None] = []
        raises = isinstance(node.body[-1], ast.Raise)
        cuda = _needs_cuda(node.test, test)
        rare = throttles(node.test, test)
        frame = self.frame
        steady = self._is_steady(node.test)
        frame.varied -= steady
        for truth, body in ((True, node.body), (False, node.orelse)):
            self.scope.vars = dict(before)
            self._refine(node.test, truth=truth, certain=raises and not truth)
            without = cuda is (not truth)
            frame.without_cuda += without
            frame.throttles += rare is truth
            states.append(self._branch(body))
            frame.throttles -= rare is truth
            frame.without_cuda -= without
        frame.varied += steady
        self._continue_with(states)
        if rare is not None and states[rare] is None:
            frame.throttles += 1
        if cuda is not None and states[not cuda] is None:
            frame.without_cuda += 1

    def _may_change(self, test: ast.expr) -> bool:
        """Whether a condition asks for an attribute that a method sets once the object is made,
        and that others may have called by then."""
        receiver = self.frame.receiver
        if not isinstance(receiver, Instance):
            return False
        return any(
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
            and node.attr in attributes_set_later(receiver.cls.node)
            for node in walk(test)
        )

    def _tested(self, node: ast.expr) -> Value:
        value = self.evaluate(node)
        self.note_truth(node, value)
        return value

    def _assert(self, node: ast.Assert) -> None:
        self._tested(node.test)
        self._refine(node.test, truth=True, certain=True)

    def _is_steady(self, test: ast.expr) -> bool:
        """Whether a condition comes out the same in every iteration of the loop around it."""
        if not self.watched:
            return False
        loops = self.frame.loops
        if loops:
            return steady(test, loops[-1].loop.node)
        function = self.frame.function
        called_in_loop = function is not None and any(frame.loops for frame in self.stack)
        return called_in_loop and steady(test, function.node)  # type: ignore[union-attr]

    def _branch(self, body: list[ast.stmt]) -> Variables | None:
        self.frame.conditions += 1
        self.frame.varied += 1
        self.execute_body(body)
        self.frame.varied -= 1
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
        rare = throttles(node.test, test)
        sides = []
        for truth, side in ((True, node.body), (False, node.orelse)):
            without = cuda is (not truth)
            self.frame.without_cuda += without
            self.frame.throttles += rare is truth
            sides.append(self._where(node.test, side, truth))
            self.frame.throttles -= rare is truth
            self.frame.without_cuda -= without
        return join(sides)

    def _boolean(self, node: ast.BoolOp) -> Value:
        """``step % 9 == 0 and loss.item() > 1``: what follows is read under what stands before."""
        frame = self.frame
        before = frame.throttles, frame.varied
        going_on = isinstance(node.op, ast.And)
        values = [self.evaluate(node.values[0])]
        for tested, operand in pairwise(node.values):
            self.note_truth(tested, values[-1])
            if _calls(operand):
                frame.throttles += throttles(tested, values[-1]) is going_on
                frame.varied += not self._is_steady(tested)
            values.append(self.evaluate(operand))
        frame.throttles, frame.varied = before
        if not going_on:
            # `x or default`: what is falsy never comes through, except as the last operand.
            values = [v for v in values[:-1] if not falsy(v)] + values[-1:]
        return join(values)

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
        contexts, grad = self.frame.contexts, self.frame.grad
        for item in node.items:
            value = self.evaluate(item.context_expr)
            self.frame.grad = self.grad_within(self.frame.grad, value, item.context_expr)
            for one in alternatives(value):
                if self.is_context(one):
                    self.frame.contexts += (one,)
            if LOCK_NAME.search(last_name(item.context_expr)) or _is_lock(value):
                self.frame.contexts += (LOCK,)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, self._entered(value, item.context_expr))
        self.execute_body(node.body)
        self.frame.contexts, self.frame.grad = contexts, grad

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


def _is_lock(value: Value) -> bool:
    classes = [one.cls for one in alternatives(value) if isinstance(one, Object)]
    return any(name.startswith(LOCK_MODULES) and name.endswith(LOCKS) for name in classes)


def _calls(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Call) for part in walk(node))


def _needs_cuda(test: ast.expr, value: Value) -> bool | None:
    """Whether a condition holds just where CUDA is used (or is not); ``None`` for all others."""
    condition = cuda_condition(value)
    if condition:
        return condition == WITH_CUDA
    name = test.id if isinstance(test, ast.Name) else getattr(test, "attr", "")
    words = name.lower().split("_")
    return True if {"cuda", "gpu"} & set(words) and "no" not in words else None
