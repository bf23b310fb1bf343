"""Simple statements: what is assigned, returned, raised, asserted."""

from __future__ import annotations

import ast
from dataclasses import replace

from memlint.analysis.axes import dense, give_rank, with_sizes
from memlint.analysis.interpreter.access import key_values
from memlint.analysis.interpreter.calls import Calls
from memlint.analysis.interpreter.expressions import operator_name
from memlint.analysis.interpreter.machine import UNKNOWN
from memlint.analysis.knowledge import Args, SliceValue
from memlint.analysis.knowledge.numbers import size_of
from memlint.analysis.values import (
    Absent,
    Alternatives,
    Bound,
    Const,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
    Value,
    alternatives,
    join,
    plain,
    possible_graphs,
    with_made,
)

# A context manager that is held by one worker at a time, whatever it is made by.


# Modules whose results are row-major.
_DENSE_LAYERS = frozenset({f"torch.nn.{kind}" for kind in ("Linear", "Embedding", "LayerNorm")})


def _of_dense_layer(value: Unknown) -> bool:
    """Whether a value is the result of a library module that gives row-major tensors."""
    made = value.made
    if made is None or made.name != "call" or not made.inputs:
        return False
    return isinstance(made.inputs[0], Object) and made.inputs[0].cls in _DENSE_LAYERS


