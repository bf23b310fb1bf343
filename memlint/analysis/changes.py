"""What a piece of code may rebind or write into, by the names that it uses.

Everything is read off the syntax.  A change of a path (:mod:`memlint.analysis.paths`) is one of
all that it leads to, and of what it is a part of.  Code is taken to change what it assigns, what
it calls an in-place method on, what it hands over as ``out=`` or to a function that is named for
writing, and what the functions of the same program, so far as they are seen, do to what they are
given.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import TypeAlias

from memlint.analysis import knowledge
from memlint.analysis.paths import Path, bases_of, path_of, related
from memlint.analysis.walking import walk
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

# How far calls of the program's own functions are followed.
_DEPTH = 3
# Methods that change what they are called on.
_MUTATORS = frozenset(
    {"append", "extend", "insert", "pop", "popleft", "remove", "clear", "update", "setdefault",
     "add", "discard", "sort", "reverse", "fill", "put", "itemset", "partition", "resize",
     "setflags", "byteswap", "load_state_dict", "reset", "next", "send", "read", "readinto",
     "register_buffer", "register_parameter", "share_memory", "copy_from", "move_to_end",
     "set", "write", "load", "push", "rotate", "appendleft", "step", "fit", "partial_fit",
     "seek", "readline", "get_nowait", "recv", "recv_into", "setfield", "swap"}
)  # fmt: skip
# Methods of one name that tensors have too, and that only read them.
_READS_OF_ARRAYS = frozenset({"add"})
# Functions that write into their first argument.
_WRITERS = frozenset(
    {"copyto", "putmask", "place", "put", "put_along_axis", "fill_diagonal", "shuffle", "at",
     "setattr", "delattr", "heappush", "heappop", "heapify", "heapreplace", "swap", "next",
     "all_reduce", "broadcast", "recv", "irecv", "all_reduce_coalesced", "memmove", "memset",
     "clip_grad_norm", "all_gather", "all_gather_into_tensor", "reduce_scatter",
     "reduce_scatter_tensor", "all_to_all_single", "all_to_all", "scatter", "reduce",
     "broadcast_object_list"}
)  # fmt: skip
_WRITES = late_pattern(
    r"(^|_)(in_?place|update|updates|fill|write|assign|accumulate|mutate|overwrite|"
    r"sync|reset|swap)(_|$)",
    re.IGNORECASE,
)
# Whose ``step`` is not one of an optimizer.
_OTHER_STEPS = late_pattern(r"sched|prof|env|bar|progress|tracer|sim|lr|timer|clock", re.IGNORECASE)


@dataclass(slots=True)
class Changes:
    """Paths that are bound to something else, and paths whose objects are written into.

    ``trains`` tells that an optimizer steps; ``opaque`` are the objects whose methods are
    called that nobody can see into.
    """

    rebound: set[Path] = field(default_factory=set)
    written: set[Path] = field(default_factory=set)
    opaque: set[Path] = field(default_factory=set)
    trains: bool = False

    def touch(self, path: Path) -> bool:
        """Whether what ``path`` leads to may be another, or hold something else."""
        return (
            any(related(path, one) for one in self.rebound)
            or any(related(path, one) for one in self.written)
            or any(path[: len(one)] == one and len(path) > len(one) for one in self.opaque)
        )

    def without(self, names: set[str]) -> Changes:
        """The same, for code in which these names are bound to something of its own."""
        rebound = {path for path in self.rebound if path[0] not in names}
        written = {path for path in self.written if path[0] not in names}
        return Changes(rebound, written, self.opaque, self.trains)

    def write_into(self, path: Path) -> bool:
        """Whether the object at ``path`` may be written into."""
        return any(related(path, one) for one in self.written)


def called_name(call: ast.Call) -> str:
    """The last name of what a call calls."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


class Definitions:
    """The functions of a program by name, and what is learnt of them."""

    def __init__(self, tree: ast.AST) -> None:
        self.functions: dict[str, list[FunctionNode]] = {}
        self.attributes: set[str] = set()
        self.imported: set[str] = set()
        for node in walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                self.attributes.add(node.attr)
            elif isinstance(node, ast.alias):
                self.imported.add(node.asname or node.name.partition(".")[0])
        self._known: dict[int, Changes] = {}
        self._open: set[int] = set()

    def changes_of(self, function: FunctionNode) -> Changes:
        """What a function changes, by the names that it uses itself."""
        if (known := self._known.get(id(function))) is not None:
            return known
        if id(function) in self._open or len(self._open) >= _DEPTH:
            return Changes()
        self._open.add(id(function))
        try:
            found = changes_in(function.body, self)
        finally:
            self._open.discard(id(function))
        if not self._open:
            self._known[id(function)] = found
        return found


