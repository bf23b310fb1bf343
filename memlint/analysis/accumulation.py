"""Arrays that a loop makes longer one concatenation at a time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memlint.analysis.carried import Flow, How, Outcome, Seed, grown, path_of
from memlint.analysis.events import Called, Enclosing
from memlint.analysis.uses import Uses
from memlint.analysis.values import Object, alternatives
from memlint.analysis.walking import walk
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
LOOPS = (ast.For, ast.AsyncFor, ast.While)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# So few iterations copy little.
FEW = 16
DEEPEST = 4
# Methods that somebody calls once a step, a batch or a sample.
STEP = late_pattern(
    r"(^|_)(forward|call|step|update|add|append|push|put|store|record|observe|collect|extend|insert|"
    r"accumulate|remember|process|log|track|write|enqueue|receive|ingest|feed)($|_)"
)
# What the parts of a model, and other short lists of settings, are called.
PARTS = late_pattern(
    r"(layers?|depths?|blocks?|convs?|modules?|stages?|levels?|heads?|branches|downs?|ups?|scales?|"
    r"dilations?|kernel_sizes?|ratios?|strides?|dims?|ndim|axes|axis|cells?|nets|models|rates)$",
    re.IGNORECASE,
)
CONFIGURED = late_pattern(r"(^|[.(,_ ])(config|cfg|hparams)\.")
MODULE_LISTS = frozenset(
    f"torch.nn.{prefix}{name}"
    for prefix in ("", "modules.container.")
    for name in ("ModuleList", "Sequential", "ModuleDict")
)


@dataclass(frozen=True, slots=True)
class Accumulation:
    """An array that grows: ``name`` holds it, ``loop`` runs around the concatenation (``None``
    where it is the method of the attribute's object that is called over and over), ``read``
    tells that the loop needs the whole array in each iteration."""

    name: str
    loop: Enclosing | None
    read: bool = False


def accumulation(called: Called, uses: Uses) -> Accumulation | None:
    """The array that a concatenation makes longer from call to call, if it does."""
    operands = tuple(operands_of(called.node))
    if len(operands) < 2 or _axis_varies(called):
        return None
    seed = Seed(called.node, operands)
    waiting = list(reversed(called.context.loops))
    calls = list(called.context.calls)
    for _ in range(DEEPEST):
        scope = uses.scope_of(seed.node)
        while waiting and _within(seed.node, waiting[0].loop.node):
            one = waiting.pop(0)
            found = _in_loop(one, seed, uses)
            if found is not None:
                return found
        if not isinstance(scope, FUNCTIONS):
            return None
        outcome = Flow(seed).function(scope)
        if not calls:
            return _by_attribute(scope, outcome, uses)
        caller = in_caller(outcome, scope, calls.pop())
        if caller is None:
            return None
        seed = caller
    return None


def operands_of(node: ast.AST) -> Iterator[ast.expr]:
    """The arrays that a concatenation puts together, where they stand in the call."""
    match node:
        case ast.Subscript(slice=ast.Tuple(elts=parts)):  # ``np.r_[a, b]``
            yield from parts
        case ast.Call(func=ast.Attribute(attr="append") | ast.Name(id="append"), args=[a, b, *_]):
            yield a
            yield b
        case ast.Call(args=args, keywords=keywords):
            given = args[:1] or [k.value for k in keywords if k.arg in LISTS]
            for one in given:
                yield from _elements(one)


LISTS = ("tensors", "arrays", "tup", "seq", "objs", "xs")


def _elements(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield part.value if isinstance(part, ast.Starred) else part
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            for side in (left, right):
                found = list(_elements(side))
                yield from found or [ast.Constant(None)]


def _axis_varies(called: Called) -> bool:
    """Whether the axis is the variable of a loop: each axis once, as in padding."""
    given: list[ast.expr] = []
    if isinstance(called.node, ast.Call):
        given = called.node.args[1:] + [k.value for k in called.node.keywords]
    return any(
        isinstance(name, ast.Name) and name.id == enclosing.loop.variable
        for one in given
        if not isinstance(one, (ast.List, ast.Tuple))
        for enclosing in called.context.loops
        for name in walk(one)
        if _is_axis(called.node, one)
    )


def _is_axis(call: ast.expr, argument: ast.expr) -> bool:
    if not isinstance(call, ast.Call):
        return False
    if any(k.value is argument and k.arg in ("dim", "axis") for k in call.keywords):
        return True
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return argument in call.args and call.args.index(argument) == (2 if name == "append" else 1)


def _within(node: ast.AST, outer: ast.AST) -> bool:
    return any(one is node for one in walk(outer))


# Loops


def _in_loop(enclosing: Enclosing, seed: Seed, uses: Uses) -> Accumulation | None:
    loop = enclosing.loop.node
    if not isinstance(loop, LOOPS) or _is_short(enclosing) or _runs_over_parts(enclosing, loop):
        return None
    for path in longer_in(loop, seed):
        if _cut_elsewhere(path, loop, uses):
            return None
        return Accumulation(path, enclosing, _is_read(path, loop, seed))
    return None


def longer_in(loop: Loop, seed: Seed) -> Iterator[str]:
    """The variables that each iteration of a loop makes longer."""
    counters: set[str] | None = None
    for path in grown(Flow(seed).iteration(loop)):
        counters = _counters_of(loop) if counters is None else counters
        if not _key_names(path) & counters:  # else each iteration has an item of its own
            yield path


def _counters_of(loop: Loop) -> set[str]:
    """The names that are another in each iteration."""
    names = set() if isinstance(loop, ast.While) else _names_in(loop.target)
    for node in walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def _is_short(enclosing: Enclosing) -> bool:
    trips = enclosing.loop.trips
    return trips is not None and trips <= FEW


def _runs_over_parts(enclosing: Enclosing, loop: Loop) -> bool:
    """Whether a loop is over the parts of a model: its length is the architecture's."""
    iterates = enclosing.loop.iterates
    if iterates is not None and any(
        isinstance(one, Object) and one.cls in MODULE_LISTS for one in alternatives(iterates)
    ):
        return True
    return is_over_parts(loop)


def is_over_parts(loop: Loop) -> bool:
    """Whether a loop is over the parts of a model by what these are called."""
    if isinstance(loop, ast.While):
        return False
    if any(map(PARTS.search, _last_names(loop.iter))) or CONFIGURED.search(ast.unparse(loop.iter)):
        return True
    targets = _names_in(loop.target)
    return any(
        isinstance(node, ast.Call) and _callee_of(node.func) & targets for node in walk(loop)
    )


def _callee_of(func: ast.expr) -> set[str]:
    """The name that is called, or by which what is called is picked from a list."""
    match func:
        case ast.Name(id=name):
            return {name}
        case ast.Subscript(slice=key):
            return _names_in(key)
    return set()


def _last_names(node: ast.expr) -> Iterator[str]:
    """The names of what a loop is over, through ``range``, ``len``, ``enumerate``, ``zip``."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
        case ast.Call(func=ast.Name(id=name), args=args) if name in WRAPPERS:
            for one in args:
                yield from _last_names(one)
        case ast.BinOp(left=left, right=right):
            yield from _last_names(left)
            yield from _last_names(right)
        case ast.Subscript(value=value):
            yield from _last_names(value)


WRAPPERS = frozenset({"range", "len", "enumerate", "zip", "reversed"})


def _names_in(node: ast.AST) -> set[str]:
    return {one.id for one in walk(node) if isinstance(one, ast.Name)}


def _key_names(path: str) -> set[str]:
    """The names in the keys of a path."""
    return {
        name for key in re.findall(r"\[(.*?)\]", path) for name in re.findall(r"[A-Za-z_]\w*", key)
    }


def _is_read(path: str, loop: Loop, seed: Seed) -> bool:
    """Whether the loop reads the array for more than its length outside the concatenation."""
    handed_on = {id(_stripped(one)) for one in seed.operands if isinstance(one, ast.expr)}
    pending: list[ast.AST] = list(loop.body)
    if isinstance(loop, ast.While):
        pending.append(loop.test)
    while pending:
        node = pending.pop()
        match node:
            case ast.Call(func=ast.Name(id="len" | "print")):
                continue
            case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                continue
            case ast.Attribute(attr="shape" | "ndim" | "size" | "numel" | "dtype" | "device"):
                continue
            case ast.Call(func=ast.Attribute(attr="size" | "numel" | "dim")):
                continue
            case ast.Assign(value=value):
                handed_on.add(id(value))
            case ast.IfExp(body=body, orelse=orelse):
                handed_on.update((id(body), id(orelse)))
        if (
            isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
            and isinstance(node.ctx, ast.Load)
            and path_of(node) == path
        ):
            if id(node) not in handed_on:
                return True
            continue
        pending.extend(ast.iter_child_nodes(node))
    return False


def _stripped(node: ast.expr) -> ast.expr:
    """``x`` of ``x.to(device)``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return node


def _cut_elsewhere(path: str, node: ast.AST, uses: Uses) -> bool:
    """Whether a method of the same class keeps an attribute short."""
    if not path.startswith("self."):
        return False
    owner = uses.class_of(node)
    return owner is not None and any(
        isinstance(one, ast.Assign)
        and any(path_of(target) == path for target in one.targets)
        and isinstance(one.value, ast.Subscript)
        and path_of(one.value.value) == path
        for one in walk(owner)
    )


# Calls


def _by_attribute(function: Function, outcome: Outcome, uses: Uses) -> Accumulation | None:
    """An attribute that a method makes longer each time it is called."""
    for path in longer_attributes(function, outcome):
        if not _cut_elsewhere(path, function, uses):
            return Accumulation(path, None)
    return None


def longer_attributes(function: Function, outcome: Outcome) -> Iterator[str]:
    """The attributes that a method that is called over and over makes longer."""
    if STEP.search(function.name.strip("_")):
        yield from (path for path in grown(outcome.variables) if path.startswith("self."))


def in_caller(outcome: Outcome, function: Function, call: ast.AST) -> Seed | None:
    """The call of a function as a seed where it stands."""
    if not isinstance(call, ast.Call):
        return None
    bound = _bound(function, call)
    outer = {
        name
        for node in walk(function)
        if isinstance(node, (ast.Global, ast.Nonlocal))
        for name in node.names
    }
    value = _sources(outcome.value, bound)
    items = tuple(
        (i, sources) for i, one in enumerate(outcome.items) if (sources := _sources(one, bound))
    )
    effects: list[tuple[str, tuple[str, ...]]] = []
    for path in grown(outcome.variables):
        there = _there(path, bound)
        if isinstance(there, str) and ("." in path or "[" in path):
            effects.append((there, (there,)))
        elif there is None and _head_of(path) in outer:
            effects.append((path, (path,)))
    if not (value or items or effects):
        return None
    return Seed(call, value, items, tuple(effects))


def _sources(
    origins: frozenset[tuple[str, How]], bound: dict[str, ast.expr]
) -> tuple[ast.expr | str, ...]:
    """What in the caller a grown value comes from."""
    roots = [root for root, how in origins if how is How.GROWN and (root, How.CUT) not in origins]
    found = [_there(root, bound) for root in roots]
    return tuple(one for one in found if one is not None)


def _there(path: str, bound: dict[str, ast.expr]) -> ast.expr | str | None:
    """A path in a function as the caller knows it, where it begins with a parameter."""
    name = _head_of(path)
    if name not in bound:
        return None
    given = bound[name]
    if path == name:
        return given
    base = path_of(given)
    return None if base is None else base + path[len(name) :]


def _head_of(path: str) -> str:
    """The variable that a path begins with."""
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def _bound(function: Function, call: ast.Call) -> dict[str, ast.expr]:
    """The arguments of a call by the parameters that take them."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    bound: dict[str, ast.expr] = {}
    if names and names[0] in ("self", "cls"):
        receiver = call.func
        if isinstance(receiver, ast.Attribute) and receiver.attr == function.name:
            receiver = receiver.value
        if isinstance(receiver, ast.Call):  # ``super().push(x)``
            receiver = ast.Name(names[0])
        bound[names.pop(0)] = receiver
    for name, given in zip(names, call.args, strict=False):
        if isinstance(given, ast.Starred):
            break
        bound[name] = given
    bound.update({k.arg: k.value for k in call.keywords if k.arg is not None})
    return bound
