"""The state of the interpreter: scopes, frames, sites, and what is learnt of objects."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import field

from memlint.analysis.events import (
    Access,
    Compiled,
    Loop,
    LoopNest,
    SharedUpdate,
    SlotStore,
    Workers,
)
from memlint.analysis.values import Absent, Function, Instance, Site, Value, join
from memlint.late_dataclass import dataclass

Variables = dict[str, Value]


class Scope:
    """The variables of a module, class, function or comprehension; ``vars`` is the state at
    the point that the interpreter has reached, ``None`` where that point is not reachable."""

    __slots__ = ("globals", "kind", "nonlocals", "parent", "vars")

    def __init__(self, kind: str, parent: Scope | None) -> None:
        self.kind = kind
        self.parent = parent
        self.vars: Variables = {}
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()

    @property
    def module(self) -> Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def look_up(self, name: str) -> Value | None:
        """The value of a name, by Python's scoping rules."""
        if name in self.globals:
            return self.module.vars.get(name)
        value = self.vars.get(name)
        if value is not None:
            return value
        scope = self.parent
        while scope is not None:
            if scope.kind != "class":
                value = scope.vars.get(name)
                if value is not None:
                    return value
            scope = scope.parent
        return None

    def beyond_comprehensions(self) -> Scope:
        """The scope that an assignment expression in this one changes."""
        scope = self
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        return scope

    def owner(self, name: str) -> Scope:
        """The scope that an assignment to ``name`` changes."""
        if name in self.globals:
            return self.module
        if name in self.nonlocals:
            scope = self.parent
            while scope is not None and scope.parent is not None:
                if scope.kind == "function":
                    return scope
                scope = scope.parent
            return scope or self
        return self


def merge(states: list[Variables | None]) -> Variables | None:
    """The join of the states of several paths; ``None`` where none is reachable."""
    live = [state for state in states if state is not None]
    if not live:
        return None
    if len(live) == 1:
        return live[0]
    first, *others = live
    merged: Variables = {}
    for name, value in first.items():
        for state in others:
            if state.get(name) is not value:
                merged[name] = join([state.get(name, _ABSENT) for state in live])
                break
        else:
            merged[name] = value
    for state in others:
        for name in state:
            if name not in merged:
                merged[name] = join([one.get(name, _ABSENT) for one in live])
    return merged


_ABSENT = Absent()


@dataclass(slots=True)
class OpenLoop:
    """A loop that is being interpreted."""

    loop: Loop
    breaks: list[Variables] = field(default_factory=list)
    continues: list[Variables] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    heavy: bool = False
    conditions: int = 0
    throttles: int = 0
    varied: int = 0
    # What the loop is for, and how many loaders were known when that was told.
    role: tuple[int, str] | None = None


@dataclass(slots=True)
class Frame:
    """One activation of a function (or the module body)."""

    function: Function | None
    name: str
    compiled: Compiled | None
    workers: Workers | None
    contexts: tuple[Value, ...]
    receiver: Value | None = None
    call: ast.AST | None = None
    parameters: tuple[Value, ...] = ()
    loops: list[OpenLoop] = field(default_factory=list)
    returns: list[Value] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    conditions: int = 0
    # More than zero in code that runs only every so many iterations of a loop around it.
    throttles: int = 0
    # More than zero under conditions that may differ between iterations of a loop around it.
    varied: int = 0
    # Whether autograd records: ``None`` where it may be turned off.
    grad: bool | None = True
    # Whether the models that go by these texts are evaluated, or trained.
    modes: dict[str, bool | None] = field(default_factory=dict)
    # More than zero in code that runs only where CUDA is not used.
    without_cuda: int = 0
    live: bool = True
    # Whether a name was read that is not bound (yet) on this path.
    missed: bool = False
    nests: dict[int, LoopNest] = field(default_factory=dict)
    slots: dict[int, SlotStore] = field(default_factory=dict)
    updates: dict[int, SharedUpdate] = field(default_factory=dict)


class Heap:
    """The attributes of objects of the program's classes, by the site that makes them."""

    def __init__(self) -> None:
        self._attributes: dict[Site, Variables] = {}
        # What was asked for since this was last made anew; without a name all of an object.
        self.asked: set[tuple[Site, str]] = set()

    def of(self, site: Site) -> Variables:
        self.asked.add((site, ""))
        return self._attributes.setdefault(site, {})

    def holders(self) -> Iterator[Variables]:
        yield from self._attributes.values()

    def get(self, instance: Instance, name: str) -> Value | None:
        self.asked.add((instance.site, name))
        return self._attributes.get(instance.site, {}).get(name)

    def put(self, instance: Instance, name: str, value: Value, *, strong: bool) -> None:
        attributes = self._attributes.setdefault(instance.site, {})
        old = attributes.get(name)
        attributes[name] = value if strong or old is None else join((old, value))


class Sites:
    """One :class:`Site` per node (and purpose) of the program."""

    def __init__(self) -> None:
        self._by_node: dict[tuple[int, str], Site] = {}

    def at(self, node: ast.AST, label: str = "") -> Site:
        key = (id(node), label)
        site = self._by_node.get(key)
        if site is None:
            site = self._by_node[key] = Site(node, label)
        return site
