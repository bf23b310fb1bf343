"""What a function moves to a device, and what that is made of, as its text tells: a sieve."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain

from memlint.analysis.births import FUNCTION_STEPS, METHOD_STEPS, SAID
from memlint.analysis.definitions_text import is_called, owner_of
from memlint.analysis.knowledge.factories import FACTORIES
from memlint.analysis.knowledge.images import KEEPING_DTYPE, READERS, TO_ARRAY
from memlint.analysis.knowledge.kinds import ITEMSIZE
from memlint.analysis.last_name import last_name
from memlint.analysis.leading_names import (
    UNNAMED,
    Definition,
    arguments_of_calls,
    code_of,
    definitions,
)
from memlint.analysis.uses import dotted
from memlint.analysis.walking import kinds_in
from memlint.analysis.widening import CAST_METHODS, ELEMENTWISE_METHODS
from memlint.late_pattern import late_pattern

_MOVES = frozenset({"to", "cuda", "type_as", "type"})
_DTYPES = late_pattern(
    r"^(?:u?int\d*|long|short|b?float\d*|half|double|bool|byte|dtype|complex\d*|\w*_dtype|dtype_\w*|"
    r"float8\w*)$"
)
_DTYPE_NAMES = frozenset(
    {"float", "double", "long", "int", "half", "bool", "float16", "float32", "float64", "int8",
     "int16", "int32", "int64", "uint8", "bfloat16"}
)  # fmt: skip
_WORD = late_pattern(r"\w+")
_BOUND_TO_DTYPE = late_pattern(
    rf"(\w+)[ \t]*(?::[^=\n]+)?=[ \t]*(?:\w+\.)*(?:{'|'.join(_DTYPE_NAMES)})\b(?!\()"
)
_DEFAULTS = ("set_default_device", "set_default_tensor_type")
_FACTORIES = frozenset(name.rpartition(".")[2] for name in FACTORIES)
_ALIASES = late_pattern(
    rf"\b(?:{'|'.join(_FACTORIES)}) as (\w+)|"
    rf"\b(\w+) *= *(?:\w+\.)+(?:{'|'.join(_FACTORIES)}) *(?:#.*)?$",
    re.MULTILINE,
)
_KEEPING = frozenset(name.rpartition(".")[2] for name in KEEPING_DTYPE)
_READERS = frozenset(name.rpartition(".")[2] for name in READERS)
_TO_ARRAY = frozenset(name.rpartition(".")[2] for name in TO_ARRAY)
_NARROW_METHODS = frozenset({"bool", "byte", "short", "half", "char", "int"})
# What makes narrow arrays: of pixels, indices, flags.
_MADE_NARROW = late_pattern(
    r"u?int8|int16|int32|dtype=(?:torch\.|np\.)?(?:float16|half|bool)|imread|imdecode|read_image|"
    r"decode_(?:image|jpeg|png)|Image\.open|\.(?:bool|half|short)\(\)|ByteTensor"
)
_SAME = {"float": "float32", "double": "float64", "half": "float16", "long": "int64",
         "int": "int32", "short": "int16"}  # fmt: skip
# ``float`` and ``int`` may be those of Python as well.
_OF_METHODS = {"float": 8, "double": 8, "long": 8, "int": 8, "half": 2, "bfloat16": 2}
_ON_HOST = frozenset({"tensor", "as_tensor", "from_numpy", "numpy"})
_DEPTH = 6
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def moves_what_it_makes(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function moves a tensor that it has just made of numbers."""
    del around
    if _sets_default(source):
        return False
    kinds = kinds_in(function)
    if isinstance(function, ast.Module) and not any(map(kinds.get, _LOOPS)):
        return False
    moves = list(_moves(kinds[ast.Call]))
    if not moves:
        return False
    bindings = bindings_of(function)
    factories = _FACTORIES | _aliases(source)
    return any(
        isinstance(one, ast.Call) and last_name(one.func) in factories and _may_be_on_host(one)
        for move in moves
        for one in bindings.behind(move.func.value, METHOD_STEPS, FUNCTION_STEPS)  # type: ignore[attr-defined]
    )


