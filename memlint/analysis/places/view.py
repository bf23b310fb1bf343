"""Which functions may view a tensor whose axes were exchanged, as far as syntax tells: a sieve."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache

from memlint.analysis.definitions_text import (
    CALLED_AS_OBJECT,
    FunctionText,
    definitions,
    is_named_again,
    names_behind,
    owner_of,
)
from memlint.analysis.imported_names import full_name
from memlint.analysis.marks import NONE, OUTER, Marks, MarkWalk
from memlint.analysis.walking import as_module, walk
from memlint.late_pattern import late_pattern

TRANSPOSING = frozenset(
    {"transpose", "permute", "t", "T", "mT", "H", "mH", "movedim", "moveaxis", "swapaxes",
     "swapdims", "rearrange", "einsum", "adjoint"}
)  # fmt: skip
_WORD = late_pattern(
    rf"\b(?:{'|'.join(sorted(one for one in TRANSPOSING if len(one) > 2))})\b|\.(?:t|T|mT|H|mH)\b"
)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_VIEWING = frozenset({"view", "view_as"})
# Whose results are dense, or no tensors.
_DENSE = frozenset(
    {"contiguous", "matmul", "mm", "bmm", "cat", "concat", "stack", "softmax", "log_softmax",
     "linear", "embedding", "zeros", "ones", "zeros_like", "sum", "mean", "argmax", "argmin",
     "item", "size", "dim", "numel", "tolist", "len", "range", "int", "isinstance", "print"}
)  # fmt: skip
_NUMBERS = frozenset({"shape", "ndim", "dtype", "device", "size"})
_LIBRARY = late_pattern(r"(?:torch|th|F|np|numpy|math|nn)\b")
_EXCHANGED = "exchanged"
_CALLED = "called:"


def may_view_exchanged(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function views what may have exchanged axes."""
    found = _Function(function, source)
    if _EXCHANGED in found.viewed:
        return True
    owner = owner_of(around)
    marks = [one for one in found.viewed if _may_matter(one, function, owner, source)]
    return bool(marks) and any(_program(source).exchanges(mark, function, owner) for mark in marks)


def _may_matter(mark: str, function: ast.AST, owner: str, source: str) -> bool:
    """Whether anything in the program may say more of what has a mark: cheap to ask."""
    if mark.startswith(_CALLED):
        name = mark.removeprefix(_CALLED)
        return f"def {name}(" in source or "def forward(" in source
    if "." in mark:
        return mark.startswith(OUTER + "self.")
    name = getattr(function, "name", "")
    called = owner if name in CALLED_AS_OBJECT else name
    arguments = getattr(function, "args", None)
    return arguments is not None and is_named_again(called, source)


class _Function:
    """What is viewed in a function, what it returns, and whom it hands exchanged axes."""

    def __init__(self, function: ast.AST, source: str) -> None:
        self._source = source
        self.viewed: Marks = NONE
        self.handed: set[tuple[str, int | str]] = set()
        walker = MarkWalk(self._step)
        walker.run(as_module(function))
        self.attributes = {
            path.rpartition(".")[2]
            for path, marks in walker.state.items()
            if "." in path and _EXCHANGED in marks
        }
        self.returned = walker.state.get(getattr(function, "name", ""), NONE)

    def _step(self, node: ast.expr, of: Callable[[ast.expr], Marks]) -> Marks | None:
        match node:
            case ast.Call():
                return self._called(node, of)
            case ast.Attribute(value=value, attr=name) if name in TRANSPOSING:
                return of(value) | {_EXCHANGED}
            case ast.Attribute(attr=name) if name in _NUMBERS:
                return NONE
            case ast.BinOp(op=ast.MatMult()) | ast.Constant() | ast.JoinedStr():
                return NONE
            case ast.Compare(ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn(), *_]):
                return NONE
        return None

    def _called(self, node: ast.Call, of: Callable[[ast.expr], Marks]) -> Marks | None:
        func = node.func
        full = full_name(func, self._source)
        name = full.rpartition(".")[2]
        given = NONE.union(*(of(one) for one in _arguments(node)))
        receiver = of(func.value) if isinstance(func, ast.Attribute) else of(func)
        if name in _VIEWING and isinstance(func, ast.Attribute):
            self.viewed |= receiver
            return receiver
        if name in TRANSPOSING:
            return receiver | given | {_EXCHANGED}
        if name in _DENSE or self._is_dense_layer(func):
            return NONE
        if _EXCHANGED in given and _LIBRARY.match(full) is None:
            self._note_handed(name, node, of)
        return receiver | given | {_CALLED + name}

    def _note_handed(self, name: str, node: ast.Call, of: Callable[[ast.expr], Marks]) -> None:
        for i, one in enumerate(node.args):
            if _EXCHANGED in of(one):
                self.handed.add((name, i))
        for keyword in node.keywords:
            if _EXCHANGED in of(keyword.value):
                self.handed.add((name, keyword.arg or ""))

    def _is_dense_layer(self, func: ast.expr) -> bool:
        """Whether ``self.proj`` is made as a layer whose results are dense."""
        return (
            isinstance(func, ast.Attribute)
            and isinstance(func.value, ast.Name)
            and func.value.id == "self"
            and func.attr in _dense_layers(self._source)
        )


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(one.value for one in call.keywords)]


