"""What every part of the interpreter stands on: its state, names and texts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.blocking import is_fresh, is_whole_batch
from memlint.analysis.events import Called, Event, KernelLaunch, LoopNest, Transfer
from memlint.analysis.interpreter.records import LoaderRecord, ModelRecord
from memlint.analysis.interpreter.state import Frame, Heap, Scope, Sites
from memlint.analysis.knowledge import Args, canonical
from memlint.analysis.linear import symbol_value
from memlint.analysis.values import (
    Absent,
    Alternatives,
    Bound,
    Class,
    Function,
    Linear,
    Mapping,
    Object,
    Partial,
    Ref,
    Sequence,
    Site,
    Symbol,
    Unknown,
    Value,
    join,
    loaders_of,
    made_of,
)
from memlint.source.model import Source

# One file's interpretation ends after this many evaluated nodes; what has not been read by
# then stays unknown.
BUDGET = 1_500_000
MAX_DEPTH = 7


class OutOfBudgetError(Exception):
    """Raised inside the interpreter where the budget of a file is used up."""


class Machine:
    """State and the helpers that evaluate nothing."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source = source
        self.tree = tree
        self.module_scope = Scope("module", None)
        self.scope = self.module_scope
        self.frame = Frame(None, "<module>", None, None, ())
        self.stack: list[Frame] = [self.frame]
        self.heap = Heap()
        self.sites = Sites()
        self.traits: dict[int, list[Value]] = {}
        self.functions: list[tuple[Function, Value | None]] = []
        self.classes: list[Class] = []
        self.entered: set[int] = set()
        # What calls spread as arguments (``f(*rows)``) where its length is not known.
        self.spread: dict[int, Value] = {}
        self.loaders: dict[Site, LoaderRecord] = {}
        self.models: dict[Site, ModelRecord] = {}
        self.events: list[Event] = []
        self.called: dict[tuple[object, ...], Called] = {}
        self.spent, self.budget = 0, BUDGET
        self.imports: set[str] = set()

    # Interfaces that the parts call across each other; each is defined in one of them.

    def evaluate(self, node: ast.expr) -> Value:
        raise NotImplementedError

    def call(self, callee: Value, args: Args, node: ast.AST) -> Value:
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Value) -> None:
        raise NotImplementedError

    # Budget

    def spend(self) -> None:
        self.spent += 1
        if self.spent > self.budget:
            raise OutOfBudgetError

    # Names

    def read(self, name: str) -> Value | None:
        value = self.scope.look_up(name)
        if isinstance(value, Alternatives) and any(v.__class__ is Absent for v in value.values):
            return join(v for v in value.values if not isinstance(v, Absent))
        return value

    def bind(self, name: str, value: Value) -> None:
        self.scope.owner(name).vars[name] = value

    def traits_of(self, function: Function) -> list[Value]:
        """The decorators and wrappers that were put around a function."""
        return self.traits.get(id(function.node), [])

    def trait_names(self, function: Function) -> Iterator[str]:
        for trait in self.traits_of(function):
            name = name_of(trait)
            if name:
                yield name

    # Symbols

    def size_symbol(self, text: str, axis: int, array: Value | None = None) -> Linear:
        """The length of an axis of the array that ``text`` names in this frame.

        Arrays that different operations made are different, also under the same name."""
        owner: ast.AST = self.tree if self.frame.function is None else self.frame.function.node
        if array is not None and (made := made_of(array)) is not None:
            owner = made.node
        site = self.sites.at(owner, f"size of {text}")
        return symbol_value(Symbol("size", f"{text}.shape[{axis}]", site))

    # Mutation of dictionaries and lists: every variable that holds the object sees it.

    def replace_object(self, site: Site, new: Value) -> None:
        scope: Scope | None = self.scope
        while scope is not None:
            _replace_in(scope.vars, site, new)
            scope = scope.parent
        for attributes in self.heap.holders():
            _replace_in(attributes, site, new)

    # Facts

    def record_transfer(
        self, value: Value, devices: frozenset[str], node: ast.AST, *, waits: bool = False
    ) -> None:
        """A batch of a loader (or a part of it) moves to ``devices`` at ``node``."""
        for loader in loaders_of(value):
            record = self.loaders.get(loader)
            if record is not None:
                loops = [opened.loop for frame in self.stack for opened in frame.loops]
                blocking = waits and self.is_repeated() and is_fresh(value) and not record.placed
                whole = is_whole_batch(node, loops)
                record.add_transfer(Transfer(node, text_of(node), devices, blocking, whole))

    def is_repeated(self) -> bool:
        """Whether what is read now runs in the iterations of some loop, all or most of them."""
        for frame in reversed(self.stack):
            for opened in reversed(frame.loops):
                if frame.throttles > opened.throttles:
                    return False
                if opened.loop.trips != 1:
                    return True
            if frame.throttles > 0:
                return False
        return False

    def emit(self, event: KernelLaunch | LoopNest | Event) -> None:
        self.events.append(event)


_COLLECTIONS = frozenset({Mapping, Sequence})


def _replace_in(variables: dict[str, Value], site: Site, new: Value) -> None:
    if _COLLECTIONS.isdisjoint(map(type, variables.values())):
        return  # nearly always, and there may be many objects with attributes
    for name, value in variables.items():
        if isinstance(value, (Mapping, Sequence)) and value.site is site:
            variables[name] = new
        elif isinstance(value, Mapping) and any(
            isinstance(held, (Mapping, Sequence)) and held.site is site for _, held in value.items
        ):
            items = tuple(
                (key, new if isinstance(held, (Mapping, Sequence)) and held.site is site else held)
                for key, held in value.items
            )
            variables[name] = Mapping(items, value.complete, value.site)


def name_of(value: Value) -> str:
    """The canonical dotted name of an imported thing, or of the class of a library object."""
    match value:
        case Ref(name):
            return name
        case Bound(receiver, name):
            base = name_of(receiver)
            return f"{base}.{name}" if base else ""
        case Object(cls=name):
            return name
        case Partial(func=func):
            return name_of(func)
    return ""


def text_of(node: ast.AST) -> str:
    """The source of an expression, normalised."""
    names: list[str] = []
    base = node
    while isinstance(base, ast.Attribute):
        names.append(base.attr)
        base = base.value
    if isinstance(base, ast.Name):
        return ".".join((base.id, *reversed(names)))
    return ast.unparse(node)


def dotted(base: str, name: str) -> str:
    """The canonical name of an attribute of something imported."""
    return canonical(f"{base}.{name}")


UNKNOWN = Unknown()
