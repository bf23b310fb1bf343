"""What an object keeps in its attributes: Python objects in bulk, or arrays."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import field
from math import prod

from memlint.analysis.events import Loop
from memlint.analysis.knowledge.array_makers import is_array
from memlint.analysis.knowledge.python_objects import (
    FOLDERS,
    HANDED_ON,
    ITERATORS,
    JOINING,
    NAMES,
    NUMBERS,
    PARSERS,
    READERS,
    READING_METHODS,
    STRINGS,
    TABLE_METHODS,
    TABLES,
    UNPICKLED,
)
from memlint.analysis.values import (
    Absent,
    Alternatives,
    Bound,
    Const,
    Instance,
    Linear,
    Made,
    Mapping,
    Object,
    Sequence,
    Site,
    Tensor,
    Unknown,
    Value,
    alternatives,
    made_of,
)
from memlint.late_dataclass import dataclass

# A collection of fewer entries is not worth a word, whatever is in it.
FEW = 10_000
_DEEPEST = 6


@dataclass(slots=True)
class Growth:
    """The loops in which a collection grows, the collections that are added to it, and those
    that it was made of as a copy."""

    loops: dict[int, Loop] = field(default_factory=dict)
    fed: list[Value] = field(default_factory=list)
    copied: list[Value] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Held:
    """``what`` is kept, in words; ``sure`` where its size is that of a file or a folder;
    ``table`` for a data frame, of which only the columns of text count."""

    what: str
    sure: bool
    table: bool = False


class Kept:
    """Judges values; ``growth`` tells how a list or dictionary made at a place grows.

    ``records`` says that the entries are used as dictionaries: what a pickle gives are Python
    objects then."""

    def __init__(self, growth: Callable[[Site], Growth | None], *, records: bool = False) -> None:
        self._growth = growth
        self._records = records

    def held(self, value: Value, depth: int = 0) -> Held | None:
        """What Python objects a value keeps in bulk; ``None`` where it is not known to."""
        if depth > _DEEPEST:
            return None
        match value:
            case Alternatives(values):
                return next((h for v in values if (h := self.held(v, depth + 1))), None)
            case Sequence():
                return self._of_sequence(value, depth)
            case Mapping():
                return self._of_mapping(value, depth)
            case Object(cls="pandas.DataFrame"):
                return Held("a data frame", sure=False, table=True)
            case Object(cls=cls) if cls in READERS:
                return Held("a list of rows", sure=True)
            case Object(cls="builtins.zip" | "builtins.enumerate", facts=facts):
                light = _light(fact for _, fact in facts)
                return Held("a list of tuples", True) if light and self._counts(value) else None
            case Bound(Object(cls=cls), "samples" | "imgs") if cls in FOLDERS:
                return Held("a list of tuples", sure=True)
            case Tensor() | Unknown():
                made = made_of(value)
                return self._of_made(made, depth) if made is not None else None
        return None

    def _of_made(self, made: Made, depth: int) -> Held | None:
        name = made.name
        if _of_objects(made):
            return Held("an array of Python objects", sure=False)
        if name in READERS:
            what = "a list of strings" if name in NAMES else f"what `{name}` gives"
            return Held(what, sure=True)
        if name in UNPICKLED and self._records and _may_be_objects(made):
            return Held(f"what `{name}` gives", sure=True)
        if name in TABLES:
            return Held("a data frame", sure=True, table=True)
        first = made.inputs[0] if made.inputs else Absent()
        if name == ".to_dict":
            table = self.held(first, depth + 1)
            asked = made.get("orient", 1) == Const("records")
            return Held("a list of dictionaries", bool(table)) if asked or table else None
        if name in READING_METHODS:
            if name in (".tolist", ".to_list") and not self._is_table(first, depth):
                return None
            what = "lines" if "lines" in name else "paths" if name in _PATHS else "objects"
            return Held(f"a list of {what}", sure=True)
        if name in (".get", ".pop") and isinstance(made.get("", 1), Const):
            held = self.held(first, depth + 1)
            return held if held is not None and _is_part(made) else None
        if name in JOINING:
            return self._of_joined(first, depth)
        if name == ".split" and _made_by(first, ".read", ".read_text"):
            return Held("a list of strings", sure=True)
        if name in TABLE_METHODS or name == "operator.getitem":
            held = self.held(first, depth + 1)
            if name == "operator.getitem" and not _is_part(made):
                return None
            return held
        if name in HANDED_ON:
            if name in _LISTS and _iterates(first):
                return Held("a list of strings", sure=True)
            held = next((h for v in made.inputs[:2] if (h := self.held(v, depth + 1))), None)
            if held is not None and held.what.startswith("a dictionary") and name in _LISTS:
                return Held("a list of keys", held.sure)
            if held is not None and held.table and name in _LISTS:
                return Held("a list of objects", held.sure)
            return held and Held(held.what, held.sure)
        return None

    def _of_joined(self, lists: Value, depth: int) -> Held | None:
        """What there is in several lists: ``sum(lists, [])``."""
        if isinstance(lists, Sequence):
            parts = lists.items if lists.items is not None else (lists.element,)
            return next((h for v in parts if (h := self.held(v, depth + 1))), None)
        return self.held(lists, depth + 1)

    def _is_table(self, value: Value, depth: int) -> bool:
        """A table, or a column of one."""
        made = made_of(value)
        if isinstance(value, Bound):
            return self._is_table(value.receiver, depth + 1)
        if made is None or depth > _DEEPEST or not made.inputs:
            return made is not None and made.name in TABLES
        if made.name in TABLES:
            return True
        if made.name == "operator.getitem" or made.name in TABLE_METHODS or made.name == ".astype":
            return self._is_table(made.inputs[0], depth + 1)
        return False

    # Collections

    def _of_sequence(self, value: Sequence, depth: int) -> Held | None:
        if value.items is not None or value.kind in ("set", "generator"):
            return None
        if value.kind == "iterator" and value.site is None:
            # ``table.values()``, ``table.items()`` and what lists them.
            made = made_of(_last(value.element))
            return self._of_made(made, depth + 1) if made is not None else None
        growth = self._growth(value.site) if value.site is not None else None
        if _few(self._loops_of(growth)):
            return None
        if growth:
            for one in (*growth.fed, *growth.copied):
                fed = self.held(one, depth + 1)
                if fed is not None:
                    return fed if one in growth.fed else _relisted(fed, value.kind)
        many = self._grows_much(growth)
        kind = self._kind(value.element, many=many)
        return Held(f"a {value.kind} of {kind}", sure=many) if kind else None

    def _of_mapping(self, value: Mapping, depth: int) -> Held | None:
        for _, part in value.items:
            inner = self.held(part, depth + 1)
            if inner is not None:
                return inner
        if value.complete or value.site is None:
            return None
        growth = self._growth(value.site)
        if _few(self._loops_of(growth)):
            return None
        many = self._grows_much(growth)
        kind = self._kind(value.get(""), many=many)
        return Held(f"a dictionary of {kind}", sure=many) if kind and many else None

    def _loops_of(self, growth: Growth | None) -> list[Loop]:
        """The loops that a collection grows in, and those of what it is a copy of."""
        if growth is None:
            return []
        loops = list(growth.loops.values())
        for one in growth.copied:
            if isinstance(one, (Sequence, Mapping)) and one.site is not None:
                inner = self._growth(one.site)
                loops += inner.loops.values() if inner is not None else ()
        return loops

    def _grows_much(self, growth: Growth | None) -> bool:
        copied = growth.copied if growth is not None else ()
        return any(map(self._many, self._loops_of(growth))) or any(map(self._counts, copied))

    def _counts(self, value: Value) -> bool:
        """Whether what a collection is made of has as many entries as a file or a folder."""
        return not isinstance(value, (Sequence, Mapping)) and self._yields_many(value)

    def _many(self, loop: Loop) -> bool:
        """Whether a loop runs over what has as many entries as a file or a folder."""
        return loop.iterates is not None and self._yields_many(loop.iterates)

    def _yields_many(self, value: Value) -> bool:
        for one in alternatives(value):
            if isinstance(one, Object) and one.cls in (
                "builtins.enumerate",
                "builtins.zip",
                "builtins.map",
            ):
                if any(self._yields_many(fact) for _, fact in one.facts):
                    return True
                continue
            if _iterates(one):
                return True
            held = self.held(one)
            if held is not None and held.sure:
                return True
        return False

    def _kind(self, element: Value, *, many: bool) -> str:
        """What the entries of a collection are, if they are Python objects."""
        kinds = {_kind_of(one, many=many) for one in alternatives(element)}
        if "" in kinds or None in kinds:
            return ""
        kinds.discard("nothing")
        return str(sorted(map(str, kinds))[0]) if kinds else ""


def _kind_of(value: Value, *, many: bool) -> str | None:
    """The plural of what a value is; empty for arrays, ``None`` where nothing is known."""
    match value:
        case Const(value=None) | Absent():
            return "nothing"
        case Const(value=str() | bytes()):
            return "strings"
        case Const() | Linear():
            return None
        case Mapping(items=items):
            return "dictionaries" if _light(v for _, v in items) else ""
        case Sequence(items=items, element=element):
            kind = "tuples" if value.kind == "tuple" else f"{value.kind}s"
            return kind if _light(items if items is not None else (element,)) else ""
        case Object(cls=cls) if cls.startswith("pathlib."):
            return "paths"
        case Instance(cls=cls):
            return f"`{cls.node.name}` objects" if many else None
        case Tensor():
            return ""
        case Bound(Unknown(made=made), "path" | "name") if _source(made) in ITERATORS:
            return "strings"
        case Unknown(made=made):
            if made is not None and made.name in STRINGS:
                return "strings"
            source = _source(made)
            if source in _PATHS:
                return "paths"
            if source in NAMES | ITERATORS:
                return "strings"
            if made is None or made.name in _ENTRIES:
                return "objects" if many and not is_array(value) else None
    return None


# What gives an entry of a collection of Python objects, or the collection that it is one of.
_ENTRIES = (
    frozenset({"operator.getitem", "operator.add", "builtins.next", ".get", ".pop"})
    | PARSERS
    | READERS
    | READING_METHODS
    | ITERATORS
    | HANDED_ON
)
_LISTS = frozenset({"builtins.list", "builtins.tuple", "builtins.sorted"})
_PATHS = frozenset({".glob", ".rglob", ".iterdir"})


def _light(parts: object) -> bool:
    """Whether none of the parts of an entry may be an array, beside which it weighs nothing."""
    for part in parts:  # type: ignore[attr-defined]
        for one in alternatives(part):
            if isinstance(one, (Sequence, Mapping)):
                inner = (
                    [v for _, v in one.items]
                    if isinstance(one, Mapping)
                    else (one.items if one.items is not None else (one.element,))
                )
                if not _light(inner):
                    return False
            if isinstance(one, Tensor):
                return False
            made = made_of(one)
            if made is not None and made.name not in STRINGS | NUMBERS | _ENTRIES:
                return False
    return True


def _source(made: Made | None) -> str:
    """The name of what gave the collection that an entry is of."""
    if made is None or made.name != "builtins.next" or not made.inputs:
        return ""
    given = made_of(made.inputs[0])
    return given.name if given is not None else ""


def _last(entry: Value) -> Value:
    """The value of a pair of key and value; what is no pair as it is."""
    if isinstance(entry, Sequence) and entry.items is not None and len(entry.items) == 2:
        return entry.items[1]
    return entry


def _few(loops: list[Loop]) -> bool:
    trips = [loop.trips for loop in loops]
    return bool(trips) and None not in trips and prod(t or 0 for t in trips) < FEW


def _iterates(value: Value) -> bool:
    """Whether a value is an iterator over the lines of a file or the files of a tree."""
    return any(
        (made := made_of(one)) is not None and made.name in ITERATORS for one in alternatives(value)
    )


def _relisted(held: Held, kind: str) -> Held:
    """What is held by a list of the entries of something."""
    if held.what.startswith("a dictionary"):
        return Held(f"a {kind} of keys", held.sure)
    _, of, entries = held.what.partition(" of ")
    return Held(f"a {kind} of {entries}" if of else held.what, held.sure)


def _may_be_objects(made: Made) -> bool:
    return made.name != "numpy.load" or made.get("allow_pickle", 2) == Const(True)


def _made_by(value: Value, *names: str) -> bool:
    made = made_of(value)
    return made is not None and made.name in names


def _is_part(made: Made) -> bool:
    """``data["images"]`` and ``data[:n]``, not ``data[0]``."""
    key = made.inputs[1] if len(made.inputs) > 1 else Absent()
    node = made.node
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return True
    return not (isinstance(key, Const) and isinstance(key.value, int))


def _of_objects(made: Made) -> bool:
    if made.name not in ("numpy.array", "numpy.asarray", "numpy.empty", "numpy.full"):
        return False
    names = {
        getattr(one, "name", getattr(one, "value", None))
        for one in alternatives(made.get("dtype", 1))
    }
    return not names.isdisjoint({"builtins.object", "object", "O", "numpy.object_"})


__all__ = ["FEW", "Growth", "Held", "Kept"]
