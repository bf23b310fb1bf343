"""Loops of the interpreter that do arithmetic on one element of an array after the other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.elements import makings
from memlint.analysis.events import Access, Called, Loop, LoopNest
from memlint.analysis.knowledge import SliceValue
from memlint.analysis.knowledge.array_makers import is_array
from memlint.analysis.knowledge.scalars import SCALAR_FUNCTIONS
from memlint.analysis.linear import linear
from memlint.analysis.locality import SHORT, arrays_in
from memlint.analysis.values import Sequence, Tensor, Value, alternatives, deps_of
from memlint.analysis.walking import definitions_in, walk
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

SCALAR_BUILTINS = frozenset({"abs", "min", "max", "float", "int", "round", "bool", "complex"})
NO_ARITHMETIC = (
    ast.MatMult, ast.Slice, ast.Lambda, ast.Await, ast.NamedExpr, ast.ListComp, ast.GeneratorExp,
    ast.DictComp, ast.SetComp, ast.List, ast.Dict, ast.Set, ast.JoinedStr, ast.In, ast.NotIn,
)  # fmt: skip
ARRAYS = frozenset({"numpy", "torch", "cupy"})
# Decorators that leave a function to the interpreter; any other may compile it.
INTERPRETED = late_pattern(
    r"property|staticmethod|classmethod|abstractmethod|override|setter|getter|cache|wraps|"
    r"contextmanager|no_grad|inference_mode|dataclass|pytest|fixture|route|command|register|timer|"
    r"deprecat|singledispatch|torch\.jit\.(script|unused|ignore)"
)
OVERLOADS = late_pattern(r"overload|generated_jit|register_jitable|lower_builtin")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class ElementLoop:
    """A loop whose body is arithmetic on the elements of ``arrays``; ``torch`` tells that some
    of them are tensors of torch, ``known`` that one is known to be an array."""

    node: ast.AST
    variable: str
    arrays: tuple[str, ...]
    torch: bool
    known: bool


def compiled_lines(tree: ast.Module) -> list[tuple[int, int]]:
    """The lines of functions and classes that a decorator may compile, and, where a file
    implements functions for a compiler, of the functions that functions return."""
    defined = [node for node in definitions_in(tree) if isinstance(node, DEFINITIONS)]
    decorators = {id(node): [_called(one) for one in node.decorator_list] for node in defined}
    overloads = any(OVERLOADS.search(one) for names in decorators.values() for one in names)
    compiled = [
        node for node in defined if any(not INTERPRETED.search(one) for one in decorators[id(node)])
    ]
    for node in defined if overloads else ():
        compiled += [one for one in walk(node) if isinstance(one, FUNCTIONS) and one is not node]
    return [(node.lineno, node.end_lineno or node.lineno) for node in compiled]


def _called(node: ast.expr) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


def element_loop(nest: LoopNest) -> ElementLoop | None:
    """The innermost loop of a nest, where it is one over elements."""
    inner = nest.loops[-1]
    node = inner.node
    if nest.compiled is not None or not isinstance(node, ast.For) or node.orelse:
        return None
    if (inner.trips is not None and inner.trips <= SHORT) or counts_axes(node.iter):
        return None
    if not is_arithmetic(node.body):
        return None
    if not _stores_only_to(nest.accesses, node):
        return None
    if inner.kind == "iterable":
        return _over_array(nest, inner, node)
    if inner.kind != "range":
        return None
    return _by_index(nest, inner, node)


def counts_axes(iterable: ast.expr) -> bool:
    """Whether a loop runs over the axes of an array, of which there are few."""
    return any(
        (isinstance(one, ast.Attribute) and one.attr == "ndim")
        or (
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Name)
            and one.func.id == "len"
            and any(isinstance(a, ast.Attribute) and a.attr == "shape" for a in one.args)
        )
        for one in walk(iterable)
    )


def _stores_only_to(accesses: tuple[Access, ...], node: ast.For) -> bool:
    """Whether all that is stored goes into arrays, none into dictionaries or lists."""
    known = {id(access.node) for access in accesses}
    return all(
        id(one) in known
        for statement in node.body
        for one in walk(statement)
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store)
    )


def _over_array(nest: LoopNest, loop: Loop, node: ast.For) -> ElementLoop | None:
    """``for v in x``, ``for i, v in enumerate(x)``, ``for v, w in zip(x, y)``."""
    options = tuple(arrays_in(loop.iterates))
    taken = {one.id for one in walk(node.target) if isinstance(one, ast.Name)}
    counted = isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "enumerate"
    if counted:
        taken.discard(loop.variable)
    tensors = [one for one in options if isinstance(one, Tensor)]
    ranks = {1, None} if all(_takes_numbers(node, name) for name in taken) else {1}
    if any(one.layout.rank not in ranks or one.lib not in ARRAYS for one in tensors):
        return None
    rest = [one for one in options if not isinstance(one, Tensor)]
    if not options or not all(None in ranks and is_array(one) for one in rest):
        return None
    if any(_looks_up(node, name) for name in taken):
        return None
    if not all(map(_picks_element, nest.accesses)) or not _independent(nest.accesses, loop):
        return None
    names = tuple(ast.unparse(one) for one in _iterated(node.iter))
    torch = any(one.lib == "torch" for one in tensors)
    return ElementLoop(node, loop.variable, names, torch, known=True)


def _iterated(node: ast.expr) -> list[ast.expr]:
    """The arrays in ``enumerate(x)`` and ``zip(x, y)``."""
    match node:
        case ast.Call(func=ast.Name(id="enumerate" | "zip"), args=[_, *_] as given):
            if all(not isinstance(one, ast.Starred) for one in given):
                parts = given[:1] if ast.unparse(node.func) == "enumerate" else given
                return [inner for one in parts for inner in _iterated(one)]
    return [node]


def _looks_up(node: ast.For, name: str) -> bool:
    """Whether what is taken out is used as a key."""
    return any(
        isinstance(inner, ast.Name) and inner.id == name
        for one in walk(node)
        if isinstance(one, ast.Subscript)
        for inner in walk(one.slice)
    )


def _takes_numbers(node: ast.For, name: str) -> bool:
    """Whether what is taken out is shown to be single numbers: ``float(v)``, ``v.item()``."""
    for call in walk(node):
        match call:
            case ast.Call(func=ast.Name(id="float" | "int"), args=[ast.Name(id=given)]):
                pass
            case ast.Call(func=ast.Attribute(value=ast.Name(id=given), attr="item")):
                pass
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math")), args=[ast.Name(id=given)]):
                pass
            case _:
                continue
        if given == name:
            return True
    return False


def _by_index(nest: LoopNest, inner: Loop, node: ast.For) -> ElementLoop | None:
    """``for i in range(n): y[i] = x[i] * 2``."""
    own = [a for a in nest.accesses if inner.symbol in _deps(a)]
    if not own or not all(_picks_element(access) for access in nest.accesses):
        return None
    if not _independent(nest.accesses, inner):
        return None
    tensors = [v for a in own for v in alternatives(a.value) if isinstance(v, Tensor)]
    known = any(one.lib in ARRAYS for one in tensors) or any(
        is_array(value) for access in own for value in alternatives(access.value)
    )
    if not known and not _by_shape(nest, own):
        return None
    arrays = tuple(dict.fromkeys(access.array for access in own))
    return ElementLoop(node, inner.variable, arrays, any(v.lib == "torch" for v in tensors), known)


def _deps(access: Access) -> frozenset[object]:
    return frozenset[object]().union(
        *(deps_of(item) for item in access.index if not isinstance(item, SliceValue))
    )


def _picks_element(access: Access) -> bool:
    """Whether an access is of one element, as far as can be told."""
    if any(isinstance(item, (SliceValue, Sequence, Tensor)) for item in access.index):
        return False
    if access.array.endswith((".loc", ".iloc", ".at", ".iat")):
        return False
    ranks = [v.layout.rank for v in alternatives(access.value) if isinstance(v, Tensor)]
    return all(rank in (None, len(access.index)) for rank in ranks)


def _independent(accesses: tuple[Access, ...], inner: Loop) -> bool:
    """Whether no iteration needs what another one stored, unless to add to it."""
    places: dict[str, list[str]] = {}
    for access in accesses:
        if access.mode == "load":
            continue
        walks = [item for item in access.index if not isinstance(item, SliceValue)]
        if any(_is_gathered(item) for item in walks) or _has_inner_subscript(access.node):
            return False
        forms = [linear(item) for item in walks if inner.symbol in deps_of(item)]
        if any(form is None or abs(form.coefficient(inner.symbol)) != 1 for form in forms):
            return False
        if not forms and access.mode != "update":
            return False
        places.setdefault(access.array, []).append(_place(access))
    return all(
        set(places[access.array]) == {_place(access)}
        for access in accesses
        if access.array in places
    )


def _is_gathered(item: Value) -> bool:
    """Whether a position is itself taken from an array."""
    return any(made.name == "operator.getitem" for made in makings(item))


def _has_inner_subscript(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and any(
        isinstance(inner, ast.Subscript) for inner in walk(node.slice)
    )


def _place(access: Access) -> str:
    node = access.node
    return ast.unparse(node)


def _by_shape(nest: LoopNest, accesses: list[Access]) -> bool:
    """Whether the way that arrays are used shows that they are no lists."""
    if any(
        isinstance(one.node, ast.Subscript) and isinstance(one.node.slice, ast.Tuple)
        for one in accesses
    ):
        return True
    return any(_ends_at_shape(loop) for loop in nest.loops)


def _ends_at_shape(loop: Loop) -> bool:
    """Whether a loop ends where an array does; a list has a length only."""
    sizes = [symbol.name for symbol in deps_of(loop.stop) if symbol.kind == "size"]
    if any(not name.endswith("[0]") for name in sizes):
        return True
    text = ast.unparse(loop.iterated) if loop.iterated is not None else ""
    return any(word in text for word in (".shape", ".size", "numel("))


def is_arithmetic(body: list[ast.stmt]) -> bool:
    """Whether statements only compute with numbers, and hand on none from one iteration to the
    next but sums and products."""
    bound: set[str] = set()
    later = {
        node.id
        for statement in body
        for node in walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    summed = {
        statement.target.id
        for statement in body
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name)
    }
    return bool(body) and all(_is_simple(one, bound, later, summed) for one in body)


def _is_simple(statement: ast.stmt, bound: set[str], later: set[str], summed: set[str]) -> bool:
    match statement:
        case ast.AugAssign(target=ast.Name(), op=ast.Add() | ast.Sub() | ast.Mult(), value=value):
            return computes(value, bound, later)
        case ast.AugAssign(target=ast.Subscript() as target, value=value):
            return computes(value, bound, later) and computes(target, bound, later)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            if name in summed or not computes(value, bound, later):
                return False
            bound.add(name)
            return True
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            return computes(value, bound, later) and computes(target, bound, later)
        case ast.If(test=test, body=body, orelse=orelse):
            inside = set(bound)
            return computes(test, bound, later) and all(
                _is_simple(one, inside, later, summed) for one in (*body, *orelse)
            )
        case ast.Pass():
            return True
    return False


def computes(node: ast.expr, bound: set[str], later: set[str]) -> bool:
    """Whether an expression is arithmetic on numbers that this iteration has."""
    # Operators are asked for as well, which the quicker walk leaves out.
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load):
            if one.id in later - bound:
                return False
        elif isinstance(one, ast.Call):
            if not _is_scalar_call(one):
                return False
        elif isinstance(one, NO_ARITHMETIC) or _is_text(one):
            return False
    return True


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def _is_scalar_call(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(id=name):
            return name in SCALAR_BUILTINS
        case ast.Attribute(attr="item"):
            return not call.args
        case ast.Attribute(value=ast.Name(id="math" | "cmath")):
            return True
        case ast.Attribute(value=ast.Name(id="np" | "numpy" | "torch" | "cp"), attr=name):
            return name in SCALAR_FUNCTIONS
    return False


def summed_elements(called: Called) -> ElementLoop | None:
    """``sum(t[i].item() for i in range(n))`` and ``sum(v * v for v in x)``."""
    node = called.node
    match node:
        case ast.Call(
            args=[ast.GeneratorExp(elt=elt, generators=[ast.comprehension(ifs=[]) as one])]
        ):
            pass
        case _:
            return None
    if called.context.compiled is not None or not computes(elt, set(), set()):
        return None
    element = next(_elements(called.args.get("", 0)), None)
    if element is None:
        return None
    numbers = any(isinstance(part, ast.Attribute) and part.attr == "item" for part in walk(elt))
    arrays = list(_arrays_of(element, {None} if numbers else set()))
    if not arrays:
        return None
    variable = ast.unparse(one.target)
    torch = any(isinstance(one, Tensor) and one.lib == "torch" for _, one in arrays)
    names = tuple(dict.fromkeys(text for text, _ in arrays))
    return ElementLoop(node, variable, names, torch, known=True)


def _elements(value: Value) -> Iterator[Value]:
    for one in alternatives(value):
        if isinstance(one, Sequence) and one.kind == "generator":
            yield one.element


def _arrays_of(element: Value, also: set[int | None]) -> Iterator[tuple[str, Value]]:
    """The arrays that an element was picked out of by the index of a loop: those with as many
    axes as there are positions, or a number of axes among ``also``."""
    for made in makings(element):
        if made.name != "operator.getitem" or not isinstance(made.node, ast.Subscript):
            continue
        picked = [key for key in made.inputs[1:] if any(s.kind == "loop" for s in deps_of(key))]
        for one in alternatives(made.inputs[0]):
            ranks = {len(made.inputs) - 1, *also}
            ranked = isinstance(one, Tensor) and one.layout.rank in ranks
            if picked and (ranked or (is_array(one) and not isinstance(one, Tensor))):
                yield ast.unparse(made.node.value), one
