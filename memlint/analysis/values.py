"""Abstract values: what is known of an object by reading the program.

Every fact is *may*-information about one object on some path, or absent.  ``Unknown`` is
the top of the domain and carries only tags; a rule never speaks from an absence.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import field, replace

from memlint.analysis.axes import Layout, Size, contiguous
from memlint.late_dataclass import dataclass

MAX_ALTERNATIVES = 6
# The origin of what a call nobody can see into makes of a loader.
WRAPPER = "wrapper"
# The origin of what may be more things than are followed, some of which are not dense.
MIXED = "mixed"
# The origins of conditions under which the program uses CUDA, or does not.
WITH_CUDA, WITHOUT_CUDA = "with cuda", "without cuda"
# Layers and other things that the program makes are told apart by where it makes them.
MAX_OBJECTS = 24


# Beyond these, numbers, texts and collections are not followed: a few lines of a program can
# make them larger than any memory.
LARGEST = 2**62
LONGEST_TEXT = 10_000
MOST_ITEMS = 256
# Of a call that gives several arrays (``chunk``), so many are told what made them.
MOST_PARTS = 8
# Attributes of a tensor that are no part of its graph of autograd.
OUTSIDE_GRAPHS = frozenset(
    {"data", "grad", "shape", "dtype", "device", "ndim", "requires_grad", "is_cuda", "is_leaf",
     "layout", "itemsize", "nbytes", "indices"}
)  # fmt: skip


@dataclass(eq=False, slots=True)
class Site:
    """Where an object is made: one per node of the program, compared by identity."""

    node: ast.AST
    label: str = ""

    def __repr__(self) -> str:
        return f"Site({self.label}@{getattr(self.node, 'lineno', 0)})"


@dataclass(frozen=True, slots=True)
class Symbol:
    """An integer whose value is not known but whose identity is: a loop index, a thread
    number, the length of an axis, a name.

    ``kind`` is "loop", "thread", "rank", "lane" (a thread of a GPU), "size", "workers" (how
    many run at once) or "quotient" (what is computed by a whole division by the name).
    """

    kind: str
    name: str
    site: Site


class Value:
    """Base class of abstract values.

    What holds other values is hashed without them: values share parts, so that a hash that
    goes through all of them would go through some of them very often.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Made:
    """The operation that gave a value: ``name`` as it is in :class:`Called` events
    ("torch.cat", ".contiguous", "operator.matmul", "operator.getitem", or "call" for what is
    not known by name), its expression, and what it was given, the receiver or the unknown
    callee first.  The values it was given tell in turn what made them."""

    name: str
    node: ast.AST
    inputs: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...] = ()

    def get(self, key: str, position: int | None = None) -> Value:
        """The input called ``key``, or at ``position``; ``Absent`` where it is not given."""
        for name, value in self.keywords:
            if name == key:
                return value
        if position is not None and position < len(self.inputs):
            return self.inputs[position]
        return Absent()


@dataclass(frozen=True, slots=True)
class Unknown(Value):
    """Anything.

    ``origin`` says where it comes from ("parameter", "call", "int" for some integer,
    "wrapper", "mixed" or "").  ``deps`` are the symbols its value was computed from,
    ``loaders`` the DataLoaders whose batch it is (a part of), ``devices`` where it may live.  A
    wrapper is no batch of its loaders, but what iterating over it yields may be one.  ``graphs``
    are the calls whose graph of autograd it is a part of.
    """

    origin: str = ""
    deps: frozenset[Symbol] = frozenset()
    loaders: frozenset[Site] = frozenset()
    devices: frozenset[str] = frozenset()
    made: Made | None = field(default=None, compare=False, repr=False)
    graphs: frozenset[Site] = frozenset()


@dataclass(frozen=True, slots=True)
class Absent(Value):
    """A dictionary key or an attribute that is not there on this path."""


@dataclass(frozen=True, slots=True)
class Const(Value):
    """A Python constant."""

    value: bool | int | float | complex | str | bytes | None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Const)
            and type(self.value) is type(other.value)
            and self.value == other.value
        )

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Linear(Value):
    """The integer ``sum(coefficient * symbol) + offset``; terms are sorted by symbol name."""

    terms: tuple[tuple[Symbol, int], ...]
    offset: int = 0

    @property
    def symbols(self) -> frozenset[Symbol]:
        """The symbols it depends on."""
        return frozenset(symbol for symbol, _ in self.terms)

    def coefficient(self, symbol: Symbol) -> int:
        """How much it grows where ``symbol`` grows by one."""
        return dict(self.terms).get(symbol, 0)


