"""Which functions may make an array longer by concatenation, as far as their syntax tells: a sieve.

The question is that of :mod:`memlint.analysis.accumulation`, asked of the loops of one function.
Only where what has grown leaves the function are the calls of it looked for, by its name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from memlint.analysis.accumulation import (
    DEEPEST,
    FEW,
    FUNCTIONS,
    LOOPS,
    Function,
    Loop,
    in_caller,
    is_over_parts,
    longer_attributes,
    longer_in,
    operands_of,
)
from memlint.analysis.carried import Flow, How, Outcome, Seed, grown
from memlint.analysis.definitions_text import places_of
from memlint.analysis.last_name import last_name
from memlint.analysis.places.leaving import may_leave
from memlint.analysis.walking import blocks_in, kinds_in, nodes_of, tree_of, walk
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

_JOINING = (
    "cat", "concat", "concatenate", "hstack", "vstack", "dstack", "row_stack", "column_stack",
)  # fmt: skip
_NAMES = "|".join(_JOINING)
_INDEXED = late_pattern(r"\b[rc]_\s*\[")
_IMPORTED = late_pattern(r"import\b.*\b(?:append|r_|c_)\b")
_JOIN_NAME = late_pattern(rf"(?:{_NAMES}|append|r_|c_)$")
_ALIAS = late_pattern(
    rf"\b(?:{_NAMES}|append|r_|c_) as (\w+)|"
    rf"\b(\w+) *= *(?:(?:functools\.)?partial\( *)?(?:\w+\.)+(?:{_NAMES}|append|r_|c_) *"
    r"(?:,.*\) *)?(?:#.*)?$",
    re.MULTILINE,
)
_BLOCKS = (*LOOPS, *FUNCTIONS, ast.ClassDef)
# Methods that run without being named.
_UNNAMED = frozenset({"__init__", "__call__", "forward", "__getitem__", "__next__", "__iter__"})


@dataclass(frozen=True, slots=True)
class _Site:
    """A call, the loops around it, innermost first, and the function that it stands in."""

    node: ast.AST
    loops: tuple[Loop, ...]
    scope: Function | None


def may_join(text: str) -> bool:
    """Whether a text names a function that concatenates."""
    if any(word in text and _is_named(word, text) for word in _JOINING):
        return True
    if ("r_" in text or "c_" in text) and _INDEXED.search(text):
        return True
    if "append" not in text and "r_" not in text and "c_" not in text:
        return False
    if "import" in text and _IMPORTED.search(text):
        return True
    at = text.find("append(")
    while at >= 0:
        if _is_taken(text, at):
            return True
        at = text.find("append(", at + 1)
    return False


def _is_named(word: str, text: str) -> bool:
    """Whether a word occurs that is no part of another."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        before, after = text[at - 1 : at], text[end : end + 1]
        if not (before.isalnum() or before == "_" or after.isalnum() or after == "_"):
            return True
        at = text.find(word, end)
    return False


def _is_taken(text: str, at: int) -> bool:
    """Whether something takes the result of a call that begins at a place.

    Of a list, ``append`` gives nothing that could be assigned, returned or handed on.
    """
    while at and (text[at - 1].isalnum() or text[at - 1] in "_."):
        at -= 1
    before = text[max(at - 200, 0) : at].rstrip(" \t")
    if before.endswith(":"):
        return True
    return before.rstrip("\\\n\t ").endswith(("=", "(", ",", "[", "return", "else"))


def may_grow(function: ast.AST, around: str, source: str) -> bool:
    """Whether a concatenation in a function may take the place of one of its operands."""
    del around
    return any(_grows(seed, site, source) for site, seed in _joins(function, source))


def _grows(seed: Seed, site: _Site, source: str) -> bool:
    if _grows_in_loop(seed, site):
        return True
    if site.scope is None or not may_leave(seed, site.scope):
        return False
    return _grows_by_calls(Flow(seed).function(site.scope), site.scope, source)


def _joins(function: ast.AST, source: str) -> Iterator[tuple[_Site, Seed]]:
    """The concatenations of a function, as seeds."""
    aliases = _aliases(source)
    kinds = kinds_in(function)
    for node in (*kinds[ast.Call], *kinds[ast.Subscript]):
        name = last_name(node.func if isinstance(node, ast.Call) else node.value)
        if name in aliases or _JOIN_NAME.match(name):
            operands = tuple(operands_of(node))
            if len(operands) > 1:
                site = _site(node, function)
                yield site, Seed(node, operands)


@lru_cache(maxsize=4)
def _aliases(source: str) -> frozenset[str]:
    """Other names of functions that concatenate."""
    lines = [
        line
        for line in source.split("\n")
        if ("=" in line or " as " in line)
        and ("cat" in line or "stack" in line or "append" in line or "r_" in line or "c_" in line)
    ]
    found = (one for line in lines for one in _ALIAS.findall(line))
    return frozenset(first or second for first, second in found)


def _site(node: ast.AST, root: ast.AST) -> _Site:
    """Where a node stands in a piece of code."""
    start, end = _start(node), _end(node)
    around = [one for first, last, one in _blocks(root) if first <= start and end <= last]
    around.reverse()
    loops = tuple(one for one in around if isinstance(one, LOOPS))
    scope = next((one for one in around if not isinstance(one, LOOPS)), None)
    return _Site(node, loops, scope if isinstance(scope, FUNCTIONS) else None)