def changes_in(
    nodes: Iterable[ast.AST], definitions: Definitions, around: ast.AST | None = None
) -> Changes:
    """What the code of ``nodes`` changes; aliases are made anywhere in ``around``, too."""
    listed = list(nodes)
    changes = Changes()
    for one in listed:
        for node in walk(one):
            if isinstance(node, ast.Call):
                _note_call(node, changes, definitions)
            else:
                _note(node, changes)
    aliases = [pair for one in listed for pair in _aliases(one)]
    if around is not None:
        aliases += _aliases(around)
    _close(changes.written, aliases)
    return changes


def bound_in(nodes: Iterable[ast.AST]) -> Changes:
    """What these nodes by themselves bind and write into; calls are left out of account."""
    changes = Changes()
    for node in nodes:
        if node.__class__ in _BINDING:
            _note(node, changes)
    return changes


# What :func:`_note` takes note of.
_BINDING = frozenset(
    {ast.Name, ast.Attribute, ast.Subscript, ast.AugAssign, ast.MatchAs, ast.MatchStar,
     ast.ExceptHandler, ast.alias, ast.FunctionDef, ast.AsyncFunctionDef}
)  # fmt: skip
_READ_OR_SET = frozenset({ast.Name, ast.Attribute, ast.Subscript})


def _note(node: ast.AST, changes: Changes) -> None:
    if node.__class__ in _READ_OR_SET and node.ctx.__class__ is ast.Load:  # type: ignore[attr-defined]
        return
    match node:
        case ast.Name(id=name):
            changes.rebound.add((name,))
        case ast.Attribute():
            path = path_of(node)
            if path is not None:
                changes.rebound.add(path)
            else:
                changes.written.update(bases_of(node.value))
        case ast.Subscript(value=base):
            changes.written.update(bases_of(base))
        case ast.AugAssign(target=target):
            changes.written.update(bases_of(target))
        case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
            changes.rebound.add((name,))
        case ast.ExceptHandler(name=str() as name):
            changes.rebound.add((name,))
        case ast.alias(name=name, asname=asname):
            changes.rebound.add(((asname or name.partition(".")[0]),))
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            changes.rebound.add((name,))


def _note_call(node: ast.Call, changes: Changes, definitions: Definitions) -> None:
    for keyword in node.keywords:
        if keyword.arg == "out":
            changes.written.update(bases_of(keyword.value))
        elif keyword.arg == "inplace" and not _is_false(keyword.value) and node.args:
            changes.written.update(bases_of(node.args[0]))
    match node.func:
        case ast.Attribute(value=receiver, attr=name):
            _note_method(node, receiver, name, changes, definitions)
        case ast.Name(id=name):
            known = definitions.functions.get(name, [])
            _note_function(node, name, known, changes, definitions)
        case ast.Subscript(value=kernel):
            _note_launch(node, kernel, changes, definitions)


def _note_method(
    node: ast.Call,
    receiver: ast.expr,
    name: str,
    changes: Changes,
    definitions: Definitions,
) -> None:
    path = path_of(receiver)
    if path is not None and path[0] in definitions.imported:
        _note_function(node, name, [], changes, definitions)
        return
    bases = set(bases_of(receiver))
    if name.endswith("_") and not name.endswith("__"):
        changes.written.update(bases)
        for argument in node.args[:1]:
            changes.written.update(bases_of(argument))
        return
    known = definitions.functions.get(name, [])
    methods = [f for f in known if f.args.args and f.args.args[0].arg in ("self", "cls")]
    own = bool(methods) and path == ("self",)
    if name == "step" and not own:
        changes.trains = changes.trains or not _OTHER_STEPS.search(ast.unparse(receiver))
    reads = name in _READS_OF_ARRAYS and not _is_statement_like(node)
    if name in _MUTATORS and not own and not reads:
        changes.written.update(bases)
    if methods:
        for function in methods:
            _apply(function, [receiver, *node.args], node.keywords, changes, definitions)
    elif name not in definitions.attributes and not _is_array_method(name):
        changes.opaque.update(base for base in bases if base != ("self",))
    _note_function(node, name, [f for f in known if f not in methods], changes, definitions)


def _note_function(
    node: ast.Call,
    name: str,
    known: list[FunctionNode],
    changes: Changes,
    definitions: Definitions,
) -> None:
    for function in known:
        _apply(function, node.args, node.keywords, changes, definitions)
    if known:
        return
    if name in _WRITERS or (name.endswith("_") and not name.endswith("__")):
        for argument in node.args[:1]:
            changes.written.update(bases_of(argument))
    elif _WRITES.search(name):
        for argument in (*node.args, *(k.value for k in node.keywords)):
            changes.written.update(bases_of(argument))


