"""Expressions: from syntax to abstract values."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from dataclasses import replace

from memlint.analysis import knowledge
from memlint.analysis.interpreter.access import Access
from memlint.analysis.interpreter.arithmetic import has_short_text, number_of, numbered_device
from memlint.analysis.interpreter.machine import UNKNOWN, OutOfBudgetError, text_of
from memlint.analysis.knowledge import Args
from memlint.analysis.linear import linear, of_linear, scale
from memlint.analysis.values import (
    LONGEST_TEXT,
    WITH_CUDA,
    WITHOUT_CUDA,
    Alternatives,
    Const,
    Function,
    Made,
    Mapping,
    Ref,
    Sequence,
    Symbol,
    Tensor,
    Unknown,
    Value,
    alternatives,
    deps_of,
    devices_of,
    join,
    loaders_of,
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


def operator_name(op: ast.AST) -> str:
    """The name of an operator in :class:`~memlint.analysis.events.Called` events."""
    return f"operator.{OPERATORS.get(type(op), type(op).__name__.lower())}"


_OPPOSITE = {WITH_CUDA: WITHOUT_CUDA, WITHOUT_CUDA: WITH_CUDA}
KNOWN_ITEMS = 16
BUILTINS = frozenset(dir(builtins))


class Expressions(Access):
    """Evaluation of expressions."""

    def evaluate(self, node: ast.expr) -> Value:
        self.spent += 1
        if self.spent > self.budget:
            raise OutOfBudgetError
        handler = self._HANDLERS.get(node.__class__)
        return handler(self, node) if handler is not None else UNKNOWN

    # Atoms

    def _constant(self, node: ast.Constant) -> Value:
        return UNKNOWN if node.value is Ellipsis else Const(node.value)

    def _name(self, node: ast.Name) -> Value:
        value = self.read(node.id)
        if value is not None:
            return value
        if node.id in BUILTINS:
            return Ref(f"builtins.{node.id}")
        # What is bound later, or elsewhere (``from losses import *``).
        self.frame.missed = True
        return UNKNOWN

    def _formatted(self, node: ast.JoinedStr) -> Value:
        text = ""
        parts = [
            self._formatted_part(part) if isinstance(part, ast.FormattedValue) else None
            for part in node.values
        ]
        for part, value in zip(node.values, parts, strict=True):
            if isinstance(part, ast.Constant):
                text += str(part.value)
            elif isinstance(value, Const) and has_short_text(value.value):
                text += str(value.value)
            else:
                return numbered_device(text) or UNKNOWN
        return Const(text) if len(text) <= LONGEST_TEXT else UNKNOWN

    def _formatted_part(self, part: ast.FormattedValue) -> Value:
        value = self.evaluate(part.value)
        return self.operated("builtins.format", part.value, (value,), value)

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
        if isinstance(node.op, ast.Mod) and isinstance(left, Const):
            self._note_formatted(left, right, node.right)
        value = self.binary(type(node.op), left, right, node)
        value = self.operated(operator_name(node.op), node, (left, right), value)
        if self.frame.compiled is not None and isinstance(value, Unknown):
            if value.made is None:
                # Of numbers too it is asked how an index was computed.
                value = replace(value, made=Made(operator_name(node.op), node, (left, right)))
            return self._quotient(node, value)
        return value

    def _note_formatted(self, text: Const, given: Value, node: ast.expr) -> None:
        """``"%d %.3f" % (step, loss)``."""
        if not isinstance(text.value, str):
            return
        if isinstance(given, Sequence) and isinstance(node, ast.Tuple):
            if given.items is not None and len(given.items) == len(node.elts):
                for part, value in zip(node.elts, given.items, strict=True):
                    self.operated("builtins.format", part, (value,), value)
        else:
            self.operated("builtins.format", node, (given,), given)

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
        number = number_of(op, left, right)
        if number is not None:
            return number
        match left, right:
            case Const(str() as a), Const(str() as b) if op is ast.Add:
                return Const(a + b) if len(a) + len(b) <= LONGEST_TEXT else UNKNOWN
            case Const(str() as text), _ if op in (ast.Add, ast.Mod):
                return numbered_device(text) or Unknown(deps=deps_of(right))
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
        arrays = [v for v in operands if isinstance(v, Tensor)]
        if all(map(_may_be_number, arrays)) and any(isinstance(v, Unknown) for v in operands):
            # A number of NumPy's beside a tensor of torch gives a tensor of torch.
            return Unknown(deps=frozenset().union(*map(deps_of, operands)))
        lib = arrays[0].lib if arrays else ""
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
        if isinstance(node.op, ast.Not):
            self.note_truth(node.operand, value)
        return self.operated(operator_name(node.op), node, (value,), self._unary_of(node, value))

    def _unary_of(self, node: ast.UnaryOp, value: Value) -> Value:
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
        raise NotImplementedError

    def _compare(self, node: ast.Compare) -> Value:
        left = self.evaluate(node.left)
        right = [self.evaluate(v) for v in node.comparators]
        value = self._compared(node, left, right)
        return self.operated(operator_name(node.ops[0]), node, (left, *right), value)

    def _compared(self, node: ast.Compare, left: Value, right: list[Value]) -> Value:
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
        self.note_yield()
        self.frame.yields.append(self.evaluate(node.value) if node.value else Const(None))
        return UNKNOWN

    def _yield_from(self, node: ast.YieldFrom) -> Value:
        self.frame.yields.append(self.element(self.evaluate(node.value)))
        return UNKNOWN

    def _lambda(self, node: ast.Lambda) -> Value:
        return Function(node, self.scope, None, "<lambda>")

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        raise NotImplementedError

    def _dict_comprehension(self, node: ast.DictComp) -> Value:
        raise NotImplementedError

    def _call(self, node: ast.Call) -> Value:
        raise NotImplementedError

    _HANDLERS: dict[type[ast.AST], Callable[..., Value]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # The methods that the last of the parts has, so that none is looked up for each node.
        cls._HANDLERS = {kind: getattr(cls, one.__name__) for kind, one in cls._HANDLERS.items()}


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
    ast.IfExp: Expressions._conditional,
    ast.NamedExpr: Expressions._walrus,
    ast.Starred: Expressions._starred,
    ast.Await: Expressions._await,
    ast.Yield: Expressions._yield,
    ast.YieldFrom: Expressions._yield_from,
    ast.Lambda: Expressions._lambda,
    ast.Attribute: Expressions._attribute,
    ast.Subscript: Expressions._subscript,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.DictComp: Expressions._dict_comprehension,
    ast.Call: Expressions._call,
}


def _may_be_number(array: Tensor) -> bool:
    return array.lib == "numpy" and not array.layout.rank


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
