"""Objects of the program's own classes, and Python's built-in functions."""

from __future__ import annotations

import ast

from memlint.analysis import knowledge
from memlint.analysis.interpreter.access import key_values
from memlint.analysis.interpreter.calls import Handler, facts_of
from memlint.analysis.interpreter.containers import Containers
from memlint.analysis.interpreter.machine import UNKNOWN, name_of
from memlint.analysis.knowledge import Args, SliceValue
from memlint.analysis.values import (
    Absent,
    Bound,
    Class,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Partial,
    Ref,
    Sequence,
    Tensor,
    Unknown,
    Value,
    alternatives,
    deps_of,
)

# Objects of NumPy that put arrays together when they are subscripted.
CONCATENATING = frozenset({"numpy.r_", "numpy.c_"})
KEPT_AS_OBJECTS = (
    "builtins.range",
    "builtins.enumerate",
    "builtins.map",
    "numba.prange",
    "numba.pndindex",
    "numpy.ndindex",
    "itertools.product",
    "torch.no_grad",
    "torch.enable_grad",
    "torch.inference_mode",
    "torch.autograd.no_grad",
    "torch.autograd.enable_grad",
)
FIELD = "dataclasses.field"
# Built-in functions whose result says nothing of their arguments.
FORGETFUL = (
    "len", "print", "isinstance", "id", "hash", "repr", "str", "hasattr", "type", "input",
    "open", "callable", "issubclass", "format", "ord", "chr", "hex", "dir", "vars",
)  # fmt: skip


