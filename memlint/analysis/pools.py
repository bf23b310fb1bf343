"""What goes to the workers of a process pool with every task."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from memlint.analysis.events import Called
from memlint.analysis.invariance import Invariance
from memlint.analysis.knowledge import ITEMSIZE
from memlint.analysis.knowledge.array_makers import is_array
from memlint.analysis.knowledge.workers import POOLS
from memlint.analysis.paths import names_in, path_of
from memlint.analysis.uses import FUNCTIONS, Uses, uses_in
from memlint.analysis.values import (
    Absent,
    Made,
    Mapping,
    Object,
    Partial,
    Sequence,
    Tensor,
    Unknown,
    Value,
    alternatives,
    made_of,
    must_be,
)
from memlint.analysis.walking import walk
from memlint.late_dataclass import dataclass

MAPPERS = frozenset({".map", ".imap", ".imap_unordered", ".map_async"})
STAR_MAPPERS = frozenset({".starmap", ".starmap_async"})
SUBMITTERS = frozenset({".submit", ".apply_async", ".apply"})
_CONTEXTS = ("multiprocessing.get_context", "torch.multiprocessing.get_context")
# Smaller arrays are sent in less time than a task takes to be handed out.
SMALL = 64 * 1024
_FRAMES = ("pandas.read_", "polars.read_", "pandas.DataFrame", "polars.DataFrame")
_NOT_COPIED = frozenset({"numpy.memmap", "numpy.frombuffer", "numpy.ndarray", "numpy.lib.format"})

_AS_IT_IS = frozenset({"numpy.asarray", "numpy.asanyarray", "numpy.ascontiguousarray"})


@dataclass(frozen=True, slots=True)
class Sent:
    """An array that each task (or each ``chunk`` of tasks) gets a copy of: where it is written
    and, where it is a name or an attribute, how."""

    node: ast.expr
    text: str
    what: str
    chunk: bool


def sent_with_each(called: Called, tree: ast.Module, invariance: Invariance) -> Iterator[Sent]:
    """The arrays that a pool's method sends over and over."""
    node = called.node
    if not isinstance(node, ast.Call) or called.receiver is None or not _is_pool(called.receiver):
        return
    values, shown = called.args.positional, node.args
    if not values or len(values) != len(shown):
        return
    reader = _Reader(called, uses_in(tree))
    yield from reader.of_partial(values[0], shown[0])
    if called.name in SUBMITTERS:
        for value, expression in _submitted(called, node):
            if reader.is_array(value, expression) and invariance.is_steady(expression, called):
                yield reader.sent(value, expression, chunk=False)
    elif called.name in STAR_MAPPERS or len(values) <= 2:
        for value, expression in zip(values[1:], shown[1:], strict=True):
            yield from reader.of_items(value, expression)
    else:
        for value, expression in zip(values[1:], shown[1:], strict=True):
            yield from reader.of_repeated(value, expression)


def _is_pool(receiver: Value) -> bool:
    """Whether tasks go to several processes."""
    for one in alternatives(receiver):
        if isinstance(one, Object) and POOLS.get(one.cls) == "process":
            sizes = (one.fact(key) for key in ("0", "max_workers", "processes"))
            if not any(must_be(size, 1) for size in sizes):
                return True
        made = made_of(one)
        if made is not None and made.name in (".Pool", ".ProcessPoolExecutor") and made.inputs:
            context = made_of(made.inputs[0])
            if context is not None and context.name in _CONTEXTS:
                return True
    return False


def _submitted(called: Called, node: ast.Call) -> Iterable[tuple[Value, ast.expr]]:
    if called.name == ".submit":
        for value, given in zip(called.args.positional[1:], node.args[1:], strict=False):
            yield from _parts(value, given)
        for keyword in node.keywords:
            if keyword.arg is not None:
                yield called.args.get(keyword.arg), keyword.value
        return
    for name, place in (("args", 1), ("kwds", 2)):
        shown = next((k.value for k in node.keywords if k.arg == name), None)
        if shown is None and len(node.args) > place:
            shown = node.args[place]
        if shown is not None:
            yield from _parts(called.args.get(name, place), shown)


