"""Activations: the functions of the program, run with the values of their arguments."""

from __future__ import annotations

import ast
from dataclasses import replace

from memlint.analysis.events import Compiled
from memlint.analysis.interpreter.expressions import Expressions
from memlint.analysis.interpreter.machine import MAX_DEPTH, UNKNOWN, name_of, text_of
from memlint.analysis.interpreter.state import Frame, Scope, Variables
from memlint.analysis.knowledge import Args
from memlint.analysis.values import (
    Class,
    Const,
    Function,
    Mapping,
    Object,
    Partial,
    Sequence,
    Tensor,
    Unknown,
    Value,
    alternatives,
    join,
)

# A function is followed from its callers until so many evaluations went into it: another caller
# of a large one seldom shows what the first ones did not.
MOST_FOLLOWED = 4_000
# Packages whose decorators hand on arguments as they are.
PLAIN_DECORATORS = (
    "abc.", "atexit.", "builtins.", "contextlib.", "cupy.", "cupyx.", "dataclasses.", "functools.",
    "numba.", "numpy.", "torch.", "triton.", "typing.", "typing_extensions.", "warnings.",
)  # fmt: skip


class Activations(Expressions):
    """Calls of functions that the program defines."""

    memo: dict[object, Value]
    # The evaluations that went into calls of each function.
    followed_cost: dict[int, int]
    suspended: list[Scope]
    refined_callers: int = 0

    def call_function(self, function: Function, args: Args, node: ast.AST) -> Value:
        """Interpret a function of the program with these arguments."""
        if len(self.stack) >= MAX_DEPTH or any(
            f.function is not None and f.function.node is function.node for f in self.stack
        ):
            return UNKNOWN
        if self.returns_before_body(function, args, node):
            return UNKNOWN
        key = self._memo_key(function, args, node)
        if key in self.memo:
            return self.memo[key]
        if self.followed_cost.get(id(function.node), 0) > MOST_FOLLOWED:
            return UNKNOWN
        refined, spent = self.refined_callers, self.spent
        result = self.run(function, args, node)
        cost = self.followed_cost.get(id(function.node), 0) + self.spent - spent
        self.followed_cost[id(function.node)] = cost
        if self.refined_callers == refined:
            self.memo[key] = result
        return result

    def returns_before_body(self, function: Function, args: Args, node: ast.AST) -> bool:
        """Whether calling the function does not run its body here (a kernel, say)."""
        raise NotImplementedError

    def _memo_key(self, function: Function, args: Args, node: ast.AST) -> object:
        frame = self.frame
        given = (*args.positional, *args.keywords.values())
        odd = any(_is_odd(v) for v in given)
        return (
            id(node) if odd else 0,
            id(function.node),
            id(function.scope),
            function.bound,
            args.positional,
            tuple(sorted(args.keywords.items(), key=lambda item: item[0])),
            args.open,
            frame.contexts,
            frame.workers,
            frame.grad,
            self.surroundings(),
        )

    def run(
        self, function: Function, args: Args, node: ast.AST | None = None, *, entry: bool = False
    ) -> Value:
        """Run the body of a function in a frame of its own."""
        self.entered.add(id(function.node))
        caller_scope, caller = self.scope, self.frame
        assert isinstance(function.scope, Scope)
        contexts = () if entry else caller.contexts
        contexts += tuple(t for t in self.traits_of(function) if self.is_context(t))
        frame = Frame(
            function,
            function.name,
            self.compiled_as(function),
            None if entry or caller.workers is None else replace(caller.workers, depth=-1),
            contexts,
            receiver=function.bound,
            call=node,
            grad=self.grad_under(True if entry else caller.grad, self.traits_of(function)),
        )
        if not entry:
            self.hand_modes(frame, caller, node)
        self.scope = function.scope
        try:
            variables = self._bind_parameters(function, args, entry=entry)
            if not entry and self._hidden(function):
                variables = {name: _any_layout(value) for name, value in variables.items()}
            if frame.compiled is not None:
                self.declare(function, variables)
            self.scope = Scope("function", function.scope)
            self.scope.vars = variables
            frame.parameters = tuple(variables.values())
            self.frame = frame
            self.stack.append(frame)
            self.suspended.append(caller_scope)
            try:
                if isinstance(function.node, ast.Lambda):
                    frame.returns.append(self.evaluate(function.node.body))
                else:
                    self.execute_body(function.node.body)
                self.tell_nests()
            finally:
                self.stack.pop()
                self.suspended.pop()
        finally:
            self.scope, self.frame = caller_scope, caller
        if not entry:
            self.return_modes(frame, caller)
        if frame.yields:
            return Sequence("generator", None, join(frame.yields))
        return join(frame.returns) if frame.returns else Const(None)

    def _hidden(self, function: Function) -> bool:
        """Whether a decorator nobody can see into may have changed the arguments."""
        return any(
            not isinstance(trait, (Function, Class, Partial))
            and not name_of(trait).startswith(PLAIN_DECORATORS)
            for trait in self.traits_of(function)
        )

    def execute_body(self, body: list[ast.stmt]) -> None:
        raise NotImplementedError

    def declare(self, function: Function, variables: Variables) -> None:
        raise NotImplementedError

    def note_view(self, receiver: Tensor, name: str, args: Args, node: ast.AST) -> None:
        raise NotImplementedError

    def mark_shared(self, value: Value) -> Value:
        raise NotImplementedError

    def note_work(self, callee: Value) -> None:
        raise NotImplementedError

    def tell_nests(self) -> None:
        raise NotImplementedError

    def is_context(self, value: Value) -> bool:
        raise NotImplementedError

    def compiled_as(self, function: Function) -> Compiled | None:
        raise NotImplementedError

    def _bind_parameters(self, function: Function, args: Args, *, entry: bool) -> dict[str, Value]:
        spec = function.node.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        variables: dict[str, Value] = {}
        positional = list(args.positional)
        if function.bound is not None:
            positional.insert(0, function.bound)
        keywords = dict(args.keywords)
        defaults = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=True))
        defaults.update(
            (a.arg, d)
            for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
            if d is not None
        )
        for index, name in enumerate(names):
            if index < len(positional):
                variables[name] = positional[index]
        for name in [*names, *(a.arg for a in spec.kwonlyargs)]:
            if name in variables:
                continue
            if name in keywords:
                variables[name] = keywords.pop(name)
                continue
            unknown = Unknown(_library_of(spec, name))
            default = self.evaluate(defaults[name]) if name in defaults else None
            if default is None:
                variables[name] = unknown
            elif entry or args.open:
                variables[name] = join((unknown, default))
            else:
                variables[name] = default
        if spec.vararg is not None:
            rest = positional[len(names) :]
            variables[spec.vararg.arg] = (
                Sequence("tuple", None, Unknown("parameter"))
                if entry or args.open
                else Sequence("tuple", tuple(rest))
            )
        if spec.kwarg is not None:
            variables[spec.kwarg.arg] = Mapping(
                tuple(keywords.items()),
                not (entry or args.open),
                self.sites.at(function.node, "kw"),
            )
        return variables


def _library_of(spec: ast.arguments, name: str) -> str:
    """What a parameter's annotation says of where it comes from."""
    every = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
    annotation = next((a.annotation for a in every if a.arg == name), None)
    if annotation is None:
        return "parameter"
    text = text_of(annotation)
    if "ndarray" in text or "NDArray" in text or "ArrayLike" in text:
        return "cupy" if text.startswith(("cp.", "cupy.")) else "numpy"
    return "torch" if "Tensor" in text else "parameter"


def _is_odd(value: Value) -> bool:
    """Whether a layout other than dense is handed over, so that it matters by whom."""
    for one in alternatives(value):
        if isinstance(one, Tensor) and one.born is not None:
            return True
        if isinstance(one, Sequence) and any(_is_odd(item) for item in one.items or ()):
            return True
        if isinstance(one, Object) and one.cls.startswith("memlint."):
            return any(_is_odd(fact) for _, fact in one.facts)
    return False


def _any_layout(value: Value) -> Value:
    if isinstance(value, Tensor):
        return Unknown("parameter", loaders=value.loaders, devices=value.devices)
    return value
