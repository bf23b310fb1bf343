"""Which functions may save a part of a tensor with all of its storage, as far as their syntax
tells: a sieve."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from memlint.analysis.definitions_text import CALLED_AS_OBJECT, definitions, is_named_again
from memlint.analysis.imported_names import full_name
from memlint.analysis.last_name import last_name
from memlint.analysis.marks import NONE, OUTER, Marks, MarkWalk, path_of
from memlint.analysis.parts import ON_HOST, SAME, SPLITS, TENSOR_METHODS
from memlint.analysis.walking import as_module, nodes_of, walk
from memlint.late_pattern import late_pattern

SENDING = ("put", "put_nowait", "send")
WRITING = ("save", "dump", "dumps")
_MODULES = frozenset({"torch", "th", "pickle", "cloudpickle", "dill"})
_ALIAS = late_pattern(rf"\b(?:{'|'.join(WRITING)}|torch|pickle|cloudpickle|dill) as (\w+)")
_FROM = late_pattern(r"\bfrom (?:torch|pickle|cloudpickle|dill)\b[^\n]*\bimport\b")
_LIBRARY = frozenset({"torch", "th", "F"})
_SPLITS = frozenset(name.rpartition(".")[2] for name in SPLITS)
_SAME = frozenset(name.rpartition(".")[2] for name in SAME | ON_HOST)
_TENSOR_METHODS = frozenset(name.removeprefix(".") for name in TENSOR_METHODS)
_NUMBERS = frozenset({"shape", "dtype", "device", "ndim"})
_PART = "part"
_TENSOR = "tensor"
_CALLED = "called:"
_DEEPEST = 3


def may_save_part(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function writes or sends what may be a part of a tensor."""
    names = _writers(source)
    sends = "multiprocessing" in source
    if not any(
        isinstance(one, ast.Call) and _writes(one, names, sends) for one in nodes_of(function)
    ):
        return False
    found = _Parts(function, source)
    return any(_may_be_part(marks, found, around, source) for marks in found.saved)


@lru_cache(maxsize=4)
def _writers(source: str) -> frozenset[str]:
    """The names by which a program knows functions that write, and modules of them."""
    known = {"save", "dump", "dumps"} if _FROM.search(source) else set[str]()
    return frozenset(known | set(_ALIAS.findall(source)))


def _writes(call: ast.Call, names: frozenset[str], sends: bool) -> bool:
    """Whether a call writes or sends an object."""
    func = call.func
    if isinstance(func, ast.Name):
        return func.id in names
    name = last_name(func)
    if name in SENDING:
        return sends
    base = path_of(func).partition(".")[0]
    return name in WRITING and (base in _MODULES or base in names)


class _Parts:
    """What a function saves, returns, and hands to other functions."""

    def __init__(self, function: ast.AST, source: str) -> None:
        self._source = source
        self._names, self._sends = _writers(source), "multiprocessing" in source
        self.function = function
        self.saved: set[Marks] = set()
        self.handed: dict[str, set[Marks]] = {}
        module = function
        if not isinstance(function, ast.Module):
            module = as_module(function)
        self._looped = {
            name.id
            for one in walk(module)
            if isinstance(one, (ast.For, ast.AsyncFor, ast.comprehension))
            for name in walk(one.target)
            if isinstance(name, ast.Name)
        }
        walker = MarkWalk(self._step)
        walker.run(module)
        name = getattr(function, "name", "")
        every = NONE.union(*walker.state.values())
        self.returned = walker.state.get(name, NONE) if name else every

    def _step(self, node: ast.expr, of: Callable[[ast.expr], Marks]) -> Marks | None:
        match node:
            case ast.Call():
                return self._called(node, of)
            case ast.Subscript(value=value, slice=key):
                return of(value) | {_PART} if _may_narrow(key) else of(value)
            case ast.Attribute(attr=name) if name in _NUMBERS:
                return NONE
            case ast.Constant() | ast.JoinedStr() | ast.BinOp() | ast.Compare() | ast.UnaryOp():
                return NONE
        return None

    def _called(self, node: ast.Call, of: Callable[[ast.expr], Marks]) -> Marks | None:
        func = node.func
        full = full_name(func, self._source)
        base, name = full.partition(".")[0], full.rpartition(".")[2]
        given = [*node.args, *(one.value for one in node.keywords)]
        receiver = of(func.value) if isinstance(func, ast.Attribute) else NONE
        if _writes(node, self._names, self._sends):
            payload = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "obj")]
            self.saved.update(self._with_loops(one, of(one)) for one in payload)
            return NONE
        inner = NONE.union(*map(of, given))
        if _PART in inner or self._looped:
            self.handed.setdefault(name, set()).update(
                self._with_loops(one, of(one)) for one in given
            )
        if base in _LIBRARY or base in self._names:
            kept = inner if name in _SPLITS | _SAME else NONE
            return kept | {_TENSOR} | ({_PART} if name in _SPLITS else NONE)
        if isinstance(func, ast.Attribute) and name in _SPLITS | _SAME | _TENSOR_METHODS:
            tensor = {_TENSOR} if name in _TENSOR_METHODS else NONE
            return receiver | tensor | ({_PART} if name in _SPLITS else NONE)
        if name in ("dict", "list", "tuple", "zip", "enumerate", "reversed"):
            return inner
        if f"def {name}(" in self._source:
            return frozenset({_CALLED + name})
        return NONE

    def _with_loops(self, node: ast.expr, marks: Marks) -> Marks:
        """What a loop takes out of a tensor is a part of it."""
        if any(isinstance(one, ast.Name) and one.id in self._looped for one in walk(node)):
            return marks | {_PART}
        return marks


