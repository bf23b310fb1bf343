"""Which functions may make an array longer by concatenation, as far as their syntax tells: a sieve.

The question is that of :mod:`memlint.analysis.accumulation`, asked of the loops of one function.
Only where what has grown leaves the function are the calls of it looked for, by its name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

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
from memlint.analysis.last_name import last_name
from memlint.analysis.walking import children, nodes_of, walk
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

_NAMES = r"cat|concat|concatenate|[hvd]stack|row_stack|column_stack"
_JOIN = late_pattern(rf"\b(?:{_NAMES})\b|\b[rc]_\s*\[|import\b.*\b(?:append|r_|c_)\b")
_JOIN_NAME = late_pattern(rf"(?:{_NAMES}|append|r_|c_)$")
_ALIAS = late_pattern(
    rf"\b(?:{_NAMES}|append|r_|c_) as (\w+)|"
    rf"\b(\w+) *= *(?:(?:functools\.)?partial\( *)?(?:\w+\.)+(?:{_NAMES}|append|r_|c_) *"
    r"(?:,.*\) *)?(?:#.*)?$",
    re.MULTILINE,
)
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
    if any(word in text for word in ("cat", "stack", "r_", "c_", "append")) and _JOIN.search(text):
        return True
    at = text.find("append(")
    while at >= 0:
        if _is_taken(text, at):
            return True
        at = text.find("append(", at + 1)
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
    if site.scope is None:
        return False
    return _grows_by_calls(Flow(seed).function(site.scope), site.scope, source)


def _joins(function: ast.AST, source: str) -> Iterator[tuple[_Site, Seed]]:
    """The concatenations of a function, as seeds."""
    aliases = _aliases(source)
    for site in _sites(function):
        node = site.node
        assert isinstance(node, (ast.Call, ast.Subscript))
        name = last_name(node.func if isinstance(node, ast.Call) else node.value)
        if name in aliases or _JOIN_NAME.match(name):
            operands = tuple(operands_of(node))
            if len(operands) > 1:
                yield _Site(node, site.loops, site.scope), Seed(node, operands)


@lru_cache(maxsize=4)
def _aliases(source: str) -> frozenset[str]:
    """Other names of functions that concatenate."""
    return frozenset(first or second for first, second in _ALIAS.findall(source))


def _sites(root: ast.AST) -> Iterator[_Site]:
    """The calls and subscripts in a piece of code."""
    waiting: list[tuple[ast.AST, tuple[Loop, ...], Function | None]] = [(root, (), None)]
    while waiting:
        node, loops, scope = waiting.pop()
        if isinstance(node, (ast.Call, ast.Subscript)):
            yield _Site(node, loops, scope)
        elif isinstance(node, LOOPS):
            loops = (node, *loops)
        elif isinstance(node, FUNCTIONS):
            scope = node
        elif isinstance(node, (ast.Lambda, ast.ClassDef)):
            scope = None
        waiting.extend((child, loops, scope) for child in children(node))


# Loops


def _grows_in_loop(seed: Seed, site: _Site) -> bool:
    return any(
        not _is_short(loop) and any(longer_in(loop, seed)) and not is_over_parts(loop)
        for loop in site.loops
    )


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


def _calls_of(name: str, source: str) -> tuple[_Site, ...]:
    """The calls that may be of a function with this name."""
    named = re.compile(rf"(?<!def )\b{name}\b")
    if name not in _UNNAMED and (source.count(name) < 2 or named.search(source) is None):
        return ()
    calls = _calls(source)
    if name not in _UNNAMED and re.search(named.pattern + r"(?!\s*\()", source) is None:
        return calls.get(name, ())
    # It runs without being named, or is handed on as a value.
    defined = _defined(source)
    return tuple(
        site
        for called, sites in calls.items()
        if called == name or called not in defined
        for site in sites
        if called == name or site.loops
    )


@lru_cache(maxsize=2)
def _calls(source: str) -> dict[str, tuple[_Site, ...]]:
    """The calls of a program by the names of what they call."""
    found: dict[str, list[_Site]] = {}
    for site in _sites(ast.parse(source)):
        if isinstance(site.node, ast.Call):
            found.setdefault(last_name(site.node.func), []).append(site)
    return {name: tuple(sites) for name, sites in found.items()}


@lru_cache(maxsize=2)
def _defined(source: str) -> frozenset[str]:
    """The names of the functions of a program."""
    return frozenset(re.findall(r"\bdef (\w+)", source))
