"""A small evaluator: expressions over arrays, by the tables instead of by running them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from memlint.analysis import knowledge
from memlint.analysis.axes import Axis, Layout
from memlint.analysis.knowledge import Args, SliceValue
from memlint.analysis.values import (
    Bound,
    Const,
    Ref,
    Sequence,
    Site,
    Tensor,
    Unknown,
    Value,
)

MODULES = {"torch": "torch", "np": "numpy", "einops": "einops"}
OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.MatMult: "matmul",
}


@dataclass
class Evaluator:
    """Evaluates an expression's syntax tree to an abstract value."""

    names: dict[str, Value] = field(default_factory=dict)

    def text(self, expression: str) -> Value:
        return self.value(ast.parse(expression, mode="eval").body)

    def value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=value):
                return Const("..." if value is ... else value)
            case ast.Name(id=name):
                return self.names[name] if name in self.names else Ref(MODULES[name])
            case ast.Attribute(value=base, attr=attr):
                return self.attribute(self.value(base), attr, node)
            case ast.Call():
                return self.call(node)
            case ast.Tuple() | ast.List():
                items = self.spread(node.elts)
                return Sequence(type(node).__name__.lower(), items)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
                return Const(-value)
            case ast.BinOp(left=left, op=op, right=right):
                operands = (self.value(left), self.value(right))
                return self.operation(OPERATORS[type(op)], operands, node)
            case ast.Compare(left=left, ops=[ast.Gt()], comparators=[right]):
                operands = (self.value(left), self.value(right))
                return self.operation("greater", operands, node)
            case ast.Subscript(value=base, slice=key):
                return self.subscript(self.value(base), key, node)
        raise NotImplementedError(ast.dump(node))

    def spread(self, nodes: list[ast.expr]) -> tuple[Value, ...] | None:
        items: list[Value] = []
        for one in nodes:
            if isinstance(one, ast.Starred):
                inner = self.value(one.value)
                if not isinstance(inner, Sequence) or inner.items is None:
                    return None
                items.extend(inner.items)
            else:
                items.append(self.value(one))
        return tuple(items)

    def attribute(self, base: Value, name: str, node: ast.AST) -> Value:
        if isinstance(base, Ref):
            return Ref(f"{base.name}.{name}")
        if isinstance(base, Tensor):
            found = knowledge.attribute(base, name, node)
            if name == "shape":
                return found if found is not None else Unknown()
            return found if found is not None else Bound(base, name)
        return Bound(base, name)

    def call(self, node: ast.Call) -> Value:
        callee = self.value(node.func)
        positional = self.spread(node.args)
        keywords = {k.arg: self.value(k.value) for k in node.keywords if k.arg}
        args = Args(positional or (), keywords, positional is None)
        if isinstance(callee, Ref):
            name = knowledge.canonical(callee.name)
            found = knowledge.call_function(name, args, node, Site(node, name))
        elif isinstance(callee, Bound) and isinstance(callee.receiver, Tensor):
            site = Site(node, callee.name)
            found = knowledge.call_method(callee.receiver, callee.name, args, node, site)
        else:
            found = None
        return found if found is not None else Unknown()

    def operation(self, name: str, operands: tuple[Value, ...], node: ast.AST) -> Value:
        lib = next((v.lib for v in operands if isinstance(v, Tensor) and v.lib), "torch")
        if lib == "numpy":
            name = {"sub": "subtract", "mul": "multiply"}.get(name, name)
        found = knowledge.call_function(f"{lib}.{name}", Args(operands), node, Site(node, name))
        return found if found is not None else Unknown()

    def subscript(self, base: Value, key: ast.expr, node: ast.AST) -> Value:
        keys = key.elts if isinstance(key, ast.Tuple) else [key]
        items = tuple(self.item(one) for one in keys)
        if isinstance(base, Tensor):
            return knowledge.subscript(base, items, node)
        if isinstance(base, Sequence) and base.items and isinstance(items[0], Const):
            return base.items[items[0].value]
        return Unknown()

    def item(self, node: ast.expr) -> Value | SliceValue:
        if isinstance(node, ast.Slice):
            bounds = (node.lower, node.upper, node.step)
            return SliceValue(*(Const(None) if b is None else self.value(b) for b in bounds))
        return self.value(node)


def hidden(layout: Layout) -> Layout:
    """The same layout with all sizes but 1 forgotten."""
    if layout.axes is None:
        return layout
    axes = tuple(
        Axis(axis.size if axis.size == 1 else None, axis.memory, axis.step, axis.whole)
        for axis in layout.axes
    )
    return Layout(axes, tuple(size if size == 1 else None for size in layout.memory))