class Objects(Containers):
    """Classes, instances, built-in functions."""

    # Attribute access

    def lineage(self, cls: Class) -> list[Class]:
        """A class and those of its bases that the program defines, nearest first."""
        found = [cls]
        for base in self.bases.get(id(cls.node), []):
            for one in alternatives(base):
                if isinstance(one, Class) and len(found) < 12 and one not in found:
                    found.extend(c for c in self.lineage(one) if c not in found)
        return found

    def library_bases(self, cls: Class) -> list[str]:
        """The canonical names of a class's bases outside the program."""
        names: list[str] = []
        for one in self.lineage(cls):
            for base in self.bases.get(id(one.node), []):
                names.extend(name_of(b) for b in alternatives(base) if name_of(b))
        return names

    def attribute_types(self, cls: Class) -> dict[str, Value]:
        raise NotImplementedError

    def class_attribute(self, cls: Class, name: str) -> Value | None:
        for one in self.lineage(cls):
            found = self.members.get(id(one.node), {}).get(name)
            if found is not None:
                return found
        return None

    def attribute_of_class(self, cls: Class, name: str) -> Value:
        found = self.class_attribute(cls, name)
        if found is None:
            return Bound(cls, name)
        if isinstance(found, Function) and "builtins.classmethod" in self.trait_names(found):
            return Function(found.node, found.scope, cls, found.name)
        return found

    def instance_attribute(self, instance: Instance, name: str, node: ast.AST) -> Value:
        own = self.heap.get(instance, name)
        declared = self.attribute_types(instance.cls).get(name)
        if declared is not None:
            return declared
        if own is not None:
            return own
        found = self.class_attribute(instance.cls, name)
        if found is None:
            return Bound(instance, name)
        if not isinstance(found, Function):
            return found if _factory_of(found) is None else Unknown("call")
        traits = set(self.trait_names(found))
        if "builtins.staticmethod" in traits:
            return found
        owner: Value = instance.cls if "builtins.classmethod" in traits else instance
        bound = Function(found.node, found.scope, owner, found.name)
        if traits & {"builtins.property", "functools.cached_property"}:
            return self.call_function(bound, Args((), {}, False), node)
        return bound

    def object_attribute(self, base: Object, name: str, node: ast.AST) -> Value:
        handler = self.METHODS.get((base.cls, f".{name}"))
        if handler is not None:
            result = handler(self, base, node)
            if result is not None:
                return result
        return Bound(base, name)

    def opaque_subscript(
        self, base: Value, node: ast.Subscript, items: tuple[Value | SliceValue, ...]
    ) -> Value:
        if isinstance(base, Instance):
            method = self.instance_attribute(base, "__getitem__", node)
            if isinstance(method, Function):
                key = items[0] if items and not isinstance(items[0], SliceValue) else UNKNOWN
                return self.call_function(method, Args((key,), {}, False), node)
            return UNKNOWN
        if isinstance(base, Object) and (base.cls, "[]") in self.METHODS:
            found = self.METHODS[(base.cls, "[]")](self, base, node)
            return found if found is not None else UNKNOWN
        if isinstance(base, Ref) and base.name in CONCATENATING:
            args = Args(key_values(items), {}, False)
            return self.operation(base.name, node, None, args, Unknown("call"))
        if isinstance(base, (Ref, Bound, Object)):
            return Object("memlint.launcher", self.sites.at(node), (("kernel", base),))
        return UNKNOWN

    # Construction

    def construct(self, cls: Class, args: Args, node: ast.AST) -> Value:
        instance = Instance(cls, self.sites.at(node))
        library = self.library_bases(cls)
        init = self.class_attribute(cls, "__init__")
        if isinstance(init, Function):
            bound = Function(init.node, init.scope, instance, f"{cls.node.name}.__init__")
            self.call_function(bound, args, node)
        elif any(name_of(t).startswith("dataclasses.dataclass") for t in self.decorators(cls)):
            self._fill_fields(instance, cls, args)
        else:
            self.note_construction(instance, library, args, node)
        post = self.class_attribute(cls, "__post_init__")
        if isinstance(post, Function):
            bound = Function(post.node, post.scope, instance, f"{cls.node.name}.__post__init__")
            self.call_function(bound, Args((), {}, False), node)
        return instance

    def decorators(self, cls: Class) -> list[Value]:
        return self.class_traits.get(id(cls.node), [])

    def _fill_fields(self, instance: Instance, cls: Class, args: Args) -> None:
        fields = [
            (statement.target.id, statement)
            for one in reversed(self.lineage(cls))
            for statement in one.node.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        ]
        for index, (name, statement) in enumerate(fields):
            given = args.get(name, index)
            factory = _factory_of(self.class_attribute(cls, name))
            if isinstance(given, Absent) and factory is not None:
                given = self.call(factory, Args((), {}, False), statement)
            if not isinstance(given, Absent):
                self.heap.put(instance, name, given, strong=True)

    def note_construction(
        self, instance: Instance, library: list[str], args: Args, node: ast.AST
    ) -> None:
        raise NotImplementedError

    def super_object(self, node: ast.Call) -> Value:
        function = self.frame.function
        receiver = self.frame.receiver
        if function is None or receiver is None:
            return UNKNOWN
        owner = self.owners.get(id(function.node))
        if owner is None:
            return UNKNOWN
        facts = (("receiver", receiver), ("owner", owner))
        return Object("builtins.super", self.sites.at(node), facts)

    def super_method(self, base: Object, name: str, args: Args, node: ast.AST) -> Value:
        """``super().name(args)``: the program's own base class, or a library's."""
        receiver, owner = base.fact("receiver"), base.fact("owner")
        if not isinstance(owner, Class):
            return UNKNOWN
        for one in self.lineage(owner)[1:]:
            found = self.members.get(id(one.node), {}).get(name)
            if isinstance(found, Function):
                bound = Function(found.node, found.scope, receiver, f"{one.node.name}.{name}")
                return self.call_function(bound, args, node)
        if isinstance(receiver, Instance):
            if name == "__init__":
                self.note_construction(receiver, self.library_bases(owner), args, node)
                return Const(None)
            return self.call_inherited(receiver, name, args, node)
        return UNKNOWN

    def call_class_method(self, receiver: Class, name: str, args: Args, node: ast.AST) -> Value:
        if name == "apply":
            forward = self.class_attribute(receiver, "forward")
            if isinstance(forward, Function):
                context = Unknown("call")
                arguments = Args((context, *args.positional), args.keywords, args.open)
                return self.call_function(forward, arguments, node)
        if name in ("from_pretrained", "load_from_checkpoint", "from_config", "create"):
            return self.construct(receiver, Args((), {}, True), node)
        return self.wrapped(args)

    # Built-in functions

    def _same_memory(self, args: Args, node: ast.AST) -> Value | None:
        first = args.get("data", 0)
        return first if isinstance(first, Unknown) and first.loaders else None

    def _from_array(self, args: Args, node: ast.AST) -> Value | None:
        """A batch that is an array is nothing that its loader could pin."""
        first = args.get("ndarray", 0)
        return Unknown("call") if isinstance(first, Unknown) and first.loaders else None

    def _keep(self, name: str, args: Args, node: ast.AST) -> Value:
        return Object(name, self.sites.at(node), facts_of(args))

    def _field(self, args: Args, node: ast.AST) -> Value:
        """``field(default_factory=list)`` of a data class."""
        default = args.get("default")
        return self._keep(FIELD, args, node) if isinstance(default, Absent) else default

    def _next(self, args: Args, node: ast.AST) -> Value:
        return self.element(args.get("", 0))

    def _set_grad(self, args: Args, node: ast.AST) -> Value:
        """``torch.set_grad_enabled``: a context manager, and by itself a switch."""
        if isinstance(self.statement, ast.Expr) and self.statement.value is node:
            self.set_grad(args)
        return self._keep("torch.set_grad_enabled", args, node)

    def _partial(self, args: Args, node: ast.AST) -> Value:
        if not args.positional:
            return UNKNOWN
        if args.open:
            return Partial(args.positional[0], args.positional[1:], (("**", UNKNOWN),), node)
        keywords = tuple(args.keywords.items())
        return Partial(args.positional[0], args.positional[1:], keywords, node)

    def _number_of(self, args: Args, node: ast.AST) -> Value:
        value = args.get("", 0)
        if isinstance(value, Const) and isinstance(value.value, (int, float)):
            return Const(int(value.value)) if abs(value.value) < 1e15 else UNKNOWN
        if isinstance(value, Object) and value.cls != "memlint.launcher":
            return value
        return value if deps_of(value) else Unknown("int")

    def _extreme(self, args: Args, node: ast.AST) -> Value:
        return Unknown(deps=frozenset().union(*(deps_of(v) for v in args.positional)))

    def _length(self, args: Args, node: ast.AST) -> Value:
        value = args.get("", 0)
        if isinstance(value, Sequence) and value.items is not None:
            return Const(len(value.items))
        if isinstance(value, Tensor) and value.sizes:
            known = knowledge.value_of(value.sizes[0])
            if known is not None:
                return known
        if isinstance(node, ast.Call) and node.args and not isinstance(value, (Sequence, Mapping)):
            return self.size_symbol(ast.unparse(node.args[0]), 0, value)
        return UNKNOWN

    def _getattr(self, args: Args, node: ast.AST) -> Value:
        name = args.get("", 1)
        if isinstance(name, Const) and isinstance(name.value, str):
            return self.attribute(args.get("", 0), name.value, node)
        return UNKNOWN

    def _forget(self, args: Args, node: ast.AST) -> Value:
        return UNKNOWN

    def element_of_object(self, value: Object) -> Value:
        if value.site in self.loaders:
            return Unknown(loaders=frozenset({value.site}))
        match value.cls:
            case "builtins.enumerate":
                return Sequence("tuple", (UNKNOWN, self.element(value.fact("0"))))
            case "builtins.zip":
                parts = tuple(self.element(v) for k, v in value.facts if k.isdigit())
                return Sequence("tuple", parts)
            case "builtins.map":
                return self.call(
                    value.fact("0"),
                    Args((self.element(value.fact("1")),), {}, False),
                    self.statement,
                )
        return UNKNOWN


