"""Which attributes of a dataset hold its samples, by how its methods use them.

What ``__getitem__`` takes by its index, what ``__len__`` counts and what ``__iter__`` goes
through has as many entries as the dataset has samples; a list of class names has not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from memlint.analysis.walking import walk
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

Method = ast.FunctionDef | ast.AsyncFunctionDef
_MOST_CALLS = 3


@dataclass(slots=True)
class Samples:
    """``direct`` attributes are taken by the index itself, ``keyed`` ones by what was taken so.

    ``by_field`` ones are taken by a part of that, ``self.marks[info["id"]]``.  The entries of
    ``records`` are used as dictionaries, none of whose values is used as an array."""

    direct: set[str] = field(default_factory=set)
    keyed: set[str] = field(default_factory=set)
    by_field: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)
    _arrays: set[str] = field(default_factory=set)

    def note_use(self, entry: str, node: ast.AST) -> None:
        """The entry of an attribute is taken by a key at ``node``; the result is an array if
        something of arrays is asked of it there."""
        (self._arrays if _wants_array(node) else self.records).add(entry)

    def settle(self) -> None:
        """Let go of what was noted too early."""
        self.keyed -= self.direct
        self.records -= self._arrays


def samples_of(classes: Sequence[ast.ClassDef]) -> Samples:
    """The attributes that hold the samples of a dataset; its class comes first, then its bases."""
    methods = methods_of(classes)
    found = Samples()
    for name in ("__getitem__", "__getitems__"):
        method = methods.get(name)
        if method is not None:
            _taken(method, set(_parameters(method)[1:2]), methods, found, 0)
    for name in ("__len__", "__iter__"):
        method = methods.get(name)
        if method is not None:
            found.direct |= set(_counted(method) if name == "__len__" else _gone_through(method))
    found.settle()
    return found


def methods_of(classes: Iterable[ast.ClassDef]) -> dict[str, Method]:
    """The methods of a class, its own before those of its bases."""
    methods: dict[str, Method] = {}
    for one in classes:
        for statement in one.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                methods.setdefault(statement.name, statement)
    return methods


def _parameters(method: Method) -> list[str]:
    return [a.arg for a in (*method.args.posonlyargs, *method.args.args)]


def _taken(
    method: Method, indices: set[str], methods: dict[str, Method], found: Samples, depth: int
) -> None:
    """What a method takes by its index, and what by that."""
    names = _parameters(method)
    own = names[0] if names else ""
    keys: set[str] = set()
    entries: dict[str, str] = {}
    for node in _in_order(method):
        for entry in _used_as_record(node, own, indices, entries):
            found.note_use(entry, node)
        match node:
            case ast.Assign(targets=[target], value=value):
                if isinstance(target, ast.Name) and _takes(value, own, indices):
                    entries[target.id] = _root(value, own)
                bound = {n.id for n in walk(target) if isinstance(n, ast.Name)}
                if any(_takes(part, own, indices) for part in walk(value)):
                    keys |= bound - indices
                elif _names(value) & indices and not _attributes(value, own):
                    indices |= bound
            case ast.For(target=ast.Name(id=name), iter=iterated) if _names(iterated) & indices:
                indices.add(name)
            case ast.Subscript():
                attribute = _root(node.value, own)
                if attribute and _names_outside_subscripts(node.slice) & indices:
                    found.direct.add(attribute)
                elif attribute and (
                    _names_outside_subscripts(node.slice) & keys
                    or any(_takes(part, own, indices) for part in walk(node.slice))
                ):
                    found.keyed.add(attribute)
                elif attribute and _names(node.slice) & keys:
                    found.by_field.add(attribute)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=called), args=args):
                helper = methods.get(called)
                if name != own or helper is None or depth >= _MOST_CALLS:
                    continue
                handed = {
                    parameter
                    for parameter, argument in zip(_parameters(helper)[1:], args, strict=False)
                    if isinstance(argument, ast.Name) and argument.id in indices
                }
                if handed:
                    _taken(helper, handed, methods, found, depth + 1)


def _in_order(method: Method) -> Iterator[ast.AST]:
    """The nodes of a method as they stand in the text, statements before what is in them."""
    pending: list[ast.AST] = list(reversed(method.body))
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(list(ast.iter_child_nodes(node))))


def _takes(node: ast.AST, own: str, indices: set[str]) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and bool(_root(node.value, own))
        and bool(_names_outside_subscripts(node.slice) & indices)
    )


def _used_as_record(
    node: ast.AST, own: str, indices: set[str], entries: dict[str, str]
) -> Iterator[str]:
    """The attributes of which an entry is taken by a string in what is directly at ``node``."""
    for part in (node, *ast.iter_child_nodes(node)):
        match part:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str())):
                if name in entries:
                    yield entries[name]
            case ast.Subscript(value=taken, slice=ast.Constant(value=str())) if _takes(
                taken, own, indices
            ):
                yield _root(taken, own)


def _wants_array(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="from_numpy" | "as_tensor")):
            return True
        case ast.Attribute(attr="shape" | "astype" | "dtype" | "ndim" | "reshape" | "size"):
            return True
    return False


def _root(node: ast.AST, own: str) -> str:
    """The attribute of ``self`` that a chain like ``self.table.iloc`` begins with."""
    while True:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                return attribute if name == own else ""
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Call(func=inner):
                node = inner
            case _:
                return ""


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in walk(node) if isinstance(n, ast.Name)}


def _names_outside_subscripts(node: ast.AST) -> set[str]:
    found: set[str] = set()
    pending = [node]
    while pending:
        one = pending.pop()
        if isinstance(one, ast.Name):
            found.add(one.id)
        if not isinstance(one, (ast.Subscript, ast.Call)):
            pending.extend(ast.iter_child_nodes(one))
        elif isinstance(one, ast.Call):
            pending.extend(one.args)
    return found


def _attributes(node: ast.AST, own: str) -> set[str]:
    return {
        n.attr
        for n in walk(node)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == own
    }


def _counted(method: Method) -> Iterator[str]:
    own = next(iter(_parameters(method)), "")
    for node in walk(method):
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[argument]):
                yield _root(argument, own)
            case ast.Attribute(attr="shape", value=inner):
                yield _root(inner, own)


def _gone_through(method: Method) -> Iterator[str]:
    own = next(iter(_parameters(method)), "")
    numbers = {
        node.target.id
        for node in walk(method)
        if isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.target, ast.Name)
    }
    for node in walk(method):
        match node:
            case (
                ast.For(iter=iterated)
                | ast.comprehension(iter=iterated)
                | ast.YieldFrom(value=iterated)
            ):
                yield from _attributes(iterated, own)
            case ast.Subscript(value=inner, slice=ast.Slice()):
                yield _root(inner, own)
            case ast.Subscript(value=inner, slice=ast.Name(id=name)) if name in numbers:
                yield _root(inner, own)
            case ast.Call(func=ast.Name(id="iter" | "islice" | "enumerate" | "zip"), args=args):
                for argument in args:
                    yield _root(argument, own)


# Calls that read and decode a file, or change an image or a sound, by the end of their names.
_WORK = late_pattern(
    r"(^|\.)(open|imread|imdecode|read_image|read_video|decode_\w+|load|loadtxt|read|resize|"
    r"transforms?|augment(ation)?s?|preprocess|tokenize|encode|fft|rfft|stft|convolve|"
    r"interpolate|warpAffine|cvtColor|crop|flip|rotate|sin|cos|exp|linspace|outer)$"
)
# Reads of what lies in memory already.
_CHEAP = late_pattern(r"^(json|pickle)\.loads$|^torch\.(flip|linspace)$")


def work_of(methods: dict[str, Method]) -> ast.AST | None:
    """A call in ``__getitem__``, or in a method that it calls, that decodes or computes."""
    pending, seen = ["__getitem__", "__iter__"], set[str]()
    while pending:
        name = pending.pop(0)
        method = methods.get(name)
        if method is None or name in seen:
            continue
        seen.add(name)
        own = next(iter(_parameters(method)), "")
        for node in walk(method):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called.startswith(f"{own}.") and called[len(own) + 1 :] in methods:
                pending.append(called[len(own) + 1 :])
            elif _WORK.search(called) and not _CHEAP.search(called):
                return node
    return None
