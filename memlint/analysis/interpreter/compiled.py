"""Functions that Numba compiles, and the types that they declare for their arguments."""

from __future__ import annotations

import ast

from memlint.analysis.events import Compiled
from memlint.analysis.interpreter.calls import facts_of
from memlint.analysis.interpreter.kernels import Kernels
from memlint.analysis.interpreter.machine import name_of
from memlint.analysis.interpreter.signatures import array_type, signatures_of
from memlint.analysis.interpreter.state import Variables
from memlint.analysis.knowledge import Args
from memlint.analysis.values import (
    Class,
    Const,
    Function,
    Object,
    Partial,
    Sequence,
    Tensor,
    Unknown,
    Value,
    alternatives,
    join,
    must_be,
)

NUMBA = frozenset(
    {"numba.njit", "numba.jit", "numba.generated_jit", "numba.guvectorize", "numba.cfunc",
     "numba.experimental.jitclass", "numba.jit_module", "numba.extending.register_jitable",
     "numba.extending.overload"}
)  # fmt: skip
JITCLASS = "numba.experimental.jitclass"
# The keyword that each decorator takes its signature by, where it is not the first argument.
SIGNATURE_KEYWORDS = ("signature_or_function", "signature", "sig", "ftylist_or_function")


class Compilation(Kernels):
    """What is compiled, and from which types."""

    def compiled_as(self, function: Function) -> Compiled | None:
        if isinstance(function.node, ast.Lambda):
            return self.frame.compiled
        for trait in self.traits_of(function):
            for one in alternatives(trait):
                made = self._compiled_by(one)
                if made is not None:
                    return made
        # A function that a compiled one defines is compiled with it.
        outer = self.frame.function
        if outer is not None and function.scope is self.scope and self.frame.compiled is not None:
            return self.frame.compiled
        return self.module_compiled

    def _compiled_by(self, trait: Value) -> Compiled | None:
        name = name_of(trait)
        if name not in NUMBA:
            return None
        facts = dict(trait.facts) if isinstance(trait, Object) else {}
        if isinstance(trait, Partial):
            facts = dict(trait.keywords)
        if "forceobj" in facts or must_be(facts.get("nopython", Const(None)), False):
            return None
        signatures = tuple(
            str(part.value)
            for value in facts.values()
            for part in _strings(value)
            if isinstance(part.value, str) and ":" in part.value
        )
        return Compiled(
            name.rpartition(".")[2],
            parallel=must_be(facts.get("parallel", Const(False)), True),
            nogil=must_be(facts.get("nogil", Const(False)), True),
            signatures=signatures,
        )

    def _wrap(self, trait_name: str, args: Args, node: ast.AST) -> Value:
        """``njit(f)``, ``njit(parallel=True)``."""
        first = args.get("", 0)
        trait = Object(trait_name, self.sites.at(node), facts_of(args))
        for one in alternatives(first):
            if isinstance(one, Function):
                facts = tuple((k, v) for k, v in trait.facts if k != "0")
                self.add_trait(one, Object(trait_name, trait.site, facts))
                return one
        return trait

    def add_trait(self, function: Function, trait: Value) -> None:
        traits = self.traits.setdefault(id(function.node), [])
        if trait not in traits:
            traits.append(trait)

    def _apply_trait(self, made: Object, args: Args, node: ast.AST) -> Value | None:
        first = args.get("", 0)
        if isinstance(first, Function):
            self.add_trait(first, made)
            return first
        return None

    def _jit_module(self, args: Args, node: ast.AST) -> Value:
        made = Object("numba.jit_module", self.sites.at(node), facts_of(args))
        self.module_compiled = self._compiled_by(made)
        return Const(None)

    # Declared types

    def declare(self, function: Function, variables: Variables) -> None:
        """Give parameters that nothing is known of the types of the function's signature."""
        key = id(function.node)
        if key not in self.declared:
            self.declared[key] = self._declared_by(function)
        types = self.declared[key]
        names = [a.arg for a in (*function.node.args.posonlyargs, *function.node.args.args)]
        for name, declared in zip(names, types, strict=False):
            if declared is not None and isinstance(variables.get(name), Unknown):
                variables[name] = declared

    def _declared_by(self, function: Function) -> tuple[Value | None, ...]:
        for trait in self.traits_of(function):
            call = trait.site.node if isinstance(trait, Object) else None
            if not isinstance(call, ast.Call) or name_of(trait) not in NUMBA:
                continue
            given = [*call.args[:1]]
            given += [k.value for k in call.keywords if k.arg in SIGNATURE_KEYWORDS]
            signatures = [s for node in given for s in signatures_of(self._named(node))]
            if signatures and len({len(s) for s in signatures}) == 1:
                columns = zip(*signatures, strict=True)
                return tuple(_one_type([array_type(node) for node in column]) for column in columns)
        return ()

    def _named(self, node: ast.expr) -> ast.expr:
        """What a name of the module is assigned."""
        if isinstance(node, ast.Name):
            for statement in self.tree.body:
                if isinstance(statement, ast.Assign):
                    for target in statement.targets:
                        if isinstance(target, ast.Name) and target.id == node.id:
                            return statement.value
        return node

    def attribute_types(self, cls: Class) -> dict[str, Value]:
        """The array attributes that a compiled class declares."""
        key = id(cls.node)
        if key not in self.attribute_specs:
            self.attribute_specs[key] = self._attributes_of(cls)
        return self.attribute_specs[key]

    def _attributes_of(self, cls: Class) -> dict[str, Value]:
        traits = [t for t in self.class_traits.get(id(cls.node), []) if name_of(t) == JITCLASS]
        if not traits:
            return {}
        nodes: dict[str, ast.AST] = {
            s.target.id: s.annotation
            for s in cls.node.body
            if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
        }
        found: dict[str, Value] = {
            name: declared for name, node in nodes.items() if (declared := array_type(node))
        }
        for trait in traits:
            specs = [v for _, v in trait.facts] if isinstance(trait, Object) else []
            for pair in (p for s in specs if isinstance(s, Sequence) for p in s.items or ()):
                match pair:
                    case Sequence(items=(Const(str() as name), Object(site=site))):
                        declared = array_type(site.node)
                        if declared is not None:
                            found[name] = declared
        return found

    module_compiled: Compiled | None
    declared: dict[int, tuple[Value | None, ...]]
    attribute_specs: dict[int, dict[str, Value]]


def _one_type(types: list[Tensor | None]) -> Value | None:
    """The type of a parameter over all signatures."""
    known = [t for t in types if t is not None]
    return join(known) if known and len(known) == len(types) else None


def _strings(value: Value) -> list[Const]:
    if isinstance(value, Const):
        return [value]
    if isinstance(value, Sequence):
        return [part for item in value.items or () for part in _strings(item)]
    return []
