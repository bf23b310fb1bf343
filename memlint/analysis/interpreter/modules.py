"""Modules of the project that the program imports from: read when a name of theirs is used."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from memlint.analysis.interpreter.state import Frame, Scope
from memlint.analysis.interpreter.watch import Watch
from memlint.analysis.values import Ref, Value
from memlint.source.project import Origin, Project

_MOST_MODULES = 4


class Modules(Watch):
    """The scopes of modules that are followed."""

    project: Project | None = None
    # By the full name that an import of the program itself gives it.
    followed: Mapping[str, Origin]
    # All that is worth following, in those modules too.
    origins: frozenset[Origin]
    imported: dict[tuple[str, str], Origin | None]
    # The paths of modules that are read, and their scopes; a scope is there while its module
    # is still being read, so that modules may import each other.
    modules: dict[str, Scope]
    paths: dict[int, str]
    kept: list[ast.Module]
    star_imports: list[str]
    class_prefix: str

    def foreign(self, name: str) -> Value | None:
        """What a full name stands for that is imported from the project; ``None`` for others."""
        if self.project is None or not self.followed:
            return None
        module = self.scope.module
        if module is self.module_scope:
            origin = self.followed.get(name)
            return self._value_of(origin) if origin is not None else None
        importer = self.paths.get(id(module))
        if importer is None:
            return None
        key = (importer, name)
        if key not in self.imported:
            self.imported[key] = self._imported_by(self.project, importer, name)
        origin = self.imported[key]
        return self._value_of(origin) if origin is not None and origin in self.origins else None

    def _imported_by(self, project: Project, importer: str, name: str) -> Origin | None:
        """A name that a followed module imports in its turn."""
        module, _, last = name.rpartition(".")
        if not module.strip("."):
            module = "." * (len(name) - len(name.lstrip(".")))
            last = name[len(module) :]
        target = project.resolve(importer, module) if module else None
        return project.find(target, last, {}) if target is not None else None

    def _value_of(self, origin: Origin) -> Value | None:
        scope = self._scope_of(origin.path)
        found = scope.vars.get(origin.name) if scope is not None else None
        return None if isinstance(found, Ref) else found

    def _scope_of(self, path: str) -> Scope | None:
        if path in self.modules:
            return self.modules[path]
        if len(self.modules) >= _MOST_MODULES or self.project is None:
            return None
        names = frozenset(origin.name for origin in self.origins if origin.path == path)
        program = self.project.program(path, names)
        if program is None:
            return None
        _, tree = program
        self.kept.append(tree)
        scope = self.modules[path] = Scope("module", None)
        self.paths[id(scope)] = path
        self._read_module(tree, scope)
        return scope

    def _read_module(self, tree: ast.Module, scope: Scope) -> None:
        """Execute the body of a module, leaving the program's own state as it was."""
        outer = self.scope, self.frame, self.statement, self.class_prefix, self.grad_set
        stars, imports = list(self.star_imports), set(self.imports)
        known = len(self.functions)
        self.scope, self.class_prefix = scope, ""
        self.frame = Frame(None, "<module>", None, None, ())
        self.stack.append(self.frame)
        try:
            self.execute_body(tree.body)
        finally:
            self.stack.pop()
            self.scope, self.frame, self.statement, self.class_prefix, self.grad_set = outer
            self.star_imports[:] = stars
            self.imports = imports
            # Its functions are read where the program calls them, not for their own sake.
            del self.functions[known:]

    def execute_body(self, body: list[ast.stmt]) -> None:
        raise NotImplementedError