def _may_narrow(key: ast.expr) -> bool:
    """Whether a subscript may leave most of an array out, and does not copy."""
    match key:
        case ast.Constant(value=value):
            return isinstance(value, int)
        case ast.Slice(upper=upper):
            return upper is not None
        case ast.Tuple(elts=parts):
            return any(map(_may_narrow, parts))
        case ast.List() | ast.Compare() | ast.JoinedStr():
            return False
    return True


def _may_be_part(
    marks: Marks, found: _Parts, around: str, source: str, depth: int = _DEEPEST
) -> bool:
    """Whether what has these marks may be a part of a tensor."""
    if _PART in marks and any(
        _may_be_tensor(one, found, around, source) for one in marks - {_PART}
    ):
        return True
    return depth > 0 and any(_comes_as_part(one, found, source, depth) for one in marks)


def _may_be_tensor(mark: str, found: _Parts, around: str, source: str) -> bool:
    if mark == _TENSOR or mark.startswith(_CALLED):
        return True
    path = mark.removeprefix(OUTER)
    if path in _parameters(found.function):
        return is_named_again(getattr(found.function, "name", ""), source)
    text = around if path.startswith("self.") else source
    makers = "|".join(map(re.escape, ("torch", "th", "Parameter", *_writers(source))))
    made = rf"\b{re.escape(path.rpartition('.')[2])}\b[^\n=]*=[^\n]*\b(?:{makers})\b"
    return re.search(made, text) is not None


def _comes_as_part(mark: str, found: _Parts, source: str, depth: int) -> bool:
    """Whether a function of the program returns a part, or gives one to this function."""
    if mark.startswith(_CALLED):
        return any(
            _may_be_part(other.returned, other, source, source, depth - 1)
            for other in _functions(source, mark.removeprefix(_CALLED), "")
        )
    name = getattr(found.function, "name", "")
    if mark.removeprefix(OUTER) not in _parameters(found.function) or name in CALLED_AS_OBJECT:
        return False
    return any(
        _may_be_part(marks, other, source, source, depth - 1)
        for other in _functions(source, "", f"{name}(")
        if getattr(other.function, "name", "") != name
        for marks in other.handed.get(name, ())
    )


def _parameters(function: ast.AST) -> set[str]:
    arguments = getattr(function, "args", ast.Pass())
    return {one.arg for one in walk(arguments) if isinstance(one, ast.arg)}


def _functions(source: str, name: str, word: str) -> Iterator[_Parts]:
    """The functions with a name, or that hold a word, and then the code outside of them."""
    known = definitions(source)
    for one in known.functions:
        if (name and one.name == name) or (word and word in one.text):
            # What cannot be told from its lines is looked at with all that is around it.
            yield _Parts(one.parsed() or ast.parse(source), source)
    if word and word in known.outside:
        tree = ast.parse(source)
        loose = [one for one in tree.body if not isinstance(one, (ast.FunctionDef, ast.ClassDef))]
        yield _Parts(ast.Module(loose, []), source)