@lru_cache(maxsize=4)
def _dense_layers(source: str) -> frozenset[str]:
    pattern = r"self\.(\w+)\s*(?::[^=\n]*)?=[^=\n]*\b(?:Linear|Conv\w*|Embedding)\("
    return frozenset(re.findall(pattern, source))


class _Program:
    """What the functions of a program give and are given, by their names."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._definitions = definitions(source)
        self._giving: dict[FunctionText, bool] = {}
        self._functions: dict[FunctionText, _Function | None] = {}

    def _function(self, text: FunctionText) -> _Function | None:
        if text not in self._functions:
            parsed = text.parsed()
            self._functions[text] = None if parsed is None else _Function(parsed, self._source)
        return self._functions[text]

    def _exchanging(self, word: str) -> Iterator[_Function]:
        """What exchanges axes and holds a word: functions, and the code outside of them."""
        texts = [one for one in self._definitions.functions if word in one.text]
        functions = [self._function(one) for one in texts if _WORD.search(one.text)]
        outside = self._definitions.outside
        if word in outside and _WORD.search(outside):
            functions.append(self._loose)
        if None in functions:
            functions += self._every
        return (one for one in functions if one is not None)

    @cached_property
    def _tree(self) -> ast.Module:
        return ast.parse(self._source)

    @cached_property
    def _loose(self) -> _Function:
        """The code outside of functions."""
        body = [one for one in self._tree.body if not isinstance(one, _DEFINITIONS)]
        return _Function(ast.Module(body, []), self._source)

    @cached_property
    def _every(self) -> list[_Function]:
        return [_Function(one, self._source) for one in _functions_in(self._tree)]

    def _gives(self, text: FunctionText) -> bool:
        """Whether a function returns what may have exchanged axes."""
        if text not in self._giving:
            self._giving[text] = False
            found = self._function(text)
            self._giving[text] = found is None or any(
                mark == _EXCHANGED or (mark.startswith(_CALLED) and self._is_given_by(mark))
                for mark in found.returned
            )
        return self._giving[text]

    def _is_given_by(self, mark: str) -> bool:
        name = mark.removeprefix(_CALLED)
        return any(
            self._gives(one)
            for called in sorted(names_behind(name, self._source))
            for one in self._definitions.called(called)
            if called == name or one.name in CALLED_AS_OBJECT
        )

    def exchanges(self, mark: str, function: ast.AST, owner: str) -> bool:
        """Whether what has a mark may have exchanged axes."""
        if mark.startswith(_CALLED):
            return self._is_given_by(mark)
        path = mark.removeprefix(OUTER)
        if "." in path:
            attribute = path.rpartition(".")[2]
            return any(attribute in one.attributes for one in self._exchanging(f".{attribute}"))
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        places = _places_of(function, path)
        word = "(" if function.name in CALLED_AS_OBJECT else function.name
        return any(
            place in places
            and (
                name == function.name
                or (function.name in CALLED_AS_OBJECT and owner in names_behind(name, self._source))
            )
            for one in self._exchanging(word)
            for name, place in sorted(one.handed, key=str)
        )


def _functions_in(tree: ast.Module) -> Iterator[ast.AST]:
    return (one for one in walk(tree) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)))


def _places_of(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> set[int | str]:
    """Where a call may give a parameter its value."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    variadic = [one.arg for one in (function.args.vararg, function.args.kwarg) if one is not None]
    if name in variadic or name not in (*names, *(one.arg for one in function.args.kwonlyargs)):
        return set()
    if name not in names:
        return {name, ""}
    position = names.index(name)
    return {name, "", position - 1 if names[0] in ("self", "cls") else position}


@lru_cache(maxsize=2)
def _program(source: str) -> _Program:
    return _Program(source)
