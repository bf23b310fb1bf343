"""Attributes and subscripts: parts of what is there."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from functools import cached_property
from typing import Literal

from memlint.analysis import knowledge
from memlint.analysis.axes import OPAQUE, dense_any_rank
from memlint.analysis.interpreter.machine import UNKNOWN, dotted, text_of
from memlint.analysis.interpreter.modules import Modules
from memlint.analysis.knowledge import Args, SliceValue
from memlint.analysis.linear import add, linear, of_linear, symbol_value
from memlint.analysis.values import (
    MIXED,
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
    deps_of,
    join,
    plain,
)
from memlint.late_pattern import late_pattern

OWN_TRANSPOSE = late_pattern(
    r"^\s*(?:[\w.]+, *)*[\w.]+\.m?T *(?:, *[\w.]+)*(?: *:[^=\n]*)? *=[^=]", re.MULTILINE
)
TRANSPOSES = ("T", "mT", "mH")
INTERFACES = ("__cuda_array_interface__", "__array_interface__")


class Access(Modules):
    """Evaluation of attributes and subscripts."""

    # Attributes

    def _attribute(self, node: ast.Attribute) -> Value:
        base = self.evaluate(node.value)
        return self.attribute(base, node.attr, node)

    def attribute(self, base: Value, name: str, node: ast.AST) -> Value:
        """``base.name``."""
        match base:
            case Alternatives(values):
                return join(self.attribute(v, name, node) for v in values if not is_nothing(v))
            case Ref(module):
                full = dotted(module, name)
                return self.foreign(full) or Ref(full)
            case Instance():
                return self.instance_attribute(base, name, node)
            case Class():
                return self.attribute_of_class(base, name)
            case Tensor():
                found = knowledge.attribute(base, name, node)
                if found is not None:
                    return self.operated(f".{name}", node, (base,), found)
                return self._array_attribute(base, name, node)
            case Object() if name in TRANSPOSES and (array := parameter_array(base)) is not None:
                return self.attribute(array, name, node)
            case Object():
                return self.object_attribute(base, name, node)
            case Unknown():
                return self._unknown_attribute(base, name, node)
            case Bound(receiver=receiver) if not isinstance(receiver, Class):
                return self.attribute(plain(base), name, node)
        return Bound(base, name)

    def _array_attribute(self, base: Value, name: str, node: ast.AST) -> Value:
        if name == "shape" and isinstance(node, ast.Attribute):
            return self.shape_of(node.value, base)
        if name == "ctypes":
            return Object("numpy.ctypeslib", self.sites.at(node), (("of", base),))
        if name in INTERFACES:
            return Object("memlint.interface", self.sites.at(node), (("of", base),))
        if name == "strides":
            return Object("memlint.strides", self.sites.at(node), (("of", base),))
        return Bound(base, name)

    def _unknown_attribute(self, base: Unknown, name: str, node: ast.AST) -> Value:
        if name in TRANSPOSES and not self.has_own_transpose:
            found = knowledge.attribute(self.assumed_tensor(base), name, node) or UNKNOWN
            return self.operated(f".{name}", node, (base,), found)
        if name in ("shape", "ctypes", "strides") or name in INTERFACES:
            return self._array_attribute(base, name, node)
        return self.stored_on_unknown(node) or Bound(base, name)

    def stored_on_unknown(self, node: ast.AST) -> Value | None:
        """What the program itself stored under this attribute of an object it does not make."""
        raise NotImplementedError

    @cached_property
    def has_own_transpose(self) -> bool:
        """Whether ``T`` is also an attribute that the program gives its own objects."""
        return OWN_TRANSPOSE.search(self.source.text) is not None

    def assumed_tensor(self, base: Unknown) -> Tensor:
        """An unknown object whose use shows it to be an array: dense by the one assumption, unless
        it is one of several that were too many to be followed."""
        lib = base.origin if base.origin in ("torch", "numpy", "cupy") else ""
        return Tensor(
            lib,
            OPAQUE if base.origin == MIXED else dense_any_rank(),
            devices=base.devices,
            assumed=True,
            loaders=base.loaders,
        )

    def shape_of(self, node: ast.expr, base: Value) -> Value:
        """The shape of an array whose rank may not be known."""
        if isinstance(base, Tensor) and base.sizes is not None:
            text = text_of(node)
            items = tuple(
                knowledge.value_of(size) or self.size_symbol(text, axis, base)
                for axis, size in enumerate(base.sizes)
            )
            return Sequence("tuple", items)
        facts = (("of", Const(text_of(node))), ("array", base))
        return Object("memlint.shape", self.sites.at(node, "shape"), facts)

    def size_of_array(self, array: Value, args: Args, node: ast.AST) -> Value | None:
        """``x.size()`` and ``x.size(0)`` of torch, where the sizes are not known."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return None
        axis = args.get("dim", 0)
        if isinstance(axis, Absent):
            return self.shape_of(node.func.value, array)
        if isinstance(axis, Const) and type(axis.value) is int:
            return self.size_symbol(text_of(node.func.value), axis.value, array)
        return None

    def instance_attribute(self, instance: Instance, name: str, node: ast.AST) -> Value:
        raise NotImplementedError

    def class_attribute(self, cls: Class, name: str) -> Value | None:
        raise NotImplementedError

    def attribute_of_class(self, cls: Class, name: str) -> Value:
        raise NotImplementedError

    def object_attribute(self, base: Object, name: str, node: ast.AST) -> Value:
        raise NotImplementedError

    # Subscripts

    def _subscript(self, node: ast.Subscript) -> Value:
        base_node, keys = _chain(node)
        base = _array_of(self.evaluate(base_node))
        items = tuple(self._subscript_item(key) for key in keys)
        self.note_access(node, base_node, base, items, "load")
        value = self._subscripted(base, base_node, node, items)
        if isinstance(base, (Tensor, Unknown, Alternatives, Bound)) and not isinstance(
            value, (Sequence, Mapping)
        ):
            return self.operated("operator.getitem", node, (plain(base), *key_values(items)), value)
        return value

    def note_access(
        self,
        node: ast.AST,
        base_node: ast.expr,
        base: Value,
        items: tuple[Value | SliceValue, ...],
        mode: str,
        given: Value = UNKNOWN,
    ) -> None:
        """``given`` is what is stored, or what an update adds."""
        raise NotImplementedError

    def target_subscript(
        self, node: ast.Subscript, mode: str, given: Value
    ) -> tuple[Value, tuple[Value | SliceValue, ...]]:
        """Evaluate a subscript that is assigned to: what is indexed, and with what."""
        base_node, keys = _chain(node)
        base = self.evaluate(base_node)
        items = tuple(self._subscript_item(key) for key in keys)
        self.note_access(node, base_node, base, items, mode, given)
        return base, items

    def _subscript_item(self, node: ast.expr) -> Value | SliceValue:
        if isinstance(node, ast.Slice):
            windowed = self._window(node)
            if windowed is not None:
                return windowed
            return SliceValue(
                *(
                    self.evaluate(n) if n else Const(None)
                    for n in (node.lower, node.upper, node.step)
                )
            )
        if isinstance(node, ast.Constant) and node.value is Ellipsis:
            return Const("...")
        return self.evaluate(node)

    def _window(self, node: ast.Slice) -> SliceValue | None:
        """``start : start + length``, where only the length is known."""
        match node:
            case ast.Slice(
                lower=ast.Name(id=name) as lower,
                upper=ast.BinOp(op=ast.Add(), left=ast.Name(id=again), right=length),
                step=None,
            ) if name == again:
                start = self.evaluate(lower)
                if start != UNKNOWN and start != Unknown("parameter"):
                    return None
                known = linear(self.evaluate(length))
                if known is None:
                    return None
                symbol = symbol_value(Symbol("name", name, self.sites.at(node)))
                return SliceValue(symbol, of_linear(add(symbol, known)), Const(None))
        return None

    def _subscripted(
        self,
        base: Value,
        base_node: ast.expr,
        node: ast.Subscript,
        items: tuple[Value | SliceValue, ...],
    ) -> Value:
        match plain(base):
            case Alternatives(values):
                return join(
                    self._subscripted(v, base_node, node, items)
                    for v in values
                    if not is_nothing(v)
                )
            case Tensor() as tensor:
                if self.frame.compiled is not None and _picks_element(tensor, items):
                    return Unknown(deps=_key_deps(items))
                return knowledge.subscript(tensor, items, node)
            case Sequence() as sequence:
                return self._item(sequence, items)
            case Mapping() as mapping:
                found = _under_key(mapping, items[0])
                if len(items) > 1:
                    return self._subscripted(found, base_node, node, items[1:])
                return found
            case Object(cls="memlint.shape") as shape:
                axis = items[0]
                text = shape.fact("of")
                if isinstance(axis, Const) and isinstance(axis.value, int):
                    array = shape.fact("array")
                    return self.size_symbol(str(getattr(text, "value", "")), axis.value, array)
                return UNKNOWN
            case Function() | Partial():
                return self.launcher(base, node)
            case Object() | Ref() | Instance():
                return self.opaque_subscript(base, node, items)
            case Unknown() as unknown:
                if self._slices_array(items):
                    return knowledge.subscript(self.assumed_tensor(unknown), items, node)
                deps = unknown.deps | _key_deps(items)
                loaders = frozenset[Site]() if _gathers(items) else unknown.loaders
                return Unknown(unknown.origin, deps, loaders, unknown.devices)
        return UNKNOWN

    def _slices_array(self, items: tuple[Value | SliceValue, ...]) -> bool:
        """``x[:, k]`` and ``x[..., 0]`` are no list or dictionary subscripts."""
        return len(items) > 1 and any(
            isinstance(i, SliceValue) or (isinstance(i, Const) and i.value == "...") for i in items
        )

    def _item(self, base: Sequence, items: tuple[Value | SliceValue, ...]) -> Value:
        value: Value = base
        for key in items:
            if not isinstance(value, Sequence):
                return UNKNOWN
            if isinstance(key, SliceValue):
                value = self._slice_of(value, key)
            elif value.items is None:
                value = value.element
            elif isinstance(key, Const) and isinstance(key.value, int):
                inside = -len(value.items) <= key.value < len(value.items)
                value = value.items[key.value] if inside else UNKNOWN
            else:
                value = join(value.items) if value.items else UNKNOWN
        return value

    def _slice_of(self, base: Sequence, key: SliceValue) -> Value:
        bounds = [_bound(b) for b in (key.start, key.stop, key.step)]
        if base.items is not None and False not in bounds and bounds[2] != 0:
            start, stop, step = bounds
            return Sequence(base.kind, base.items[start:stop:step])
        return Sequence(base.kind, None, self.element(base))

    def launcher(self, kernel: Value, node: ast.Subscript) -> Value:
        raise NotImplementedError

    def opaque_subscript(
        self, base: Value, node: ast.Subscript, items: tuple[Value | SliceValue, ...]
    ) -> Value:
        raise NotImplementedError

    def element(self, value: Value) -> Value:
        """What iterating over ``value`` yields."""
        raise NotImplementedError


