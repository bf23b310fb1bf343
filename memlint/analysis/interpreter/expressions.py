"""Expressions: from syntax to abstract values."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Literal

from memlint.analysis import knowledge
from memlint.analysis.axes import dense_any_rank
from memlint.analysis.interpreter.machine import UNKNOWN, Machine, dotted, text_of
from memlint.analysis.knowledge import Args, SliceValue
from memlint.analysis.values import (
    LARGEST,
    LONGEST_TEXT,
    WITH_CUDA,
    WITHOUT_CUDA,
    Absent,
    Alternatives,
    Bound,
    Class,
    Const,
    Function,
    Instance,
    Linear,
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
    add,
    alternatives,
    deps_of,
    devices_of,
    join,
    linear,
    loaders_of,
    of_linear,
    plain,
    scale,
    symbol_value,
)

# What the operators are called in the tables of array functions.
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "true_divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "bitwise_left_shift",
    ast.RShift: "bitwise_right_shift",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.USub: "negative",
    ast.Invert: "bitwise_not",
}

KNOWN_ITEMS = 16
BUILTINS = frozenset(dir(builtins))
OWN_TRANSPOSE = re.compile(
    r"^\s*(?:[\w.]+, *)*[\w.]+\.m?T *(?:, *[\w.]+)*(?: *:[^=\n]*)? *=[^=]", re.MULTILINE
)
INTERFACES = ("__cuda_array_interface__", "__array_interface__")


class Expressions(Machine):
    """Evaluation of expressions."""

    def evaluate(self, node: ast.expr) -> Value:
        self.spend()
        handler = self._HANDLERS.get(type(node))
        return handler(self, node) if handler is not None else UNKNOWN

    # Atoms

    def _constant(self, node: ast.Constant) -> Value:
        return UNKNOWN if node.value is Ellipsis else Const(node.value)

    def _name(self, node: ast.Name) -> Value:
        value = self.read(node.id)
        if value is not None:
            return value
        if node.id not in BUILTINS:
            self.frame.missed = True
        return Ref(f"builtins.{node.id}")

    def _formatted(self, node: ast.JoinedStr) -> Value:
        text = ""
        for part in node.values:
            value = self.evaluate(part.value) if isinstance(part, ast.FormattedValue) else None
            if isinstance(part, ast.Constant):
                text += str(part.value)
            elif isinstance(value, Const) and _has_short_text(value.value):
                text += str(value.value)
            else:
                # A device string is known by its head: f"cuda:{rank}".
                return Const(f"{text}0") if text.endswith(":") else UNKNOWN
        return Const(text) if len(text) <= LONGEST_TEXT else UNKNOWN

    def _tuple(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        kind = type(node).__name__.lower()
        site = None if kind == "tuple" else self.sites.at(node)
        items: list[Value] = []
        for item in node.elts:
            if isinstance(item, ast.Starred):
                spread = self.evaluate(item.value)
                if not isinstance(spread, Sequence) or spread.items is None:
                    rest = [self.evaluate(i) for i in node.elts if not isinstance(i, ast.Starred)]
                    return Sequence(kind, None, join([self.element(spread), *rest]), site)
                items.extend(spread.items)
            else:
                items.append(self.evaluate(item))
        return Sequence(kind, tuple(items), UNKNOWN, site)

    def _dict(self, node: ast.Dict) -> Value:
        items: dict[str, Value] = {}
        complete = True
        for key, value_node in zip(node.keys, node.values, strict=True):
            value = self.evaluate(value_node)
            if key is None:
                for one in alternatives(value):
                    if isinstance(one, Mapping):
                        items.update(one.items)
                        complete = complete and one.complete
                    else:
                        complete = False
                continue
            name = self.evaluate(key)
            if isinstance(name, Const) and isinstance(name.value, str):
                items[name.value] = value
            else:
                complete = False
                items.setdefault("", join((items.get("", value), value)))
        return Mapping(tuple(items.items()), complete, self.sites.at(node))

    # Operators

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        value = self.binary(type(node.op), left, right, node)
        if self.frame.compiled is not None and isinstance(value, Unknown):
            return self._quotient(node, value)
        return value

    def _quotient(self, node: ast.BinOp, value: Unknown) -> Unknown:
        """Keep by which name a number was divided: parts of work are cut out in that way."""
        if isinstance(node.op, (ast.FloorDiv, ast.Div)) and isinstance(
            node.right, (ast.Name, ast.Attribute)
        ):
            symbol = Symbol("quotient", text_of(node.right), self.sites.at(self.tree, "quotient"))
            return replace(value, deps=value.deps | {symbol})
        return value

    def binary(self, op: type[ast.operator], left: Value, right: Value, node: ast.AST) -> Value:
        """The value of ``left op right``."""
        if isinstance(left, Alternatives) or isinstance(right, Alternatives):
            pairs = [(a, b) for a in alternatives(left) for b in alternatives(right)]
            if len(pairs) <= KNOWN_ITEMS:
                return join(self.binary(op, a, b, node) for a, b in pairs)
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            return self._array_operation(OPERATORS.get(op, ""), (left, right), node)
        number = _number(op, left, right)
        if number is not None:
            return number
        match left, right:
            case Const(str() as a), Const(str() as b) if op is ast.Add:
                return Const(a + b) if len(a) + len(b) <= LONGEST_TEXT else UNKNOWN
            case Mapping(), Mapping() if op is ast.BitOr:
                items = {**dict(left.items), **dict(right.items)}
                return Mapping(
                    tuple(items.items()), left.complete and right.complete, self.sites.at(node)
                )
            case Sequence(), Sequence() if op is ast.Add:
                return self._concatenate(left, right)
            case Sequence(items=(one,)), _ if op is ast.Mult:
                return Sequence(left.kind, None, one, left.site)
        return Unknown(
            deps=deps_of(left) | deps_of(right),
            devices=devices_of(left) | devices_of(right),
        )

    def _concatenate(self, left: Sequence, right: Sequence) -> Sequence:
        if left.items is not None and right.items is not None:
            return Sequence(left.kind, left.items + right.items, UNKNOWN, left.site)
        element = join((self.element(left), self.element(right)))
        return Sequence(left.kind, None, element, left.site)

    def _array_operation(self, name: str, operands: tuple[Value, ...], node: ast.AST) -> Value:
        lib = next((v.lib for v in operands if isinstance(v, Tensor)), "")
        args = Args(operands, {}, False)
        result = knowledge.call_function(
            f"{lib or 'torch'}.{name}", args, node, self.sites.at(node)
        )
        if result is not None:
            return result
        return Unknown(
            deps=frozenset().union(*(deps_of(v) for v in operands)),
        )

    def _unary(self, node: ast.UnaryOp) -> Value:
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.USub):
            form = linear(value)
            if form is not None:
                return of_linear(scale(form, -1))
            if isinstance(value, Const) and isinstance(value.value, float):
                return Const(-value.value)
        if isinstance(value, Tensor):
            return self._array_operation(OPERATORS.get(type(node.op), ""), (value,), node)
        if isinstance(node.op, ast.Not):
            if isinstance(value, Const):
                return Const(not value.value)
            return Unknown(_OPPOSITE.get(cuda_condition(value), ""), deps_of(value))
        return Unknown(deps=deps_of(value))

    def _boolean(self, node: ast.BoolOp) -> Value:
        values = [self.evaluate(v) for v in node.values]
        if isinstance(node.op, ast.Or):
            # `x or default`: what is falsy never comes through, except as the last operand.
            values = [v for v in values[:-1] if not _falsy(v)] + values[-1:]
        return join(values)

    def _compare(self, node: ast.Compare) -> Value:
        left = self.evaluate(node.left)
        right = [self.evaluate(v) for v in node.comparators]
        if isinstance(left, Tensor) and len(right) == 1:
            return self._array_operation(OPERATORS.get(type(node.ops[0]), ""), (left, *right), node)
        deps = frozenset().union(deps_of(left), *(deps_of(v) for v in right))
        asked = _asked_device(node.ops[0], left, right[0])
        return Unknown("call" if not asked and loaders_of(left) else asked, deps)

    def _conditional(self, node: ast.IfExp) -> Value:
        raise NotImplementedError

    def _walrus(self, node: ast.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        self.scope.beyond_comprehensions().vars[node.target.id] = value
        return value

    def _starred(self, node: ast.Starred) -> Value:
        return self.evaluate(node.value)

    def _await(self, node: ast.Await) -> Value:
        return self.evaluate(node.value)

    def _yield(self, node: ast.Yield) -> Value:
        self.frame.yields.append(self.evaluate(node.value) if node.value else Const(None))
        return UNKNOWN

    def _yield_from(self, node: ast.YieldFrom) -> Value:
        self.frame.yields.append(self.element(self.evaluate(node.value)))
        return UNKNOWN

    def _lambda(self, node: ast.Lambda) -> Value:
        return Function(node, self.scope, None, "<lambda>")

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
                return Ref(dotted(module, name))
            case Instance():
                return self.instance_attribute(base, name, node)
            case Class():
                found = self.class_attribute(base, name)
                return found if found is not None else Bound(base, name)
            case Tensor():
                found = knowledge.attribute(base, name, node)
                if found is not None:
                    return found
                return self._array_attribute(base, name, node)
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
        if name in ("T", "mT") and not self.has_own_transpose:
            return knowledge.attribute(self.assumed_tensor(base), name, node) or UNKNOWN
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
        """An unknown object whose use shows it to be an array: dense by the one assumption."""
        lib = base.origin if base.origin in ("torch", "numpy", "cupy") else ""
        return Tensor(
            lib,
            dense_any_rank(),
            devices=base.devices,
            assumed=True,
            loaders=base.loaders,
        )

    def shape_of(self, node: ast.expr, base: Value) -> Value:
        """The shape of an array whose rank may not be known."""
        if isinstance(base, Tensor) and base.sizes is not None:
            items = tuple(
                Const(s)
                if isinstance(s, int)
                else s
                if isinstance(s, Linear)
                else self.size_symbol(text_of(node), axis)
                for axis, s in enumerate(base.sizes)
            )
            return Sequence("tuple", items)
        return Object(
            "memlint.shape", self.sites.at(node, "shape"), (("of", Const(text_of(node))),)
        )

    def instance_attribute(self, instance: Instance, name: str, node: ast.AST) -> Value:
        raise NotImplementedError

    def class_attribute(self, cls: Class, name: str) -> Value | None:
        raise NotImplementedError

    def object_attribute(self, base: Object, name: str, node: ast.AST) -> Value:
        raise NotImplementedError

    # Subscripts

    def _subscript(self, node: ast.Subscript) -> Value:
        base_node, keys = _chain(node)
        base = self.evaluate(base_node)
        items = tuple(self._subscript_item(key) for key in keys)
        self.note_access(node, base_node, base, items, "load")
        return self._subscripted(base, base_node, node, items)

    def note_access(
        self,
        node: ast.AST,
        base_node: ast.expr,
        base: Value,
        items: tuple[Value | SliceValue, ...],
        mode: str,
    ) -> None:
        raise NotImplementedError

    def target_subscript(
        self, node: ast.Subscript, mode: str
    ) -> tuple[Value, tuple[Value | SliceValue, ...]]:
        """Evaluate a subscript that is assigned to: what is indexed, and with what."""
        base_node, keys = _chain(node)
        base = self.evaluate(base_node)
        items = tuple(self._subscript_item(key) for key in keys)
        self.note_access(node, base_node, base, items, mode)
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
                    return self.size_symbol(str(getattr(text, "value", "")), axis.value)
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

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        raise NotImplementedError

    def _dict_comprehension(self, node: ast.DictComp) -> Value:
        raise NotImplementedError

    def _call(self, node: ast.Call) -> Value:
        raise NotImplementedError

    _HANDLERS: dict[type[ast.AST], Callable[..., Value]] = {}


Expressions._HANDLERS = {
    ast.Constant: Expressions._constant,
    ast.Name: Expressions._name,
    ast.JoinedStr: Expressions._formatted,
    ast.Tuple: Expressions._tuple,
    ast.List: Expressions._tuple,
    ast.Set: Expressions._tuple,
    ast.Dict: Expressions._dict,
    ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary,
    ast.BoolOp: Expressions._boolean,
    ast.Compare: Expressions._compare,
    ast.IfExp: lambda self, node: self._conditional(node),
    ast.NamedExpr: Expressions._walrus,
    ast.Starred: Expressions._starred,
    ast.Await: Expressions._await,
    ast.Yield: Expressions._yield,
    ast.YieldFrom: Expressions._yield_from,
    ast.Lambda: Expressions._lambda,
    ast.Attribute: Expressions._attribute,
    ast.Subscript: Expressions._subscript,
    ast.ListComp: lambda self, node: self._comprehension(node),
    ast.SetComp: lambda self, node: self._comprehension(node),
    ast.GeneratorExp: lambda self, node: self._comprehension(node),
    ast.DictComp: lambda self, node: self._dict_comprehension(node),
    ast.Call: lambda self, node: self._call(node),
}


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


_OPPOSITE = {WITH_CUDA: WITHOUT_CUDA, WITHOUT_CUDA: WITH_CUDA}


def cuda_condition(value: Value) -> str:
    """Whether a condition holds only with CUDA, or only without; empty for all others."""
    for one in alternatives(value):
        if isinstance(one, Unknown) and one.origin in _OPPOSITE:
            return one.origin
    return ""


def _asked_device(op: ast.cmpop, left: Value, right: Value) -> str:
    """``device.type == "cuda"`` and its like, as a condition."""
    named = [side.value for side in (left, right) if isinstance(side, Const)]
    if not any(name in ("cuda", "cpu") for name in named):
        return ""
    holds = isinstance(op, (ast.Eq, ast.In, ast.Is))
    return WITH_CUDA if holds == ("cuda" in named) else WITHOUT_CUDA


def is_nothing(value: Value) -> bool:
    """A value whose attributes and items a running program never asks for."""
    return isinstance(value, Absent) or (isinstance(value, Const) and value.value is None)


def _has_short_text(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT
    return isinstance(value, int) and abs(value) <= LARGEST


def _falsy(value: Value) -> bool:
    return isinstance(value, Const) and not value.value


def _number(op: type[ast.operator], left: Value, right: Value) -> Value | None:
    """Integer arithmetic on linear forms, where the result is one; floats are folded."""
    a, b = linear(left), linear(right)
    if a is None or b is None:
        return _folded(op, left, right)
    if op is ast.Add:
        return of_linear(add(a, b))
    if op is ast.Sub:
        return of_linear(add(a, b, -1))
    if op is ast.Mult:
        if not a.terms:
            return of_linear(scale(b, a.offset))
        if not b.terms:
            return of_linear(scale(a, b.offset))
    if not a.terms and not b.terms:
        return _folded(op, Const(a.offset), Const(b.offset))
    return None


_FOLDS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_BIG = 10**12


def _folded(op: type[ast.operator], left: Value, right: Value) -> Value | None:
    if not isinstance(left, Const) or not isinstance(right, Const):
        return None
    a, b = left.value, right.value
    if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
        return None
    if abs(a) > _BIG or abs(b) > _BIG:
        return None
    if op in (ast.LShift, ast.Pow) and type(a) is int and type(b) is int and 0 <= b <= 64:
        return Const(a << b if op is ast.LShift else a**b)
    fold = _FOLDS.get(op)
    if fold is None or (b == 0 and op in (ast.Div, ast.FloorDiv, ast.Mod)):
        return None
    return Const(fold(a, b))