class Assignments(Calls):
    """Execution of statements that hold no others."""

    statement: ast.stmt
    targets: dict[int, ast.expr]

    def _expression(self, node: ast.Expr) -> None:
        self.evaluate(node.value)

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1 and isinstance(node.targets[0], (ast.Name, ast.Attribute)):
            self.targets[id(node.value)] = node.targets[0]
        if self._parallel(node):
            return
        value = self.evaluate(node.value)
        for target in node.targets:
            self._learn_rank(target, node.value, value)
            self.assign(target, value)

    def _learn_rank(self, target: ast.expr, node: ast.expr, value: Value) -> None:
        """``b, t, c = x.shape`` tells how many axes an array has, and what their lengths are."""
        if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(
            value, (Object, Sequence)
        ):
            return
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="shape"):
                fewest = 3  # data frames have two axes
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="size"), args=[]):
                fewest = 2
            case _:
                return
        count = len(target.elts)
        array = self.scope.vars.get(name)
        starred = any(isinstance(one, ast.Starred) for one in target.elts)
        if starred or count < fewest:
            return
        if isinstance(array, Tensor):
            self.scope.vars[name] = self._with_lengths(array, value, count)
        elif isinstance(array, Unknown) and isinstance(value, Object):
            self._learn_shape(name, array, value, count)

    def _with_lengths(self, array: Tensor, shape: Value, count: int) -> Tensor:
        """A tensor whose lengths, or some of them, are known by nothing but their names."""
        layout = give_rank(array.layout, count) if array.layout.loose is not None else array.layout
        if layout.axes is None or len(layout.axes) != count:
            return array
        if any(axis.step is None for axis in layout.axes):
            return array  # that it has gaps is worth more than how long it is
        named = [size_of(self._unpacked(shape, axis)) for axis in range(count)]
        sizes = [
            name if axis.size is None else axis.size
            for axis, name in zip(layout.axes, named, strict=True)
        ]
        return replace(array, layout=with_sizes(layout, sizes))

    def _learn_shape(self, name: str, array: Unknown, shape: Object, count: int) -> None:
        if shape.cls != "memlint.shape":
            return
        if array.origin not in ("parameter", "torch", "numpy") and not _of_dense_layer(array):
            return
        sizes = [size_of(self._unpacked(shape, axis)) for axis in range(count)]
        tensor = replace(self.assumed_tensor(array), layout=dense(sizes))
        self.scope.vars[name] = tensor if array.made is None else with_made(tensor, array.made)

    def _parallel(self, node: ast.Assign) -> bool:
        """``a, b = x, y``: each target gets its own value."""
        target = node.targets[0]
        if (
            len(node.targets) != 1
            or not isinstance(target, ast.Tuple)
            or not isinstance(node.value, ast.Tuple)
            or len(target.elts) != len(node.value.elts)
            or any(isinstance(e, ast.Starred) for e in (*target.elts, *node.value.elts))
        ):
            return False
        for one, value in zip(target.elts, node.value.elts, strict=True):
            if isinstance(one, ast.Name):
                self.targets[id(value)] = one
        values = [self.evaluate(v) for v in node.value.elts]
        for one, result in zip(target.elts, values, strict=True):
            self.assign(one, result)
        return True

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            if isinstance(node.target, (ast.Name, ast.Attribute)):
                self.targets[id(node.value)] = node.target
            self.assign(node.target, self.evaluate(node.value))

    def _augmented(self, node: ast.AugAssign) -> None:
        value = self.evaluate(node.value)
        target = node.target
        if isinstance(target, ast.Subscript):
            base, items = self.target_subscript(target, "update", value)
            name = f"operator.i{operator_name(node.op)[9:]}"
            self.operated(name, node, (base, value), UNKNOWN, key_values(items))
            self._store_item(base, items, UNKNOWN)
            return
        old = self.evaluate(target)
        new = self.binary(type(node.op), old, value, node)
        if isinstance(old, Tensor):
            new = old
        new = self.operated(f"operator.i{operator_name(node.op)[9:]}", node, (old, value), new)
        if isinstance(old, Sequence) and possible_graphs(value):
            self.operation("operator.iadd", node, None, Args((old, value), {}, False), new)
        if isinstance(old, (Mapping, Sequence)) and old.site is not None:
            if isinstance(new, Mapping):
                new = Mapping(new.items, new.complete, old.site)
            self.replace_object(old.site, new)
        self.assign(target, new)

    def assign(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name():
                self.bind(target.id, value)
            case ast.Tuple() | ast.List():
                self._unpack(target.elts, value)
            case ast.Starred():
                self.assign(target.value, Sequence("list", None, value))
            case ast.Attribute():
                self._assign_attribute(target, value)
            case ast.Subscript():
                base, items = self.target_subscript(target, "store", value)
                self.operated("operator.setitem", target, (value, base), UNKNOWN, key_values(items))
                self._store_item(base, items, value)

    def _assign_attribute(self, target: ast.Attribute, value: Value) -> None:
        holder = self.evaluate(target.value)
        self.operated("setattr", target, (value, holder), UNKNOWN)
        for base in alternatives(holder):
            if isinstance(base, Instance):
                strong = self.frame.name.endswith("__init__") and self.frame.receiver == base
                self.heap.put(base, target.attr, value, strong=strong)
            if isinstance(base, (Instance, Object)):
                self.store_on_object(base, target.attr, value)
            elif isinstance(base, (Unknown, Bound)):
                self.store_on_unknown(target, value)

    def store_on_object(self, base: Object | Instance, name: str, value: Value) -> None:
        """``base.name = value``, or under an empty name ``base[key] = value``."""
        raise NotImplementedError

    def store_on_unknown(self, target: ast.Attribute, value: Value) -> None:
        raise NotImplementedError

    def _store_item(self, base: Value, items: tuple[Value | SliceValue, ...], value: Value) -> None:
        key = items[0] if items else UNKNOWN
        if isinstance(base, Mapping) and base.site is not None:
            if isinstance(key, Const) and isinstance(key.value, str):
                new = {**dict(base.items), key.value: value}
                self.replace_object(
                    base.site, Mapping(tuple(new.items()), base.complete, base.site)
                )
            else:
                grown = {**dict(base.items), "": join((base.get(""), value))}
                self.replace_object(base.site, Mapping(tuple(grown.items()), False, base.site))
        elif isinstance(base, Sequence) and base.site is not None:
            element = join((self.element(base), value))
            self.replace_object(base.site, Sequence(base.kind, None, element, base.site))
        elif isinstance(base, (Instance, Object)):
            self.store_on_object(base, "", value)

    def _unpack(self, targets: list[ast.expr], value: Value) -> None:
        star = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
        for index, target in enumerate(targets):
            if star is None or index < star:
                self.assign(target, self._unpacked(value, index))
            elif isinstance(value, Sequence) and value.items is not None:
                after = len(targets) - index - 1
                items = value.items[index : len(value.items) - after if index == star else None]
                self.assign(target, join(items) if index == star else self._from_end(value, after))
            else:
                self.assign(target, self.element(value))

    def _from_end(self, value: Sequence, after: int) -> Value:
        items = value.items or ()
        return items[-after - 1] if after < len(items) else UNKNOWN

    def _unpacked(self, value: Value, index: int) -> Value:
        value = plain(value)
        match value:
            case Alternatives(values):
                return join(self._unpacked(v, index) for v in values if not isinstance(v, Absent))
            case Sequence(items=items) if items is not None:
                return items[index] if index < len(items) else UNKNOWN
            case Object(cls="memlint.shape"):
                text = value.fact("of")
                array = value.fact("array")
                return self.size_symbol(str(getattr(text, "value", "")), index, array)
            case Unknown():
                return value
        return self.element(value)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.scope.owner(target.id).vars.pop(target.id, None)

    def _return(self, node: ast.Return) -> None:
        value = self.evaluate(node.value) if node.value is not None else Const(None)
        self.frame.returns.append(value)
        self.frame.live = False

    def _raise(self, node: ast.Raise) -> None:
        if node.exc is not None:
            self.evaluate(node.exc)
        self.frame.live = False

    def _refine(self, test: ast.expr, *, truth: bool, certain: bool = False) -> None:
        raise NotImplementedError

    def _globals(self, node: ast.Global) -> None:
        self.scope.globals.update(node.names)

    def _nonlocals(self, node: ast.Nonlocal) -> None:
        self.scope.nonlocals.update(node.names)

    def _break(self, node: ast.Break) -> None:
        if self.frame.loops:
            self.frame.loops[-1].breaks.append(dict(self.scope.vars))
        self.frame.live = False

    def _continue(self, node: ast.Continue) -> None:
        if self.frame.loops:
            self.frame.loops[-1].continues.append(dict(self.scope.vars))
        self.frame.live = False