@dataclass(frozen=True, slots=True)
class Sequence(Value):
    """A tuple, list or other iterable.  ``items`` is ``None`` where its length is not known;
    ``element`` then stands for each item."""

    kind: str
    items: tuple[Value, ...] | None = field(hash=False)
    element: Value = field(default=Unknown(), hash=False)
    site: Site | None = None

    def __post_init__(self) -> None:
        """Stop counting: a program may double a list more often than memory lasts."""
        if self.items is not None and len(self.items) > MOST_ITEMS:
            object.__setattr__(self, "element", join(self.items))
            object.__setattr__(self, "items", None)

    def __hash__(self) -> int:
        # The rows of a table have the same length; their keys tell them apart.
        items = self.items or ()
        key = items[0] if items and isinstance(items[0], Const) else None
        return hash((self.kind, self.site, len(items), key))


@dataclass(frozen=True, slots=True)
class Mapping(Value):
    """A dictionary with string keys; ``complete`` where no other keys can be in it."""

    items: tuple[tuple[str, Value], ...] = field(hash=False)
    complete: bool
    site: Site | None = None

    def get(self, key: str) -> Value:
        """The value under ``key``: ``Absent`` where it is not there, unknown where it may be."""
        for name, value in self.items:
            if name == key:
                return value
        return Absent() if self.complete else Unknown()


@dataclass(frozen=True, slots=True)
class Ref(Value):
    """Something imported, by its canonical dotted name (``torch.utils.data.DataLoader``)."""

    name: str


