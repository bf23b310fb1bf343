"""The functions of a program's file, and what their expressions call, in the order of evaluation.

A profiler names functions by their first line, and tells what they called, not where.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from memlint.kineto.frames import Call, Called, Function
from memlint.source.statements import MODULE

Block = tuple[int, ...]
"""A run of expressions that are evaluated one after the other, by the branches and loops around
it: each of them has a number, loops a negative one, odd where ``break`` or ``continue`` may cut a
turn of them short."""


def is_loop(number: int) -> bool:
    """Whether a number of a block is that of a loop."""
    return number < 0


def is_cut(number: int) -> bool:
    """Whether it is that of a loop whose turns may be cut short."""
    return number < 0 and number % 2 == 1


class Use(Enum):
    """What is done with an expression: it is evaluated, its truth is asked for, or its next
    element."""

    VALUE = "value"
    TRUTH = "truth"
    ITERATION = "iteration"


OPERATORS: Mapping[str, tuple[type[ast.AST], ...]] = {
    "add": (ast.Add,), "add_": (ast.Add,), "sub": (ast.Sub,), "sub_": (ast.Sub,),
    "rsub": (ast.Sub,), "mul": (ast.Mult,), "mul_": (ast.Mult,), "div": (ast.Div,),
    "div_": (ast.Div,), "reciprocal": (ast.Div,), "floor_divide": (ast.FloorDiv,),
    "remainder": (ast.Mod,), "pow": (ast.Pow,), "pow_": (ast.Pow,), "matmul": (ast.MatMult,),
    "mm": (ast.MatMult,), "bmm": (ast.MatMult,), "neg": (ast.USub,), "bitwise_not": (ast.Invert,),
    "bitwise_and": (ast.BitAnd,), "bitwise_or": (ast.BitOr,), "bitwise_xor": (ast.BitXor,),
    "eq": (ast.Eq,), "ne": (ast.NotEq,), "lt": (ast.Lt,), "le": (ast.LtE,), "gt": (ast.Gt,),
    "ge": (ast.GtE,), "numpy_T": (ast.Attribute,), "mT": (ast.Attribute,),
    "select": (ast.Subscript,), "slice": (ast.Subscript,), "index": (ast.Subscript,),
    "unsqueeze": (ast.Subscript,), "index_put_": (ast.Subscript,), "copy_": (ast.Subscript,),
    "fill_": (ast.Subscript,), "lift_fresh": (ast.Subscript,),
}  # fmt: skip
"""What in Python stands for operators of PyTorch without a call that a profiler sees."""
_ATTRIBUTES = {"numpy_T": "T", "mT": "mT"}


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression of a function that may call something, its place in the order of evaluation,
    and the straight run that it belongs to; ``guarded`` tells that it lies in a ``try``."""

    node: ast.expr | ast.stmt
    number: int
    block: Block
    guarded: bool
    use: Use = Use.VALUE


@dataclass(frozen=True, slots=True)
class Body:
    """A function, or a module, of a file: its qualified name, its first line, what it may call."""

    name: str
    node: ast.AST
    line: int
    expressions: tuple[Expression, ...]

    def candidates(self, call: Call) -> tuple[Expression, ...]:
        """The expressions that may be a call."""
        return tuple(one for one in self.expressions if _fits(one, call))


class Bodies:
    """The functions of one file."""

    def __init__(self, tree: ast.Module) -> None:
        self._scopes = list(_scopes(tree))
        self._made: dict[int, Body] = {}

    def find(self, function: Function) -> Body | None:
        """The function that a profiler has named; ``None`` where the file has none, or several,
        that fit."""
        named = [one for one in self._scopes if _bare_name(one.node) == function.name]
        exact = [one for one in named if _first_line(one.node) == function.line]
        # What ran already when the profiler was started is told by the line that it had reached.
        found = exact or _innermost([one for one in named if one.holds(function.line)])
        if len(found) != 1:
            return None
        scope = found[0]
        if id(scope.node) not in self._made:
            walk = _Walk()
            walk.body(scope.node)
            line = 1 if isinstance(scope.node, ast.Module) else _first_line(scope.node)
            self._made[id(scope.node)] = Body(scope.name, scope.node, line, tuple(walk.expressions))
        return self._made[id(scope.node)]