def _chain(node: ast.Subscript) -> tuple[ast.expr, list[ast.expr]]:
    """``a[i][j]`` as the base ``a`` and the keys ``i, j``: only plain keys are joined."""
    keys = _keys(node)
    base = node.value
    while isinstance(base, ast.Subscript) and len(_keys(base)) == 1:
        inner = base.slice
        if isinstance(inner, (ast.Slice, ast.Tuple)) or any(
            isinstance(key, ast.Slice) for key in keys
        ):
            break
        keys = [inner, *keys]
        base = base.value
    return base, keys


def _array_of(value: Value) -> Value:
    """A parameter of a module as the array that it is."""
    if isinstance(value, Object) and value.cls == "torch.nn.Parameter":
        held = value.fact("0") if isinstance(value.fact("data"), Absent) else value.fact("data")
        return held if isinstance(held, Tensor) else Unknown("call")
    return value


def parameter_array(value: Value) -> Tensor | None:
    """The array of a parameter of a module, which may be moved at any time."""
    array = _array_of(value)
    if array is value or not isinstance(array, Tensor):
        return None
    return replace(array, devices=frozenset())


def _keys(node: ast.Subscript) -> list[ast.expr]:
    if isinstance(node.slice, ast.Tuple) and node.slice.elts:
        return list(node.slice.elts)
    return [node.slice]


