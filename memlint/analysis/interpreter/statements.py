"""Definitions and imports, and which statement is executed by what."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from memlint.analysis.interpreter.branches import Branches
from memlint.analysis.interpreter.machine import dotted, name_of
from memlint.analysis.interpreter.state import Scope, Variables
from memlint.analysis.knowledge import Args, canonical
from memlint.analysis.knowledge.names import STARRED
from memlint.analysis.values import (
    Class,
    Function,
    Object,
    Ref,
    Unknown,
    Value,
)

# A context manager that is held by one worker at a time, whatever it is made by.


class Statements(Branches):
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
            self.note_wrapped(value, called)
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
                self._bind_all_of(module)
            else:
                name = dotted(module, alias.name) if module.strip(".") else module + alias.name
                self.bind(alias.asname or alias.name, self.foreign(name) or Ref(name))

    def _bind_all_of(self, module: str) -> None:
        """``from module import *``, as far as it is followed or known."""
        for name in STARRED.get(module, ()):
            self.bind(name, Ref(f"{module}.{name}"))
        for full in self.followed:
            head, _, name = full.rpartition(".")
            found = self.foreign(full) if head == module else None
            if found is not None:
                self.bind(name, found)

    _STATEMENTS: dict[type[ast.AST], Callable[..., None]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # The methods that the last of the parts has, so that none is looked up for each node.
        cls._STATEMENTS = {
            kind: getattr(cls, one.__name__) for kind, one in cls._STATEMENTS.items()
        }

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
    ast.For: Statements._for,
    ast.AsyncFor: Statements._for,
    ast.While: Statements._while,
}
if hasattr(ast, "TryStar"):
    Statements._STATEMENTS[ast.TryStar] = Statements._try