@dataclass(frozen=True, slots=True)
class _Scope:
    name: str
    node: ast.AST

    def holds(self, line: int) -> bool:
        if isinstance(self.node, ast.Module):
            return True
        end = getattr(self.node, "end_lineno", None) or _first_line(self.node)
        return _first_line(self.node) <= line <= end


def _innermost(scopes: Sequence[_Scope]) -> list[_Scope]:
    first = max((_first_line(one.node) for one in scopes), default=0)
    return [one for one in scopes if _first_line(one.node) == first]


_COMPREHENSIONS: Mapping[type[ast.AST], str] = {
    ast.ListComp: "<listcomp>", ast.SetComp: "<setcomp>", ast.DictComp: "<dictcomp>",
    ast.GeneratorExp: "<genexpr>", ast.Lambda: "<lambda>",
}  # fmt: skip
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _bare_name(node: ast.AST) -> str:
    if isinstance(node, ast.Module):
        return MODULE
    if isinstance(node, (*_DEFINITIONS, ast.ClassDef)):
        return node.name
    return _COMPREHENSIONS[type(node)]


def _first_line(node: ast.AST) -> int:
    if isinstance(node, ast.Module):
        return 0
    decorators = getattr(node, "decorator_list", ())
    lines: list[int] = [one.lineno for one in (*decorators, node)]
    return min(lines)


def _scopes(tree: ast.Module) -> Iterator[_Scope]:
    """Everything that has code of its own, by the names that ``co_qualname`` has."""
    yield _Scope(MODULE, tree)
    pending: list[tuple[ast.AST, str]] = [(tree, "")]
    while pending:
        node, prefix = pending.pop()
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, (*_DEFINITIONS, ast.ClassDef)) or type(child) in _COMPREHENSIONS:
                name = prefix + _bare_name(child)
                yield _Scope(name, child)
                inner = f"{name}." if isinstance(child, ast.ClassDef) else f"{name}.<locals>."
            pending.append((child, inner))


def _fits(one: Expression, call: Call) -> bool:
    match one.use:
        case Use.TRUTH:
            return call == _TRUTH
        case Use.ITERATION:
            return call in _ITERATIONS
    if call in (_TRUTH, _NUMBER):
        return _is_call_of(one.node, _TRUTHS if call == _TRUTH else _NUMBERS)
    if call == _FORMATTING:
        return isinstance(one.node, ast.FormattedValue)
    if call.kind is Called.OPERATOR:
        return _is_operator(one.node, call.name)
    return _is_call(one.node, call)


_TRUTH, _TRUTHS = Call(Called.OPERATOR, "is_nonzero"), frozenset({"bool"})
_NUMBER, _NUMBERS = Call(Called.OPERATOR, "item"), frozenset({"float", "int", "complex"})
_FORMATTING = Call(Called.NAMED, "__format__")
_ITERATIONS = frozenset(
    {
        Call(Called.NAMED, "__iter__"),
        Call(Called.NAMED, "__next__"),
        Call(Called.OPERATOR, "unbind"),
    }
)


