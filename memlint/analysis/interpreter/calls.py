"""Calls: arguments, functions of the program, and the dispatch to what is known of libraries."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from memlint.analysis import knowledge
from memlint.analysis.interpreter.access import is_nothing
from memlint.analysis.interpreter.activations import Activations
from memlint.analysis.interpreter.arithmetic import numbered_device
from memlint.analysis.interpreter.machine import UNKNOWN
from memlint.analysis.knowledge import Args
from memlint.analysis.values import (
    WRAPPER,
    Absent,
    Alternatives,
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
    Site,
    Symbol,
    Tensor,
    Unknown,
    Value,
    alternatives,
    deps_of,
    join,
    plain,
)
from memlint.analysis.walking import walk
from memlint.analysis.watched import BLOCK

Handler = Callable[..., Value | None]


class Calls(Activations):
    """Evaluation of calls."""

    # Handlers of library calls by canonical name, filled by the domains.
    FUNCTIONS: dict[str, Handler] = {}
    # Handlers of method calls on library objects, by class and method name.
    METHODS: dict[tuple[str, str], Handler] = {}

    def _call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return self.super_object(node)
        callee = self.evaluate(node.func)
        if self.frame.compiled is not None and self.frame.loops:
            self.note_work(callee)
        args = self.arguments(node)
        value = self.call(callee, args, node)
        if BLOCK in self.watched and self._is_of_stack(callee, node):
            self.operation(BLOCK, node, callee, args, value)
        return value

    def _is_of_stack(self, callee: Value, node: ast.Call) -> bool:
        """``for block in blocks: x = block(x)``, or a sequence of as many blocks as a list has."""
        if isinstance(node.func, ast.Name):
            loops = [opened.loop.node for opened in self.frame.loops]
            return any(
                isinstance(part, ast.Name) and part.id == node.func.id
                for loop in loops
                if isinstance(loop, (ast.For, ast.AsyncFor))
                for part in walk(loop.target)
            )
        return any(
            isinstance(one, Object) and one.cls == "torch.nn.Sequential" and one.fact("*") != ABSENT
            for one in alternatives(callee)
        )

    def arguments(self, node: ast.Call) -> Args:
        """The values of a call's arguments; ``*`` and ``**`` are resolved where they can be."""
        positional: list[Value] = []
        keywords: dict[str, Value] = {}
        is_open = False
        given: list[Value] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                spread = self.evaluate(argument.value)
                if isinstance(spread, Sequence) and spread.items is not None:
                    positional.extend(spread.items)
                else:
                    is_open = True
                    self.spread[id(node)] = spread
                    positional.append(self.element(spread))
            else:
                positional.append(self.evaluate(argument))
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif not self._spread_keywords(value, keywords):
                is_open = True
                given.append(_any_item(value))
        return Args(tuple(positional), keywords, is_open, tuple(given))

    def _spread_keywords(self, value: Value, keywords: dict[str, Value]) -> bool:
        """Add the items of a ``**`` argument; whether they are all known."""
        options = alternatives(value)
        if not all(isinstance(one, Mapping) for one in options):
            return False
        mappings = [one for one in options if isinstance(one, Mapping)]
        for key in dict.fromkeys(k for m in mappings for k, _ in m.items):
            if key:
                keywords[key] = join(m.get(key) for m in mappings)
        return all(m.complete for m in mappings)

    def call(self, callee: Value, args: Args, node: ast.AST) -> Value:
        """The value of ``callee(args)``."""
        self.spend()
        if isinstance(callee, Alternatives):
            known = [v for v in callee.values if not is_nothing(v)]
            return self.each_called(known, args, node)
        return self.called_by(callee, args, node, self._called(callee, args, node))

    def _called(self, callee: Value, args: Args, node: ast.AST) -> Value:
        match callee:
            case Function():
                return self.call_function(callee, args, node)
            case Class():
                return self.construct(callee, args, node)
            case Partial(func, positional, keywords):
                merged = Args(
                    positional + args.positional, {**dict(keywords), **args.keywords}, args.open
                )
                return self.call(func, merged, node)
            case Bound(receiver, name):
                return self.call_method(receiver, name, args, node)
            case Ref(name):
                return self.call_name(name, args, node)
            case Object():
                return self.call_object(callee, args, node)
            case Instance():
                return self.call_instance(callee, args, node)
            case Unknown():
                return self.call_unknown(callee, args, node)
        return UNKNOWN

    # Methods

    def call_method(self, receiver: Value, name: str, args: Args, node: ast.AST) -> Value:
        """The value of ``receiver.name(args)``."""
        match receiver:
            case Tensor():
                return self.call_array_method(receiver, name, args, node)
            case Unknown():
                return self.call_unknown_method(receiver, name, args, node)
            case Sequence():
                return self.call_list_method(receiver, name, args, node)
            case Mapping():
                return self.call_dict_method(receiver, name, args, node)
            case Object():
                return self.call_object_method(receiver, name, args, node)
            case Instance():
                return self.call_inherited(receiver, name, args, node)
            case Class():
                return self.call_class_method(receiver, name, args, node)
            case Bound(receiver=inner) if not isinstance(inner, Class):
                return self.call_method(plain(receiver), name, args, node)
            case Bound() | Function() | Partial():
                return self.call_on_callable(receiver, name, args, node)
            case Const(str() as text) if name == "format":
                return numbered_device(text) or UNKNOWN
        return UNKNOWN

    def call_array_method(self, receiver: Tensor, name: str, args: Args, node: ast.AST) -> Value:
        if name in ("to", "cuda", "type"):
            self.note_moves(receiver, name, args, node)
        if name in POINTERS:
            return self.pointer_of(receiver, name, node)
        if name in VIEWS_BY_AXIS and self.frame.loops:
            self.note_view(receiver, name, args, node)
        elif name == "share_memory_":
            self.mark_shared(receiver)
        result = knowledge.call_method(receiver, name, args, node, self.sites.at(node))
        if result is None and name == "size":
            result = self.size_of_array(receiver, args, node)
        if result is None:
            loaders = receiver.loaders if keeps_memory(name) else frozenset()
            return Unknown(loaders=loaders, devices=receiver.devices)
        if name in ("to", "cuda") and isinstance(result, Tensor) and "cuda" in result.devices:
            return _without_loaders(result)
        return result

    def call_unknown_method(self, receiver: Unknown, name: str, args: Args, node: ast.AST) -> Value:
        if name in ("to", "cuda", "type"):
            devices = self.note_moves(receiver, name, args, node)
            if devices:
                return Unknown(receiver.origin, receiver.deps, frozenset(), devices)
            return receiver
        if name in POINTERS:
            return self.pointer_of(receiver, name, node)
        if name == "size" and (size := self.size_of_array(receiver, args, node)) is not None:
            return size
        if name in ("items", "values"):
            inner = Unknown(
                deps=receiver.deps,
                loaders=receiver.loaders,
                devices=receiver.devices,
                made=receiver.made,
                graphs=receiver.graphs,
            )
            element = inner if name == "values" else Sequence("tuple", (UNKNOWN, inner))
            return Sequence("iterator", None, element)
        started = self.start_workers_on_unknown(receiver, name, args, node)
        if started is not None:
            return started
        if knowledge.view_method(name, "") or _selects(name, args) or _views(name, args):
            tensor = self.assumed_tensor(receiver)
            result = knowledge.call_method(tensor, name, args, node, self.sites.at(node))
            if result is not None:
                return result
        self.note_unseen_call(receiver, args, node)
        deps = receiver.deps.union(*(deps_of(v) for v in args.positional))
        if receiver.origin == WRAPPER:
            origin = "" if "next" in name else WRAPPER
            return Unknown(origin, deps, receiver.loaders)
        if receiver.loaders and keeps_memory(name):
            return Unknown("call", deps, receiver.loaders, receiver.devices)
        devices = frozenset({"cpu"}) if name in ("cpu", "numpy") else receiver.devices
        return self.wrapped(args, deps, devices)

    def wrapped(
        self,
        args: Args,
        deps: frozenset[Symbol] = frozenset(),
        devices: frozenset[str] = frozenset(),
    ) -> Unknown:
        """What a call nobody can see into makes of its arguments: it may wrap a loader, and
        what it makes lies on the ``device`` that it is given."""
        loaders = self.loader_objects(args)
        devices |= knowledge.device_types(args.get("device"))
        return Unknown(WRAPPER if loaders else "call", deps, loaders, devices)

    def call_object_method(self, receiver: Object, name: str, args: Args, node: ast.AST) -> Value:
        handler = self.METHODS.get((receiver.cls, name)) or self.METHODS.get(("*", name))
        if handler is not None:
            result = handler(self, receiver, args, node)
            if result is not None:
                return result
        return self.call_unknown_method(Unknown("call"), name, args, node)

    def call_on_callable(self, receiver: Value, name: str, args: Args, node: ast.AST) -> Value:
        self.note_unseen_call(receiver, args, node)
        return self.wrapped(args)

    # Names and objects of libraries

    def call_name(self, name: str, args: Args, node: ast.AST) -> Value:
        """The value of calling something imported."""
        first = args.get("", 0)
        if (
            isinstance(first, Alternatives)
            and name.startswith(ARRAYS)
            and any(isinstance(one, Tensor) for one in first.values)
        ):
            # What a function makes of one array or another, it makes of each by itself.
            rest = args.positional[1:]
            return join(
                self.call_name(name, replace(args, positional=(one, *rest)), node)
                for one in first.values
            )
        handler = self.FUNCTIONS.get(name)
        if handler is not None:
            result = handler(self, args, node)
            if result is not None:
                return result
        known = knowledge.call_function(name, args, node, self.sites.at(node))
        if known is None and args.positional and knowledge.takes_array(name):
            given = tuple(
                self.assumed_tensor(value) if isinstance(value, Unknown) else value
                for value in (plain(args.positional[0]), *args.positional[1:])
            )
            if name not in PAIRED:
                given = (given[0], *args.positional[1:])
            assumed = replace(args, positional=given)
            known = knowledge.call_function(name, assumed, node, self.sites.at(node))
        if known is not None:
            return known
        special = self.special_call(name, args, node)
        if special is not None:
            return special
        last = name.rpartition(".")[2]
        self.note_unseen_call(Ref(name), args, node)
        deps = frozenset().union(*(deps_of(v) for v in args.positional))
        made = self.wrapped(args, deps)
        if last[:1].isupper() and not made.loaders:
            return Object(name, self.sites.at(node), facts_of(args))
        return made

    def call_object(self, callee: Object, args: Args, node: ast.AST) -> Value:
        handler = self.METHODS.get((callee.cls, "__call__"))
        if handler is not None:
            result = handler(self, callee, args, node)
            if result is not None:
                return result
        function = args.get("", 0)
        if isinstance(function, (Function, Class)) and len(args.positional) == 1:
            self.note_guarded(callee, function)
            return function
        self.note_unseen_call(callee, args, node)
        return Unknown("call")

    def call_unknown(self, callee: Unknown, args: Args, node: ast.AST) -> Value:
        self.note_unseen_call(callee, args, node)
        return self.wrapped(args)

    # Defined by the domains.

    def super_object(self, node: ast.Call) -> Value:
        raise NotImplementedError

    def construct(self, cls: Class, args: Args, node: ast.AST) -> Value:
        raise NotImplementedError

    def call_instance(self, callee: Instance, args: Args, node: ast.AST) -> Value:
        raise NotImplementedError

    def call_inherited(self, receiver: Instance, name: str, args: Args, node: ast.AST) -> Value:
        raise NotImplementedError

    def call_class_method(self, receiver: Class, name: str, args: Args, node: ast.AST) -> Value:
        raise NotImplementedError

    def call_list_method(self, receiver: Sequence, name: str, args: Args, node: ast.AST) -> Value:
        raise NotImplementedError

    def call_dict_method(self, receiver: Mapping, name: str, args: Args, node: ast.AST) -> Value:
        raise NotImplementedError

    def note_moves(self, value: Value, name: str, args: Args, node: ast.AST) -> frozenset[str]:
        raise NotImplementedError

    def note_unseen_call(self, callee: Value, args: Args, node: ast.AST) -> None:
        raise NotImplementedError

    def pointer_of(self, value: Value, name: str, node: ast.AST) -> Value:
        raise NotImplementedError

    def start_workers_on_unknown(
        self, receiver: Unknown, name: str, args: Args, node: ast.AST
    ) -> Value | None:
        raise NotImplementedError

    def special_call(self, name: str, args: Args, node: ast.AST) -> Value | None:
        raise NotImplementedError

    def loader_objects(self, args: Args) -> frozenset[Site]:
        raise NotImplementedError