_Place: TypeAlias = tuple[int, int]


@lru_cache(maxsize=4)
def _blocks(root: ast.AST) -> list[tuple[_Place, _Place, ast.AST]]:
    """The loops and definitions of a piece of code and where they begin and end, those further
    out first; expressions, of which only lambdas would be some, are not looked at."""
    found = [one for one in blocks_in(root) if isinstance(one, _BLOCKS)]
    return sorted(((_start(one), _end(one), one) for one in found), key=lambda block: block[0])


def _start(node: ast.AST) -> _Place:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def _end(node: ast.AST) -> _Place:
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]


# Loops


def _grows_in_loop(seed: Seed, site: _Site) -> bool:
    return any(not _adds_nothing(loop) and any(longer_in(loop, seed)) for loop in site.loops)


def _is_short(loop: Loop) -> bool:
    """Whether a loop is written to run a few times."""
    if isinstance(loop, ast.While):
        return False
    match loop.iter:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return len(parts) <= FEW and not any(isinstance(one, ast.Starred) for one in parts)
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(count))]):
            return count <= FEW
    return False


# Calls


@lru_cache(maxsize=256)
def _adds_nothing(loop: Loop) -> bool:
    return _is_short(loop) or is_over_parts(loop)


def _grows_by_calls(outcome: Outcome, function: Function, source: str) -> bool:
    """Whether what has grown in a function makes something longer where it is called."""
    if any(longer_attributes(function, outcome)):
        return True
    return _leaves(outcome, function) and _grows_at_calls(outcome, function, source, DEEPEST - 1)


def _grows_at_calls(outcome: Outcome, function: Function, source: str, depth: int) -> bool:
    for site in _calls_of(function.name, source):
        seed = in_caller(outcome, function, site.node)
        if seed is None:
            continue
        if _grows_in_loop(seed, site):
            return True
        if site.scope is None or depth == 1 or site.scope.name == function.name:
            continue
        further = Flow(seed).function(site.scope)
        if any(longer_attributes(site.scope, further)):
            return True
        if _leaves(further, site.scope) and _grows_at_calls(further, site.scope, source, depth - 1):
            return True
    return False


def _leaves(outcome: Outcome, function: Function) -> bool:
    """Whether a caller may know something that has grown."""
    parameters = {one.arg for one in walk(function.args) if isinstance(one, ast.arg)}
    returned = [outcome.value, *outcome.items]
    if any(
        how is How.GROWN and re.split(r"[.\[]", root, maxsplit=1)[0] in parameters
        for origins in returned
        for root, how in origins
    ):
        return True
    outer = {
        name
        for node in nodes_of(function)
        if isinstance(node, (ast.Global, ast.Nonlocal))
        for name in node.names
    }
    for path in grown(outcome.variables):
        head = re.split(r"[.\[]", path, maxsplit=1)[0]
        if head in outer or (head in parameters and path != head):
            return True
    return False


@lru_cache(maxsize=64)
def _calls_of(name: str, source: str) -> tuple[_Site, ...]:
    """The calls that may be of a function with this name."""
    if name in _UNNAMED:
        return (*_calls(source, name), *_calls_in_loops(source))
    called = handed = False
    for place in places_of(name, source):
        if source[place - 4 : place] == "def ":
            continue
        called = True
        after = source[place + len(name) : place + len(name) + 200].lstrip()
        handed = handed or not after.startswith("(")
    if not called:
        return ()
    # It may be handed on as a value.
    return (*_calls(source, name), *(_calls_in_loops(source) if handed else ()))


@lru_cache(maxsize=64)
def _calls(source: str, name: str) -> tuple[_Site, ...]:
    """The calls of a program of what has a name."""
    lines = {source.count("\n", 0, place) + 1 for place in places_of(name, source)}
    tree = _tree(source)
    return tuple(
        _site(one, tree)
        for top in _tops(tree)
        if any(top.lineno <= line <= (top.end_lineno or line) for line in lines)
        for one in kinds_in(top)[ast.Call]
        if last_name(one.func) == name
    )


@lru_cache(maxsize=4)
def _tops(tree: ast.Module) -> list[ast.stmt]:
    """The statements of a module, and of its classes instead of these."""
    found = list[ast.stmt]()
    for one in tree.body:
        found += one.body if isinstance(one, ast.ClassDef) else [one]
    return found


@lru_cache(maxsize=2)
def _calls_in_loops(source: str) -> tuple[_Site, ...]:
    """The calls in loops of what is no function of a program."""
    tree, defined = _tree(source), _defined(source)
    inside = dict.fromkeys(
        one
        for _, _, loop in _blocks(tree)
        if isinstance(loop, LOOPS)
        for one in walk(loop)
        if isinstance(one, ast.Call)
    )
    return tuple(_site(one, tree) for one in inside if last_name(one.func) not in defined)


@lru_cache(maxsize=2)
def _tree(source: str) -> ast.Module:
    return tree_of(source)


@lru_cache(maxsize=2)
def _defined(source: str) -> frozenset[str]:
    """The names of the functions of a program."""
    return frozenset(re.findall(r"\bdef (\w+)", source))