def _is_call_of(node: ast.AST, names: Collection[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def _is_call(node: ast.AST, call: Call) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return call.kind is Called.ANYHOW or _called_name(node) == call.name


def _called_name(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _is_operator(node: ast.AST, name: str) -> bool:
    kinds = OPERATORS.get(name, ())
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        return isinstance(node.op, kinds) and not name.endswith("_")
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, kinds)
    if isinstance(node, ast.Compare):
        return any(isinstance(one, kinds) for one in node.ops)
    if isinstance(node, ast.Attribute):
        return node.attr == _ATTRIBUTES.get(name)
    return isinstance(node, ast.Subscript) and ast.Subscript in kinds


_OWN = (ast.Call, ast.BinOp, ast.AugAssign, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Attribute,
        ast.FormattedValue)  # fmt: skip


class _Tested(ast.AST):
    """Stands for an expression whose truth is asked for."""

    def __init__(self, node: ast.expr) -> None:
        super().__init__()
        self.node = node


class _Iterated(_Tested):
    """Stands for an expression whose next element is asked for."""


class _Walk:
    """Goes through a function as Python evaluates it."""

    def __init__(self) -> None:
        self.expressions: list[Expression] = []
        self._block: Block = ()
        self._blocks = 0
        self._guards = 0

    def body(self, node: ast.AST) -> None:
        """What the code of a scope evaluates."""
        if isinstance(node, ast.Lambda):
            self._visit(node.body)
        elif type(node) in _COMPREHENSIONS:
            self._comprehension(node, own=True)
        else:
            self._statements(node.body)  # type: ignore[attr-defined]

    def _statements(self, statements: Sequence[ast.stmt]) -> None:
        for one in statements:
            self._visit(one)

    def _apart(self, *nodes: ast.AST) -> None:
        """What may not be evaluated."""
        self._blocks += 2
        self._inside(self._blocks, nodes)

    def _turns(self, *nodes: ast.AST) -> None:
        """What may be evaluated any number of times."""
        self._blocks += 2
        self._inside(-self._blocks - any(map(_is_left_early, nodes)), nodes)

    def _inside(self, number: int, nodes: Sequence[ast.AST]) -> None:
        before = self._block
        self._block = (*before, number)
        for one in nodes:
            self._visit(one)
        self._block = before

    def _visit(self, node: ast.AST) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                for one in node.decorator_list:
                    self._visit(one)
            case ast.Lambda() | ast.TypeIgnore():
                pass
            case ast.If():
                self._test(node.test)
                self._apart(*node.body)
                self._apart(*node.orelse)
            case ast.For() | ast.AsyncFor():
                self._visit(node.iter)
                self._turns(_Iterated(node.iter), node.target, *node.body)
                self._apart(*node.orelse)
            case ast.While():
                self._turns(_Tested(node.test), *node.body)
                self._apart(*node.orelse)
            case _Iterated():
                self._add(node.node, Use.ITERATION)
            case _Tested():
                self._test(node.node)
            case ast.Assert():
                self._test(node.test)
            case ast.UnaryOp(op=ast.Not()):
                self._test(node.operand)
            case ast.IfExp():
                self._test(node.test)
                self._apart(node.body)
                self._apart(node.orelse)
            case ast.BoolOp():
                self._test(node.values[0])
                for one in node.values[1:-1]:
                    self._apart(_Tested(one))
                self._apart(node.values[-1])
            case ast.Try():
                self._try(node)
            case ast.Match():
                self._visit(node.subject)
                for case in node.cases:
                    self._apart(*([case.guard] if case.guard else []), *case.body)
            case _ if type(node) in _COMPREHENSIONS:
                self._comprehension(node, own=False)
            case _:
                self._plain(node)

    def _try(self, node: ast.Try) -> None:
        self._guards += 1
        self._apart(*node.body)
        for handler in node.handlers:
            self._apart(*handler.body)
        self._apart(*node.orelse)
        self._guards -= 1
        self._statements(node.finalbody)

    def _comprehension(self, node: ast.AST, *, own: bool) -> None:
        """From Python 3.12 on a comprehension is evaluated in the function around it, but for
        generators; before, only what it goes over first."""
        generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
        if not own:
            self._visit(generators[0].iter)
            if isinstance(node, ast.GeneratorExp):
                return
        inner: list[ast.AST] = []
        for index, one in enumerate(generators):
            inner += [one.iter] if index else []
            inner += [_Iterated(one.iter), one.target, *map(_Tested, one.ifs)]
        parts = ("key", "value", "elt")
        inner += [getattr(node, part) for part in parts if hasattr(node, part)]
        self._turns(*inner)

    def _plain(self, node: ast.AST) -> None:
        for child in _in_order(node):
            self._visit(child)
        if isinstance(node, _OWN):
            self._add(node, Use.VALUE)

    def _test(self, node: ast.expr) -> None:
        self._visit(node)
        self._add(node, Use.TRUTH)

    def _add(self, node: ast.expr | ast.stmt, use: Use) -> None:
        number = len(self.expressions)
        self.expressions.append(Expression(node, number, self._block, self._guards > 0, use))


def _is_left_early(node: ast.AST) -> bool:
    """Whether a statement of a loop may end a turn of it."""
    if isinstance(node, (ast.Break, ast.Continue)):
        return True
    if isinstance(node, (*_DEFINITIONS, ast.ClassDef, ast.Lambda)):
        return False
    if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        return any(map(_is_left_early, node.orelse))
    return any(map(_is_left_early, ast.iter_child_nodes(node)))


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node as they are evaluated: of assignments, the value first."""
    if isinstance(node, ast.Assign):
        yield node.value
        yield from node.targets
    elif isinstance(node, ast.AnnAssign):
        if node.value is not None:
            yield node.value
        yield node.target
    else:
        yield from ast.iter_child_nodes(node)
