"""What the values of a function may be, by marks that spread from expression to expression: the
walk of sieves that look at the syntax of one function alone.

Statements are taken in the order in which they may run, branches are joined, loops run twice.
What a name holds that the function does not set is told by the mark of its path.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import TypeAlias

from memlint.analysis.walking import children, walk

Marks: TypeAlias = frozenset[str]
State: TypeAlias = dict[str, Marks]
NONE: Marks = frozenset()
OUTER = "outer:"
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_TRIES: tuple[type[ast.Try], ...] = (ast.Try, getattr(ast, "TryStar", ast.Try))
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_BRANCHES = (ast.If, ast.Match, *_TRIES)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# What is added to a list is in it.
_ADDING = frozenset({"append", "extend", "insert", "add"})

# The marks of an expression by those of the expressions right below it; ``None`` for the union.
Step: TypeAlias = Callable[[ast.expr, Callable[[ast.expr], Marks]], "Marks | None"]


def path_of(node: ast.AST) -> str:
    """``a.b`` as a text; empty where an expression is no chain of names."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            base = path_of(value)
            return f"{base}.{name}" if base else ""
    return ""


class MarkWalk:
    """A walk over a function.  ``returned`` are the marks of all that it returns."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._below: dict[ast.expr, Marks] = {}
        self.returned: Marks = NONE
        self.state: State = {}

    def run(self, function: ast.AST) -> None:
        """Walk over a function, or a module."""
        self._block(getattr(function, "body", []))

    # Statements

    def _block(self, body: Iterable[ast.AST]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            self._assigned(node.targets, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._assigned([node.target], node.value)
        elif isinstance(node, ast.AugAssign):
            marks = self._value(node.target) | self._value(node.value)
            self._bind(node.target, marks)
        elif isinstance(node, ast.Return) and node.value is not None:
            self.returned |= self._value(node.value)
        elif isinstance(node, _LOOPS):
            self._loop(node)
        elif isinstance(node, _BRANCHES):
            self._branches(node)
        elif isinstance(node, _DEFINITIONS):
            self._function(node)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                marks = self._value(item.context_expr)
                if item.optional_vars is not None:
                    self._bind(item.optional_vars, marks)
            self._block(node.body)
        elif isinstance(node, ast.ClassDef):
            self._block(node.body)
        else:
            for child in children(node):
                if isinstance(child, ast.expr):
                    self._value(child)

    def _assigned(self, targets: list[ast.expr], value: ast.expr) -> None:
        marks = self._value(value)
        for target in targets:
            if (
                isinstance(target, (ast.Tuple, ast.List))
                and isinstance(value, (ast.Tuple, ast.List))
                and len(target.elts) == len(value.elts)
            ):
                for one, given in zip(target.elts, value.elts, strict=True):
                    self._bind(one, self._below.get(given, marks))
            else:
                self._bind(target, marks)

    def _bind(self, target: ast.expr, marks: Marks) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for one in target.elts:
                self._bind(one, marks)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, marks)
        elif isinstance(target, ast.Subscript):
            self._add(target.value, marks)
        elif path := path_of(target):
            for other in [one for one in self.state if one.startswith(f"{path}.")]:
                del self.state[other]
            self.state[path] = marks

    def _add(self, container: ast.expr, marks: Marks) -> None:
        """Put something into what an expression holds."""
        while isinstance(container, ast.Subscript):
            container = container.value
        if path := path_of(container):
            self.state[path] = self._held(path) | marks

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        before = dict(self.state)
        for _ in range(2):
            if isinstance(node, ast.While):
                self._value(node.test)
            else:
                self._bind(node.target, self._value(node.iter))
            self._block(node.body)
            self.state = _joined(before, self.state)
            before = dict(self.state)
        self._block(node.orelse)

    def _branches(self, node: ast.AST) -> None:
        if isinstance(node, ast.If):
            self._value(node.test)
            bodies: list[list[ast.stmt]] = [node.body, node.orelse]
        elif isinstance(node, ast.Match):
            self._value(node.subject)
            bodies = [[], *(case.body for case in node.cases)]
        else:
            assert isinstance(node, _TRIES)
            self._block(node.body)
            bodies = [node.orelse, *(one.body for one in node.handlers)]
        before, ends = self.state, list[State]()
        for body in bodies:
            self.state = dict(before)
            self._block(body)
            if not (body and isinstance(body[-1], (ast.Return, ast.Raise))):
                ends.append(self.state)
        self.state = ends[0] if ends else before
        for end in ends[1:]:
            self.state = _joined(self.state, end)
        self._block(getattr(node, "finalbody", []))

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outside, returned = dict(self.state), self.returned
        self.returned = NONE
        for argument in walk(node.args):
            if isinstance(argument, ast.arg):
                self.state.pop(argument.arg, None)
        self._block(node.body)
        attributes = {path: marks for path, marks in self.state.items() if "." in path}
        self.state = {**outside, **attributes, node.name: self.returned}
        self.returned = returned

    # Expressions

    def _value(self, node: ast.expr) -> Marks:
        if isinstance(node, _COMPREHENSIONS):
            for generator in node.generators:
                self._bind(generator.target, self._value(generator.iter))
                for condition in generator.ifs:
                    self._value(condition)
        below = _expressions_below(node)
        for child in below:
            self._below[child] = self._value(child)
        marks = self._step(node, self._marks_below)
        if marks is None:
            marks = self._by_default(node, below)
        if isinstance(node, ast.NamedExpr):
            self._bind(node.target, marks)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _ADDING
        ):
            for one in node.args:
                self._add(node.func.value, self._below.get(one, NONE))
        self._below[node] = marks
        return marks

    def _marks_below(self, node: ast.expr) -> Marks:
        return self._below.get(node, NONE)

    def _by_default(self, node: ast.expr, below: Iterable[ast.expr]) -> Marks:
        if isinstance(node, ast.Name):
            return self._held(node.id)
        if isinstance(node, ast.Attribute) and (path := path_of(node)):
            if path in self.state or path.partition(".")[0] not in self.state:
                return self._held(path)
            return self._below.get(node.value, NONE)
        if isinstance(node, ast.Subscript):
            return self._below.get(node.value, NONE)
        found = NONE
        for child in below:
            marks = self._below.get(child, NONE)
            if marks:
                found = found | marks if found else marks
        return found

    def _held(self, path: str) -> Marks:
        held = self.state.get(path)
        return frozenset({OUTER + path}) if held is None else held


def _expressions_below(node: ast.expr) -> list[ast.expr]:
    """The expressions right below one, with those that keywords give."""
    if isinstance(node, (ast.Name, ast.Constant)):
        return []
    found = (one.value if isinstance(one, ast.keyword) else one for one in children(node))
    return [one for one in found if isinstance(one, ast.expr)]


def _joined(state: State, other: State) -> State:
    """What names hold after one of two branches."""
    paths = {**state, **other}
    return {
        path: state.get(path, frozenset({OUTER + path}))
        | other.get(path, frozenset({OUTER + path}))
        for path in paths
    }