def moves_what_it_widens(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function moves a tensor that it has just made wider."""
    calls = kinds_in(function)[ast.Call]
    moves = [one for one in _moves(calls) if one.func.attr in ("to", "cuda")]  # type: ignore[attr-defined]
    if not moves:
        return False
    values = _Arrays(function, bindings_of(function), around, source)
    return any(
        values.may_be_narrow(one, wide) for move in moves for one, wide in values.widened(move)
    )


_BINDING = (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign)


@lru_cache(maxsize=64)
def bindings_of(function: ast.AST) -> Bindings:
    """What the names of a function stand for."""
    kinds = kinds_in(function)
    return Bindings(chain.from_iterable(kinds[kind] for kind in _BINDING))


def _moves(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """The calls that may move a tensor to a device."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="cuda" | "type_as" | "type")):
                yield node
            case ast.Call(func=ast.Attribute(attr="to"), args=args, keywords=keywords):
                shown = next((k.value for k in keywords if k.arg == "device"), None)
                shown = shown or (args[0] if args else None)
                if shown is not None and not _is_host(shown) and not _names_dtype(shown):
                    yield node


def _is_host(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in ("cpu", "meta", None)


def _names_dtype(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and (
        _DTYPES.match(last_name(node)) is not None
    )


class Bindings:
    """What the names of a function stand for."""

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        self._bound: dict[str, list[ast.expr]] = {}
        for node in nodes:
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._note(target, value)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._note(target, value)
                case ast.NamedExpr(target=target, value=value):
                    self._note(target, value)
                case ast.AugAssign(target=target):
                    self._note(target, node.value)

    def _note(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case (ast.Tuple(elts=targets), ast.Tuple(elts=values)) if len(targets) == len(values):
                for one, part in zip(targets, values, strict=True):
                    self._note(one, part)
            case (ast.Tuple(elts=targets) | ast.List(elts=targets), _):
                for one in targets:
                    self._note(one, value)
            case (ast.Name(id=name), _):
                self._bound.setdefault(name, []).append(value)

    def __contains__(self, name: str) -> bool:
        return name in self._bound

    def bound(self, name: str) -> list[ast.expr]:
        """What a name is bound to."""
        return self._bound.get(name, [])

    def behind(
        self, node: ast.expr, methods: frozenset[str], functions: frozenset[str]
    ) -> Iterator[ast.expr]:
        """What a value is made of, through names, operators, and these methods and functions."""
        waiting, seen = [node], set[int]()
        while waiting:
            one = waiting.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            yield one
            match one:
                case ast.Name(id=name):
                    waiting += self._bound.get(name, ())
                case ast.Call(func=ast.Attribute(value=value, attr=name), args=args):
                    if name in methods:
                        waiting.append(value)
                    if name in functions and (name not in methods or isinstance(value, ast.Name)):
                        waiting += args
                case ast.Call(func=ast.Name(id=name), args=args) if name in functions:
                    waiting += args
                case ast.Subscript(value=value):
                    waiting.append(value)
                case ast.Attribute(value=value, attr="T" | "mT" | "data"):
                    waiting.append(value)
                case ast.BinOp(left=left, right=right):
                    waiting += [left, right]
                case ast.UnaryOp(operand=operand):
                    waiting.append(operand)
                case ast.Compare(left=left, comparators=others):
                    waiting += [left, *others]
                case ast.IfExp(body=body, orelse=orelse):
                    waiting += [body, orelse]
                case ast.NamedExpr(value=value):
                    waiting.append(value)


@lru_cache(maxsize=4)
def _aliases(source: str) -> frozenset[str]:
    """Other names of functions that make tensors."""
    lines = [
        line
        for line in source.split("\n")
        if " as " in line or ("=" in line and "(" not in line.partition("#")[0])
    ]
    found = (one for line in lines for one in _ALIASES.findall(line))
    return frozenset(first or second for first, second in found)


@lru_cache(maxsize=4)
def _sets_default(source: str) -> bool:
    return any(word in source for word in _DEFAULTS)


@lru_cache(maxsize=4)
def _makes_narrow(text: str) -> bool:
    """Whether a text makes narrow arrays."""
    return _MADE_NARROW.search(text) is not None


def _may_be_on_host(factory: ast.Call) -> bool:
    return not any(
        keyword.arg is None
        or (keyword.arg in SAID and isinstance(keyword.value, (ast.Attribute, ast.Call)))
        or (
            keyword.arg in SAID
            and isinstance(keyword.value, ast.Constant)
            and keyword.value.value not in (None, False)
        )
        for keyword in factory.keywords
    )


class _Arrays:
    """The arrays of a function: what widens them, and whether they may be narrow before."""

    def __init__(self, function: ast.AST, bindings: Bindings, around: str, source: str) -> None:
        self._bindings = bindings
        self._around = around
        self._source = source
        self._name = getattr(function, "name", "")
        spec = getattr(function, "args", None)
        self._parameters = defaults_of(spec) if isinstance(spec, ast.arguments) else {}

    def widened(self, move: ast.Call) -> Iterator[tuple[ast.expr, str]]:
        """What is cast to a known dtype before, or by, a move, and how the dtype is written."""
        assert isinstance(move.func, ast.Attribute)
        given = next((k.value for k in move.keywords if k.arg == "dtype"), None)
        if given is None and move.func.attr == "to" and len(move.args) > 1:
            given = move.args[1]
        if given is not None:
            if self._names_known_dtype(given) and not any(
                k.arg == "non_blocking" for k in move.keywords
            ):
                yield move.func.value, ast.unparse(given)
            if not isinstance(given, ast.Constant):
                return
        for one in self._bindings.behind(move.func.value, ELEMENTWISE_METHODS, frozenset()):
            match one:
                case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in CAST_METHODS:
                    yield value, name
                case ast.Call(func=ast.Attribute(value=value, attr="to" | "type")):
                    every = [*one.args, *(k.value for k in one.keywords)]
                    if len(every) == 1 and self._names_known_dtype(every[0]):
                        yield value, ast.unparse(every[0])

    def _names_known_dtype(self, node: ast.expr, depth: int = 0) -> bool:
        match node:
            case ast.Constant(value=value):
                return isinstance(value, str) and _DTYPES.match(value) is not None
            case ast.Attribute(value=value, attr="dtype"):
                return any(
                    isinstance(one, ast.Call) and self._tells_dtype(one)
                    for one in self._bindings.behind(value, ELEMENTWISE_METHODS, frozenset())
                )
            case ast.Attribute(attr=name):
                if self._is_attribute(node):
                    return "device" not in name and _is_set(name, self._source)
                return _DTYPES.match(name) is not None
            case ast.Name(id=name) if "device" in name:
                return False
            case ast.Name(id=name) if name in self._bindings and depth < _DEPTH:
                return any(
                    self._names_known_dtype(one, depth + 1) for one in self._bindings.bound(name)
                )
            case ast.Name(id=name) if name in self._parameters:
                default = self._parameters[name]
                return (
                    default is not None and self._names_known_dtype(default, _DEPTH)
                ) or self._is_given_dtype()
        return isinstance(node, (ast.Name, ast.IfExp, ast.BoolOp))

    def _is_called(self) -> bool:
        if self._name in UNNAMED:
            return is_called(self._name, owner_of(self._around), code_of(self._source))
        return any(True for _ in arguments_of_calls(self._source, self._name))

    def _is_attribute(self, node: ast.Attribute) -> bool:
        return isinstance(node.value, ast.Name) and node.value.id == "self"

    def _is_given_dtype(self) -> bool:
        """Whether a call of the function names a dtype."""
        calls = [*arguments_of_calls(self._source, self._name)]
        if not calls:
            return False
        named = _dtype_names(self._source)
        return any(not named.isdisjoint(_WORD.findall(given)) for given in calls)

    def may_be_narrow(self, node: ast.expr, wide: str) -> bool:
        """Whether the dtype of an array may be known, and another than ``wide``."""
        behind = [*self._bindings.behind(node, _KEEPING, _KEEPING | _TO_ARRAY)]
        return any(self._tells_dtype(one, wide) for one in behind) and any(
            map(self._may_lie_on_host, behind)
        )

    def _may_lie_on_host(self, node: ast.expr) -> bool:
        """Whether what a value is made of may be known to lie in host memory."""
        match node:
            case ast.Attribute(value=value, attr=name):
                return isinstance(value, ast.Name) and _is_set(name, self._source)
            case ast.Name(id=name) if name in self._parameters:
                return self._is_called()
            case ast.Name(id=name):
                return name not in self._bindings
            case ast.Call(func=func):
                name = last_name(func)
                return (
                    name in _FACTORIES | _READERS | _TO_ARRAY | _ON_HOST
                    or name in _aliases(self._source)
                    or dotted(func).partition(".")[0] not in ("torch", "F")
                )
        return False

    def _tells_dtype(self, node: ast.expr, wide: str = "") -> bool:
        match node:
            case ast.Compare() | ast.UnaryOp(op=ast.Not() | ast.Invert()):
                return True
            case ast.Attribute():
                return (
                    self._is_attribute(node)
                    and _makes_narrow(self._around)
                    and _is_set(node.attr, self._source)
                )
            case ast.Name(id=name) if name in self._parameters:
                return _makes_narrow(code_of(self._source)) and self._is_called()
            case ast.Name(id=name):
                return name not in self._bindings and bool(
                    re.search(rf"(?m)^{name}\b[^=\n]*=", self._source)
                )
            case ast.Call(func=func, keywords=keywords, args=args):
                name = last_name(func)
                return (
                    any(k.arg == "dtype" and _may_be_narrower(k.value, wide) for k in keywords)
                    or name in _READERS | _NARROW_METHODS
                    or (name in _FACTORIES and not _is_single(wide))
                    or (name in _TO_ARRAY and len(args) > 1)
                    or (name in ("astype", "to", "type") and any(map(_is_dtype, args)))
                    or (
                        any(
                            _gives_narrow(one, wide)
                            for one in definitions(self._source)
                            if one.name == name
                        )
                    )
                )
        return False


@lru_cache(maxsize=64)
def _is_set(name: str, source: str) -> bool:
    """Whether a program gives objects an attribute of a name, as far as it is written there."""
    return (
        re.search(rf"\.{name}[ \t]*(?::[^=\n]*)?(?:,[^=\n]*)?=(?!=)", source) is not None
        or re.search(rf"^[ \t]+{name}[ \t]*[:=,]|[\"\']{name}[\"\']|def {name}\(", source, re.M)
        is not None
    )


def _may_be_narrower(dtype: ast.expr, wide: str) -> bool:
    """Whether a dtype may have less bytes than another, by the names of both."""
    narrow = ast.unparse(dtype)
    sizes = [_bytes_of(one) for one in (narrow, wide)]
    return narrow != wide and not (all(sizes) and sizes[0] >= sizes[1])


def _bytes_of(dtype: str) -> int:
    """The bytes of a number by the name of its dtype, or of the method that casts to it; 0 where
    that does not tell."""
    module, _, name = dtype.rpartition(".")
    if module not in ("", "torch"):
        return 0
    return ITEMSIZE.get(_SAME.get(name, name), 0) if module else _OF_METHODS.get(name, 0)


@lru_cache(maxsize=4)
def _dtype_names(source: str) -> frozenset[str]:
    """The names of dtypes, and those that a program binds to one."""
    lines = (line for line in code_of(source).split("\n") if "=" in line and "t" in line)
    return _DTYPE_NAMES | frozenset(one for line in lines for one in _BOUND_TO_DTYPE.findall(line))


def _is_single(wide: str) -> bool:
    """Whether a dtype is that of what factories make."""
    return wide.rpartition(".")[2] in ("float", "float32")


def _gives_narrow(function: Definition, wide: str) -> bool:
    """Whether a function of the program may give a narrow array."""
    if _MADE_NARROW.search(function.text) is not None:
        return True
    return not _is_single(wide) and any(f"{name}(" in function.text for name in _FACTORIES)


def _is_dtype(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (_names_dtype(node) and last_name(node) != "dtype")


def defaults_of(spec: ast.arguments) -> dict[str, ast.expr | None]:
    """The parameters of a function, with their defaults."""
    places = [*spec.posonlyargs, *spec.args]
    found: dict[str, ast.expr | None] = {one.arg: None for one in (*places, *spec.kwonlyargs)}
    for one, default in zip(reversed(places), reversed(spec.defaults), strict=False):
        found[one.arg] = default
    found.update(zip((one.arg for one in spec.kwonlyargs), spec.kw_defaults, strict=True))
    return found