# Methods that hand out an address, or the strides that go with it.
# Methods that cut out a part of an axis, as a subscript does.
VIEWS_BY_AXIS = frozenset({"select", "narrow", "take"})
POINTERS = frozenset({"data_ptr", "stride", "is_contiguous", "__dlpack__"})


# Methods of tensors whose result lies in the memory of their receiver, or may do so.
SAME_MEMORY = frozenset(
    {"to", "cuda", "type", "type_as", "contiguous", "float", "half", "double", "bfloat16", "long",
     "int", "short", "byte", "bool", "view", "view_as", "reshape", "flatten", "unflatten",
     "squeeze", "unsqueeze", "transpose", "t", "permute", "movedim", "swapaxes", "expand",
     "expand_as", "narrow", "select", "chunk", "split", "unbind", "unfold", "detach", "data",
     "requires_grad_", "pin_memory", "numpy", "__getitem__"}
)  # fmt: skip


def _any_item(value: Value) -> Value:
    """What a ``**`` argument may give under names that are not known."""
    return join(
        one.get("") if isinstance(one, Mapping) else one
        for one in alternatives(value)
        if not isinstance(one, (Absent, Const))
    )


def keeps_memory(name: str) -> bool:
    """Whether a method gives back (a part of) the object that it is called on.

    A method that no tensor has is one of a batch object.
    """
    return name in SAME_MEMORY or name not in knowledge.methods("torch")