def _note_launch(
    node: ast.Call, kernel: ast.expr, changes: Changes, definitions: Definitions
) -> None:
    """``kernel[grid](...)`` may write into all that it is given, unless its source is there."""
    path = path_of(kernel)
    known = definitions.functions.get(path[-1], []) if path else []
    if not known:
        for argument in (*node.args, *(k.value for k in node.keywords)):
            changes.written.update(bases_of(argument))
    for function in known:
        stored = _stored_by_kernel(function)
        for parameter, argument in _matched(function, node.args, node.keywords):
            if parameter in stored:
                changes.written.update(bases_of(argument))


def _stored_by_kernel(function: FunctionNode) -> set[str]:
    """Parameters that a kernel's stores mention in their address."""
    found: set[str] = set()
    for node in walk(function):
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=[first, *_]) if (
                name == "store" or name.startswith("atomic")
            ):
                found.update(n.id for n in walk(first) if isinstance(n, ast.Name))
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                found.add(name)
    assigned = [n for n in walk(function) if isinstance(n, ast.Assign)]
    for node in reversed(assigned):
        if any(isinstance(t, ast.Name) and t.id in found for t in node.targets):
            found.update(n.id for n in walk(node.value) if isinstance(n, ast.Name))
    return found


def _apply(
    function: FunctionNode,
    arguments: list[ast.expr],
    keywords: list[ast.keyword],
    changes: Changes,
    definitions: Definitions,
) -> None:
    """What calling a function of the program with these arguments changes."""
    inner = definitions.changes_of(function)
    changes.trains = changes.trains or inner.trains
    outside = {
        name
        for node in walk(function)
        if isinstance(node, (ast.Global, ast.Nonlocal))
        for name in node.names
    }
    changes.rebound.update(path for path in inner.rebound if path[0] in outside)
    for parameter, argument in _matched(function, arguments, keywords):
        for base in bases_of(argument):
            changes.written.update(
                base + path[1:] for path in inner.written if path[0] == parameter
            )
            changes.rebound.update(
                base + path[1:] for path in inner.rebound if path[0] == parameter and len(path) > 1
            )


def _matched(
    function: FunctionNode, arguments: list[ast.expr], keywords: list[ast.keyword]
) -> Iterator[tuple[str, ast.expr]]:
    spec = function.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    yield from zip(names, arguments, strict=False)
    yield from ((k.arg, k.value) for k in keywords if k.arg is not None)


def _is_array_method(name: str) -> bool:
    return name in knowledge.methods("torch") or name in knowledge.methods("numpy")


def _is_statement_like(node: ast.Call) -> bool:
    """``seen.add(x)``: a set's method is given one thing, and no number."""
    return len(node.args) == 1 and not node.keywords and isinstance(node.args[0], ast.Name)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _aliases(root: ast.AST) -> Iterator[tuple[Path, Path]]:
    """Pairs of paths that may lead to the same memory, by assignment."""
    for node in walk(root):
        match node:
            case ast.Assign(targets=targets, value=value):
                pairs = [(target, value) for target in targets]
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                pairs = [(target, value)]
            case ast.NamedExpr(target=target, value=value):
                pairs = [(target, value)]
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                pairs = [(target, value)]
            case ast.comprehension(target=target, iter=value):
                pairs = [(target, value)]
            case _:
                continue
        for target, value in pairs:
            for left, right in _paired(target, value):
                bases = list(bases_of(right))
                for one in _targets(left):
                    yield from ((one, base) for base in bases)


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """``a, b = x, y`` makes ``a`` another name of ``x`` only."""
    match target, value:
        case (ast.Tuple(elts=left), ast.Tuple(elts=right)) if len(left) == len(right):
            yield from zip(left, right, strict=True)
        case _:
            yield target, value


def _targets(node: ast.expr) -> Iterator[Path]:
    if isinstance(node, (ast.Tuple, ast.List)):
        for part in node.elts:
            yield from _targets(part)
    elif isinstance(node, ast.Starred):
        yield from _targets(node.value)
    else:
        yield from bases_of(node)


def _close(written: set[Path], aliases: list[tuple[Path, Path]]) -> None:
    """Add the other names of what is written into."""
    grown = True
    while grown:
        grown = False
        for one, other in aliases:
            for left, right in ((one, other), (other, one)):
                if right not in written and any(related(left, path) for path in written):
                    written.add(right)
                    grown = True