@dataclass(frozen=True, slots=True)
class Function(Value):
    """A function or lambda of the program, with the scope it closes over."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: object = field(compare=False)
    bound: Value | None = None
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Class(Value):
    """A class of the program."""

    node: ast.ClassDef
    scope: object = field(compare=False)


@dataclass(frozen=True, slots=True)
class Instance(Value):
    """An object of a class of the program; its attributes are kept by site."""

    cls: Class
    site: Site


@dataclass(frozen=True, slots=True)
class Partial(Value):
    """``functools.partial(func, *args, **keywords)``, or a launch bound to its grid."""

    func: Value
    args: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]
    node: ast.AST | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Bound(Value):
    """The method ``name`` of ``receiver``, not called yet."""

    receiver: Value
    name: str


@dataclass(frozen=True, slots=True)
class Object(Value):
    """An object of a library class: its canonical class name, where it was made, and the
    arguments it was made with (positional ones under their parameter names where known,
    else under "0", "1", ...)."""

    cls: str
    site: Site
    facts: tuple[tuple[str, Value], ...] = field(default=(), hash=False)

    def fact(self, key: str) -> Value:
        """The argument it was made with, or ``Absent``."""
        for name, value in self.facts:
            if name == key:
                return value
        return Absent()


@dataclass(frozen=True, slots=True)
class Tensor(Value):
    """An array of torch, numpy or cupy (``lib`` is "torch", "numpy", "cupy" or "").

    ``dtype`` is the library-free name ("float32"); ``devices`` are those it may live on,
    empty where not known.  ``assumed`` tells that the layout rests on the assumption that
    parameters are dense row-major.  ``born`` is the node that made the layout other than
    dense.  ``site`` is the storage; views share it.
    """

    lib: str
    layout: Layout
    dtype: str | None = None
    devices: frozenset[str] = frozenset()
    pinned: bool | None = None
    assumed: bool = False
    born: ast.AST | None = field(default=None, compare=False)
    site: Site | None = field(default=None, compare=False)
    loaders: frozenset[Site] = frozenset()
    made: Made | None = field(default=None, compare=False, repr=False)
    graphs: frozenset[Site] = frozenset()

    @property
    def sizes(self) -> tuple[Size, ...] | None:
        """The size of each axis, or ``None`` where the rank is not known."""
        return self.layout.sizes


@dataclass(frozen=True, slots=True)
class Alternatives(Value):
    """One of several values, by path."""

    values: tuple[Value, ...]


def alternatives(value: Value) -> tuple[Value, ...]:
    """The values that ``value`` may be."""
    return value.values if value.__class__ is Alternatives else (value,)


def join(values: Iterable[Value]) -> Value:
    """The least value that stands for each of ``values``."""
    flat: list[Value] = []
    for value in values:
        if value.__class__ is Alternatives:
            flat.extend(value.values)
        else:
            flat.append(value)
    if not flat:
        return Unknown()
    if len(flat) == 2 and (flat[0] is flat[1] or flat[0] == flat[1]):
        return flat[0]
    if len(flat) > 2:
        flat = list(dict.fromkeys(flat))
    if len(flat) == 1:
        return flat[0]
    flat = _merged_by_site(flat)
    if len(flat) == 1:
        return flat[0]
    made_here = all(isinstance(v, (Object, Instance)) for v in flat)
    if len(flat) > (MAX_OBJECTS if made_here else MAX_ALTERNATIVES):
        return Unknown(
            "" if all(map(may_be_assumed_dense, flat)) else MIXED,
            deps=frozenset().union(*(deps_of(v) for v in flat)),
            loaders=frozenset().union(*(loaders_of(v) for v in flat)),
            devices=frozenset(),
        )
    return Alternatives(tuple(flat))


def may_be_assumed_dense(value: Value) -> bool:
    """Whether the assumption that what is not known is dense holds for a value."""
    if isinstance(value, Unknown):
        return value.origin != MIXED
    return not isinstance(value, Tensor) or contiguous(value.layout) is True


def _merged_by_site(values: list[Value]) -> list[Value]:
    """States of one object, made at one place, put together."""
    if sum(value.__class__ in _WITH_STATES for value in values) < 2:
        return values
    groups: dict[object, list[Value]] = {}
    for value in values:
        groups.setdefault(_identity(value), []).append(value)
    if len(groups) == len(values):
        return values
    return [group[0] if len(group) == 1 else _merged(group) for group in groups.values()]


_WITH_STATES = frozenset({Object, Sequence, Mapping})


def _identity(value: Value) -> object:
    match value:
        case Object(cls=kind, site=site):
            return kind, id(site)
        case Sequence(kind=kind, site=site) if site is not None:
            return kind, id(site)
        case Mapping(site=site):
            return "mapping", id(site)
    return id(value)


def _merged(group: list[Value]) -> Value:
    objects = [v for v in group if isinstance(v, Object)]
    if objects:
        keys = dict.fromkeys(key for one in objects for key, _ in one.facts)
        facts = tuple((key, join(one.fact(key) for one in objects)) for key in keys)
        return Object(objects[0].cls, objects[0].site, facts)
    sequences = [v for v in group if isinstance(v, Sequence)]
    if sequences:
        return _join_sequences(sequences)
    return _join_mappings([v for v in group if isinstance(v, Mapping)])


def _join_sequences(sequences: list[Sequence]) -> Sequence:
    first = sequences[0]
    items = [s.items for s in sequences if s.items is not None]
    if len(items) == len(sequences) and len({len(i) for i in items}) == 1:
        joined = tuple(join(column) for column in zip(*items, strict=True))
        return Sequence(first.kind, joined, Unknown(), first.site)
    parts = [v for s in sequences for v in (s.items if s.items is not None else (s.element,))]
    return Sequence(first.kind, None, join(parts) if parts else Unknown(), first.site)


def _join_mappings(mappings: list[Mapping]) -> Mapping:
    keys = dict.fromkeys(key for mapping in mappings for key, _ in mapping.items)
    items = tuple((key, join(mapping.get(key) for mapping in mappings)) for key in keys)
    return Mapping(items, all(m.complete for m in mappings), mappings[0].site)


def plain(value: Value) -> Value:
    """An attribute that nothing is known of, as the unknown object that it is."""
    if value.__class__ is not Bound:
        return value
    assert isinstance(value, Bound)
    match plain(value.receiver):
        case Unknown() as receiver:
            if receiver.graphs and value.name in OUTSIDE_GRAPHS:
                return replace(receiver, graphs=frozenset())
            return receiver
        case Tensor(loaders=loaders, devices=devices, graphs=graphs):
            return Unknown(loaders=loaders, devices=devices, graphs=graphs)
    return Unknown("call")


def with_made(value: Value, made: Made, graphs: frozenset[Site] | None = None) -> Value:
    """``value`` as what ``made`` gave, and as part of these graphs of autograd where they are
    given; what is no array and may be none stays as it is."""
    match value:
        case Unknown(origin, deps, loaders, devices):
            kept = value.graphs if graphs is None else graphs
            return Unknown(origin, deps, loaders, devices, made, kept)
        case Tensor() as t:
            kept = t.graphs if graphs is None else graphs
            return Tensor(
                t.lib, t.layout, t.dtype, t.devices, t.pinned, t.assumed, t.born, t.site,
                t.loaders, made, kept,
            )  # fmt: skip
        case Alternatives(values):
            return Alternatives(tuple(with_made(one, made, graphs) for one in values))
        case Sequence(kind="tuple" | "list", items=items) if items and len(items) <= MOST_PARTS:
            return Sequence(
                value.kind,
                tuple(with_made(one, made, graphs) for one in items),
                value.element,
                value.site,
            )
        case Sequence(kind="tuple" | "list", items=None, element=Tensor() as element):
            return Sequence(value.kind, None, with_made(element, made, graphs), value.site)
    return value


def with_made_at_last(value: Value, made: Made, graphs: frozenset[Site] | None = None) -> Value:
    """As :func:`with_made`, for the parts of which nothing is known to have made them."""
    match value:
        case Unknown() | Tensor():
            return with_made(value, value.made or made, graphs)
        case Alternatives(values):
            return Alternatives(tuple(with_made_at_last(one, made, graphs) for one in values))
        case Sequence(kind="tuple" | "list", items=items) if items and len(items) <= MOST_PARTS:
            parts = tuple(with_made_at_last(one, made, graphs) for one in items)
            return Sequence(value.kind, parts, value.element, value.site)
    return value


def made_of(value: Value) -> Made | None:
    """The operation that gave a value, where there is one and it is known."""
    return value.made if isinstance(value, (Unknown, Tensor)) else None


def graphs_of(value: Value) -> frozenset[Site]:
    """The calls whose graph of autograd ``value`` is, or holds, a part of on every path on which
    it is an array at all."""
    match plain(value):
        case Unknown() | Tensor() as known:
            return known.graphs
        case Alternatives(values):
            arrays = [one for one in values if not isinstance(one, (Const, Linear, Absent))]
            found = [graphs_of(one) for one in arrays]
            return frozenset[Site]().union(*found) if found and all(found) else frozenset()
        case Sequence(items=items, element=element):
            parts = items if items is not None else (element,)
            return frozenset[Site]().union(*(graphs_of(one) for one in parts))
        case Mapping(items=items):
            return frozenset[Site]().union(*(graphs_of(one) for _, one in items))
        case Object(cls="torch.nn.Parameter", site=site) as made:
            return frozenset() if must_be(made.fact("requires_grad"), False) else frozenset({site})
    return frozenset()


def possible_graphs(value: Value) -> frozenset[Site]:
    """:func:`graphs_of` on any path."""
    if isinstance(value, Alternatives):
        return frozenset[Site]().union(*(possible_graphs(one) for one in value.values))
    return graphs_of(value)


def loaders_of(value: Value) -> frozenset[Site]:
    """The DataLoaders whose batch ``value`` is or holds."""
    match plain(value):
        case Unknown(origin="wrapper"):
            return frozenset()
        case Unknown() | Tensor() as known:
            return known.loaders
        case Alternatives(values):
            return frozenset().union(*(loaders_of(v) for v in values))
        case Sequence(items=items, element=element):
            parts = items if items is not None else (element,)
            return frozenset().union(*(loaders_of(v) for v in parts))
        case Mapping(items=items):
            return frozenset().union(*(loaders_of(v) for _, v in items))
    return frozenset()


def deps_of(value: Value) -> frozenset[Symbol]:
    """The symbols that ``value`` was computed from."""
    if value.__class__ is Unknown:
        return value.deps
    match plain(value):
        case Unknown() as known:
            return known.deps
        case Linear() as form:
            return form.symbols
        case Alternatives(values):
            return frozenset().union(*(deps_of(v) for v in values))
    return frozenset()


def devices_of(value: Value) -> frozenset[str]:
    """The devices that an object may live on; empty where not known."""
    match plain(value):
        case Unknown() | Tensor() as known:
            return known.devices
        case Alternatives(values):
            return frozenset().union(*(devices_of(v) for v in values))
    return frozenset()


def leaves(value: Value) -> Iterator[Value]:
    """What is left of ``value`` when containers and alternatives are opened."""
    match plain(value):
        case Alternatives(values):
            for one in values:
                yield from leaves(one)
        case Sequence(items=items, element=element):
            for one in items if items is not None else (element,):
                yield from leaves(one)
        case Mapping(items=items):
            for _, one in items:
                yield from leaves(one)
        case known:
            yield known


def constants(value: Value) -> Iterator[object]:
    """The Python constants that ``value`` may be."""
    for one in alternatives(value):
        if isinstance(one, Const):
            yield one.value


def may_be(value: Value, constant: object) -> bool:
    """Whether ``value`` may be equal to a constant: known to be, on some path, or not known."""
    for one in alternatives(value):
        if isinstance(one, Const):
            if type(one.value) is type(constant) and one.value == constant:
                return True
        elif not isinstance(one, Absent):
            return True
    return False


def must_be(value: Value, constant: object) -> bool:
    """Whether ``value`` is known to be a constant on every path."""
    return all(
        isinstance(one, Const) and type(one.value) is type(constant) and one.value == constant
        for one in alternatives(value)
    )