ARRAYS = ("torch.", "numpy.", "cupy.")

# Functions of two arrays.
ABSENT = Absent()
PAIRED = frozenset({"torch.polar", "torch.complex"})


def _selects(name: str, args: Args) -> bool:
    """``x.select(1, k)`` with an axis; other classes have a method of this name too."""
    first = args.get("dim", 0)
    return (
        name == "select"
        and len(args.positional) + len(args.keywords) == 2
        and isinstance(first, Const)
        and type(first.value) is int
    )


def _views(name: str, args: Args) -> bool:
    """``x.view(b, -1)`` with several sizes, and ``x.flatten(1)``."""
    sizes = args.positional
    if name == "flatten":
        first = args.get("start_dim", 0)
        return isinstance(first, Const) and type(first.value) is int
    return (
        name == "view"
        and len(sizes) > 1
        and not args.keywords
        and not any(isinstance(size, (Ref, Sequence, Mapping)) for size in sizes)
        and not any(isinstance(size, Const) and type(size.value) is not int for size in sizes)
    )


def facts_of(args: Args) -> tuple[tuple[str, Value], ...]:
    """Arguments as the facts of an object: positional ones under their number."""
    facts = [(str(i), value) for i, value in enumerate(args.positional)]
    facts.extend(args.keywords.items())
    if args.open:
        facts.append(("*", UNKNOWN))
    return tuple(facts)


def _without_loaders(tensor: Tensor) -> Tensor:
    return replace(tensor, loaders=frozenset())