class _Reader:
    """Finds arrays in the arguments of one call."""

    def __init__(self, called: Called, uses: Uses) -> None:
        self._called = called
        self._uses = uses

    def sent(self, value: Value, expression: ast.expr, *, chunk: bool) -> Sent:
        frame = any(_is_frame(one) for one in alternatives(value))
        return Sent(expression, ast.unparse(expression), "table" if frame else "array", chunk)

    def of_partial(self, function: Value, expression: ast.expr) -> Iterator[Sent]:
        """``partial(work, big)``: pickled with each chunk."""
        if not isinstance(function, Partial):
            return
        node = function.node if isinstance(function.node, ast.Call) else expression
        if not isinstance(node, ast.Call):
            return
        named = {k.arg: k.value for k in node.keywords}
        pairs = [
            *zip(function.args, node.args[1:], strict=False),
            *((value, named[key]) for key, value in function.keywords if key in named),
        ]
        for value, shown in pairs:
            if self.is_array(value, shown):
                yield self.sent(value, shown, chunk=self._called.name not in SUBMITTERS)

    def of_items(self, value: Value, expression: ast.expr) -> Iterator[Sent]:
        """``[(big, i) for i in ids]`` and its like."""
        name = expression.id if isinstance(expression, ast.Name) else ""
        expression = self._resolved(expression)
        if _is_zip(value, expression):
            yield from self._of_zip(value, expression)
        elif isinstance(expression, (ast.ListComp, ast.GeneratorExp)):
            bound = {
                one for generator in expression.generators for one in names_in(generator.target)
            }
            yield from self._of_each(value, expression.elt, bound)
        elif name and isinstance(expression, ast.List) and not expression.elts:
            for added, loop in self._appended(name):
                yield from self._of_each(value, added, _bound_in(loop))

    def _of_each(self, value: Value, item: ast.expr, bound: set[str]) -> Iterator[Sent]:
        """``item`` for each of what a loop, which binds some names, runs over."""
        for one in alternatives(value):
            if not isinstance(one, Sequence):
                continue
            element = one.element if one.items is None else one.items[0] if one.items else Absent()
            for part, shown in _parts(element, item):
                path = path_of(shown)
                if path is not None and path[0] not in bound and self.is_array(part, shown):
                    yield self.sent(part, shown, chunk=False)

    def _appended(self, name: str) -> Iterator[tuple[ast.expr, ast.For]]:
        """What is appended to a list in a loop."""
        for node in walk(self._uses.scope_of(self._called.node)):
            match node:
                case ast.Call(func=ast.Attribute(ast.Name(id=given), "append"), args=[added]) if (
                    given == name
                ):
                    above = self._uses.ancestors(node)
                    loop = next((one for one in above if isinstance(one, ast.For)), None)
                    if loop is not None:
                        yield added, loop

    def _of_zip(self, value: Value, expression: ast.expr) -> Iterator[Sent]:
        assert isinstance(expression, ast.Call)
        for one in alternatives(value):
            if isinstance(one, Object):
                facts = [fact for key, fact in one.facts if key.isdigit()]
                for part, shown in zip(facts, expression.args, strict=False):
                    yield from self.of_repeated(part, shown)

    def of_repeated(self, value: Value, expression: ast.expr) -> Iterator[Sent]:
        """``repeat(big)`` and ``[big] * n``."""
        expression = self._resolved(expression)
        match expression:
            case ast.Call(args=[shown, *_]):
                made = made_of(value)
                repeats = made is not None and made.name == "itertools.repeat"
                part = made.inputs[0] if made is not None and made.inputs else Absent()
                if repeats and self.is_array(part, shown):
                    yield self.sent(part, shown, chunk=False)
            case (
                ast.BinOp(left=ast.List(elts=[shown]), op=ast.Mult())
                | ast.BinOp(right=ast.List(elts=[shown]), op=ast.Mult())
            ):
                part = value.element if isinstance(value, Sequence) else value
                if self.is_array(part, shown):
                    yield self.sent(part, shown, chunk=False)

    def _resolved(self, expression: ast.expr) -> ast.expr:
        """What a name was assigned last in its scope, where it is assigned once."""
        if isinstance(expression, ast.Call) and getattr(expression.func, "id", "") in (
            "tqdm", "list", "tuple", "iter",
        ):  # fmt: skip
            return self._resolved(expression.args[0]) if expression.args else expression
        if not isinstance(expression, ast.Name):
            return expression
        scope = self._uses.scope_of(self._called.node)
        found = [
            one.value
            for one in walk(scope)
            if isinstance(one, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == expression.id for t in one.targets)
        ]
        return found[0] if len(found) == 1 else expression

    def is_array(self, value: Value, expression: ast.expr) -> bool:
        """Whether a value is an array or a table of which a worker gets a copy."""
        found = [one for one in alternatives(value) if not isinstance(one, Absent)]
        return (bool(found) and all(_is_copied(one) for one in found)) or self._declared(expression)

    def _declared(self, expression: ast.expr) -> bool:
        """A parameter that is annotated as one."""
        if not isinstance(expression, ast.Name):
            return False
        for above in self._uses.ancestors(expression):
            if isinstance(above, FUNCTIONS):
                arguments = above.args
                every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
                for one in every:
                    if one.arg == expression.id:
                        text = ast.unparse(one.annotation) if one.annotation else ""
                        return "ndarray" in text or "DataFrame" in text
        return False