def _factory_of(member: Value | None) -> Value | None:
    """What makes the values of a field of a data class, where each object gets its own."""
    if not isinstance(member, Object) or member.cls != FIELD:
        return None
    factory = member.fact("default_factory")
    return None if isinstance(factory, Absent) else factory


def _kept(name: str) -> Handler:
    return lambda self, args, node: self._keep(name, args, node)


Objects.FUNCTIONS.update({name: _kept(name) for name in KEPT_AS_OBJECTS})
Objects.FUNCTIONS.update({f"builtins.{name}": Objects._forget for name in FORGETFUL})
Objects.FUNCTIONS.update(
    {
        "torch.as_tensor": Objects._same_memory,
        "torch.from_numpy": Objects._from_array,
        FIELD: Objects._field,
        "builtins.len": Objects._length,
        "builtins.next": Objects._next,
        "builtins.int": Objects._number_of,
        "builtins.min": Objects._extreme,
        "builtins.max": Objects._extreme,
        "builtins.getattr": Objects._getattr,
        "functools.partial": Objects._partial,
        "torch.set_grad_enabled": Objects._set_grad,
        "torch.autograd.set_grad_enabled": Objects._set_grad,
        "tqdm.trange": _kept("builtins.range"),
        "tqdm.auto.trange": _kept("builtins.range"),
    }
)