def _bound(value: Value) -> int | Literal[False] | None:
    """A slice bound; ``False`` where it is not known."""
    if isinstance(value, Const) and (value.value is None or type(value.value) is int):
        return value.value
    return False


def _under_key(mapping: Mapping, key: Value | SliceValue) -> Value:
    if isinstance(key, Const) and isinstance(key.value, str):
        value = mapping.get(key.value)
        return UNKNOWN if isinstance(value, Absent) else value
    return join([v for _, v in mapping.items]) if mapping.items else UNKNOWN


def _key_deps(items: tuple[Value | SliceValue, ...]) -> frozenset[Symbol]:
    """The symbols that the positions of a subscript depend on."""
    return frozenset[Symbol]().union(*(deps_of(i) for i in items if not isinstance(i, SliceValue)))


def _gathers(items: tuple[Value | SliceValue, ...]) -> bool:
    """Whether a subscript by something computed copies elements together."""
    return any(
        isinstance(item, Tensor) or (isinstance(item, Unknown) and item.origin == "call")
        for item in items
    )


def _picks_element(tensor: Tensor, items: tuple[Value | SliceValue, ...]) -> bool:
    """Whether a subscript gives one number; its position tells it from others."""
    rank = tensor.layout.rank
    if any(isinstance(item, (SliceValue, Tensor, Sequence)) for item in items):
        return False
    return len(items) == rank or (rank is None and len(items) > 1)


def key_values(items: tuple[Value | SliceValue, ...]) -> tuple[Value, ...]:
    """The keys of a subscript as values: a slice as the sequence of its bounds."""
    return tuple(
        Sequence("slice", (item.start, item.stop, item.step))
        if isinstance(item, SliceValue)
        else item
        for item in items
    )


def is_nothing(value: Value) -> bool:
    """A value whose attributes and items a running program never asks for."""
    return isinstance(value, Absent) or (isinstance(value, Const) and value.value is None)