def _bound_in(loop: ast.For) -> set[str]:
    """The names that a loop binds."""
    return {
        one.id
        for one in walk(loop)
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)
    }


def _parts(element: Value, expression: ast.expr) -> Iterator[tuple[Value, ast.expr]]:
    """The values in a tuple, list or dictionary, and how each is written."""
    match expression:
        case ast.Tuple(elts=shown) | ast.List(elts=shown):
            for one in alternatives(element):
                if isinstance(one, Sequence) and one.items is not None:
                    yield from zip(one.items, shown, strict=False)
        case ast.Dict() | ast.Call(func=ast.Name(id="dict")):
            for one in alternatives(element):
                if isinstance(one, Mapping):
                    yield from ((one.get(key), value) for key, value in _items(expression))
        case _:
            yield element, expression


def _items(expression: ast.Dict | ast.Call) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(expression, ast.Call):
        yield from ((k.arg, k.value) for k in expression.keywords if k.arg is not None)
        return
    for key, value in zip(expression.keys, expression.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value, value


def _is_zip(value: Value, expression: ast.expr) -> bool:
    return isinstance(expression, ast.Call) and any(
        isinstance(one, Object) and one.cls == "builtins.zip" for one in alternatives(value)
    )


def _is_copied(value: Value) -> bool:
    if _is_frame(value):
        return True
    made = made_of(value)
    if isinstance(value, Unknown):
        if made is not None and _is_shared(made):
            return False
        return value.origin == "numpy" or is_array(value)
    if not isinstance(value, Tensor) or value.lib != "numpy" or value.layout.rank == 0:
        return False
    return not (made is not None and _is_shared(made)) and not _is_small(value)


def _is_shared(made: Made) -> bool:
    """Memory that is mapped, or belongs to something else."""
    if made.name in _NOT_COPIED:
        return True
    if made.name in _AS_IT_IS and made.inputs:
        inner = made_of(made.inputs[0])
        return inner is not None and _is_shared(inner)
    return made.name == "numpy.load" and not isinstance(made.get("mmap_mode"), Absent)


def _is_small(value: Tensor) -> bool:
    count = ITEMSIZE.get(value.dtype or "", 8)
    for size in value.sizes or (None,):
        if type(size) is not int:
            return False
        count *= size
    return count < SMALL


def _is_frame(value: Value) -> bool:
    if isinstance(value, Object):
        return value.cls in _FRAMES
    made = made_of(value)
    return made is not None and made.name.startswith(_FRAMES)
