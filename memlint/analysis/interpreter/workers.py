"""Code that runs many times at once: threads, processes, Numba's parallel loops."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from memlint.analysis.events import Workers
from memlint.analysis.interpreter.calls import facts_of
from memlint.analysis.interpreter.compiled import NUMBA, Compilation
from memlint.analysis.interpreter.machine import UNKNOWN, text_of
from memlint.analysis.knowledge import Args
from memlint.analysis.knowledge.workers import POOLS
from memlint.analysis.linear import symbol_value
from memlint.analysis.values import (
    Bound,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Partial,
    Sequence,
    Symbol,
    Tensor,
    Unknown,
    Value,
    alternatives,
    deps_of,
    must_be,
)
from memlint.analysis.walking import walk

STARTERS = {
    "threading.Thread": "thread",
    "multiprocessing.Process": "process",
    "torch.multiprocessing.Process": "process",
}
# Where each pool takes its initializer and the arguments of it.
INITIALIZERS = {
    "multiprocessing.Pool": 1, "torch.multiprocessing.Pool": 1, "multiprocessing.dummy.Pool": 1,
    "multiprocessing.pool.ThreadPool": 1,
}  # fmt: skip
# What waits for a worker to end.
WAITS = frozenset({"join", "result", "get", "wait"})
MAPPERS = ("map", "imap", "imap_unordered", "map_async", "starmap", "starmap_async")


class Parallel(Compilation):
    """Workers."""

    def _thread_id(self, args: Args, node: ast.AST) -> Value:
        return symbol_value(Symbol("thread", "get_thread_id()", self.sites.at(node, "thread")))

    # Starting workers

    def start(self, kind: str, target: Value, args: Args, node: ast.AST) -> None:
        """Interpret ``target(args)`` as it runs in many workers at once."""
        if not isinstance(target, (Function, Partial, Bound)) or self._waited_for(node):
            return
        deps = frozenset().union(
            *(self._symbols_in(v) for v in (*args.positional, *args.keywords.values()))
        )
        if isinstance(target, Partial):
            inner = (*target.args, *(v for _, v in target.keywords))
            deps = deps.union(*(self._symbols_in(v) for v in inner))
        frame = self.frame
        own = frozenset(o.loop.symbol for o in frame.loops)
        symbols = frozenset(s for s in deps if s in own or s.kind == "rank")
        saved = frame.workers
        frame.workers = Workers(kind, symbols, node, -1)
        try:
            self.call(target, args, node)
        finally:
            frame.workers = saved

    @cached_property
    def _waited_for_at_once(self) -> frozenset[ast.AST]:
        """What ``.join()`` or the like is called on as soon as it is made."""
        nodes = walk(self.tree)
        return frozenset(
            node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr in WAITS
        )

    def _waited_for(self, node: ast.AST) -> bool:
        """Whether the worker started at ``node`` ends before the next one starts."""
        frame = self.frame
        if node in self._waited_for_at_once:
            return True
        loop = frame.loops[-1].loop.node if frame.loops else None
        if not isinstance(loop, (ast.For, ast.While)):
            return False
        names = {
            text_of(one.targets[0])
            for one in loop.body
            if isinstance(one, ast.Assign) and one.value is node
        }
        return any(
            isinstance(one, (ast.Expr, ast.Assign, ast.AugAssign, ast.While))
            and isinstance(inner, ast.Attribute)
            and inner.attr in WAITS
            and text_of(inner.value) in names
            for one in loop.body
            for inner in walk(one)
        )

    def _symbols_in(self, value: Value) -> frozenset[Symbol]:
        if isinstance(value, Sequence):
            parts = value.items if value.items is not None else (value.element,)
            return frozenset().union(*(self._symbols_in(v) for v in parts))
        return deps_of(value)

    def _thread(self, kind: str, args: Args, node: ast.AST, cls: str) -> Value:
        target = args.get("target", 1)
        handed = args.get("args", 3)
        named = args.get("kwargs", 4)
        positional = handed.items if isinstance(handed, Sequence) and handed.items else ()
        keywords = dict(named.items) if isinstance(named, Mapping) else {}
        for one in alternatives(target):
            self.start(kind, one, Args(positional, keywords, False), node)
        return Object(cls, self.sites.at(node), facts_of(args))

    def _pool(self, name: str, args: Args, node: ast.AST) -> Value:
        """A pool, whose workers run its initializer first."""
        place = INITIALIZERS.get(name, 2)
        handed = args.get("initargs", place + 1)
        positional = handed.items if isinstance(handed, Sequence) and handed.items else ()
        for first in alternatives(args.get("initializer", place)):
            if isinstance(first, (Function, Partial, Bound)):
                self.call(first, Args(positional, {}, False), node)
        return Object(name, self.sites.at(node), facts_of(args))

    def start_in(self, pool: Object, target: Value, args: Args, node: ast.AST) -> None:
        """Interpret ``target(args)`` as the workers of a pool run it; one alone shares nothing."""
        sizes = (pool.fact(key) for key in ("0", "max_workers", "processes"))
        if not any(must_be(size, 1) for size in sizes):
            self.start(POOLS.get(pool.cls, "thread"), target, args, node)

    def _submit(self, made: Object, args: Args, node: ast.AST) -> Value:
        for target in alternatives(args.get("", 0)):
            inner = args.positional[1:]
            self.start_in(made, target, Args(inner, args.keywords, args.open), node)
        return Unknown("call")

    def _apply_async(self, made: Object, args: Args, node: ast.AST) -> Value:
        handed = args.get("args", 1)
        positional = handed.items if isinstance(handed, Sequence) and handed.items else ()
        for target in alternatives(args.get("func", 0)):
            self.start_in(made, target, Args(positional, {}, False), node)
        return Unknown("call")

    def _map(self, made: Object, args: Args, node: ast.AST) -> Value:
        star = isinstance(node, ast.Call) and "starmap" in ast.unparse(node.func)
        elements = [self._worker_element(v, node, i) for i, v in enumerate(args.positional[1:])]
        positional = tuple(elements)
        if star and elements and isinstance(elements[0], Sequence) and elements[0].items:
            positional = elements[0].items
        for target in alternatives(args.get("", 0)):
            self.start_in(made, target, Args(positional, {}, False), node)
        return Sequence("iterator", None, Unknown("call"))

    def _worker_element(self, iterable: Value, node: ast.AST, index: int) -> Value:
        """One item of an iterable whose items go to a worker each."""
        rank = Symbol("rank", f"worker{index}", self.sites.at(node, f"rank {index}"))
        if isinstance(iterable, Object):
            if iterable.cls == "builtins.range":
                return symbol_value(rank)
            if iterable.cls == "builtins.enumerate":
                return Sequence("tuple", (symbol_value(rank), self.element(iterable.fact("0"))))
            if iterable.cls == "builtins.zip":
                parts = [v for k, v in iterable.facts if k.isdigit()]
                return Sequence("tuple", tuple(self._worker_element(v, node, 0) for v in parts))
        element = self.element(iterable)
        if isinstance(element, Sequence) and element.items is not None:
            # A list of argument tuples made by a comprehension: its index tells them apart.
            return Sequence("tuple", tuple(_as_rank(v, rank) for v in element.items))
        return _as_rank(element, rank)

    def _spawn(self, args: Args, node: ast.AST) -> Value:
        rank = symbol_value(Symbol("rank", "rank", self.sites.at(node, "rank")))
        handed = args.get("args", 1)
        rest = handed.items if isinstance(handed, Sequence) and handed.items else ()
        for target in alternatives(args.get("fn", 0)):
            self.start("process", target, Args((rank, *rest), {}, False), node)
        return UNKNOWN

    def start_inherited(self, receiver: Instance, name: str, node: ast.AST) -> Value | None:
        """``start()`` of a subclass of ``threading.Thread`` or ``Process``."""
        if name != "start":
            return None
        kinds = [STARTERS[b] for b in self.library_bases(receiver.cls) if b in STARTERS]
        body = self.class_attribute(receiver.cls, "run")
        if not kinds or not isinstance(body, Function):
            return None
        values = self.heap.of(receiver.site).values()
        symbols = frozenset().union(*(self._symbols_in(v) for v in values))
        symbols = frozenset(s for s in symbols if s.kind in ("loop", "rank"))
        saved = self.frame.workers
        self.frame.workers = Workers(kinds[0], symbols, node, -1)
        try:
            bound = Function(body.node, body.scope, receiver, body.name)
            self.call_function(bound, Args((), {}, False), node)
        finally:
            self.frame.workers = saved
        return Const(None)

    def start_workers_on_unknown(
        self, receiver: Unknown, name: str, args: Args, node: ast.AST
    ) -> Value | None:
        if name in ("Process", "Thread") and "target" in args.keywords:
            kind = "process" if name == "Process" else "thread"
            return self._thread(kind, args, node, f"multiprocessing.{name}")
        return None

    def _delayed(self, args: Args, node: ast.AST) -> Value:
        return Object("joblib.delayed", self.sites.at(node), facts_of(args))

    def _joblib(self, args: Args, node: ast.AST) -> Value:
        words = {
            v.value
            for name in ("require", "prefer", "backend")
            for v in alternatives(args.get(name))
            if isinstance(v, Const)
        }
        if must_be(args.get("n_jobs", 0), 1):
            self.joblib_kind = ""
            return Object("joblib.Parallel", self.sites.at(node), facts_of(args))
        self.joblib_kind = "thread" if words & {"sharedmem", "threads", "threading"} else "process"
        return Object("joblib.Parallel", self.sites.at(node), facts_of(args))

    def _run_delayed(self, made: Object, args: Args, node: ast.AST) -> Value:
        if self.joblib_kind:
            self.start(self.joblib_kind, made.fact("0"), args, node)
        return Unknown("call")

    # Memory that processes share

    def mark_shared(self, value: Value) -> Value:
        for one in alternatives(value):
            if isinstance(one, Tensor) and one.site is not None:
                self.shared.add(one.site)
        return value

    def is_locked(self, node: ast.AST) -> bool:
        if any(isinstance(c, Object) and c.cls == "memlint.lock" for c in self.frame.contexts):
            return True
        function = self.frame.function
        line = getattr(node, "lineno", 0)
        calls = self._lock_calls_in(function.node if function is not None else self.tree)
        before = [call for call in calls if call[0] < line]
        return bool(before) and max(before)[1] == "acquire"

    def _lock_calls_in(self, body: ast.AST) -> list[tuple[int, str]]:
        """The lines of a function on which a lock is taken or given back."""
        found = self.lock_calls.get(id(body))
        if found is None:
            found = self.lock_calls[id(body)] = [
                (inner.lineno, inner.attr)
                for inner in walk(body)
                if isinstance(inner, ast.Attribute) and inner.attr in ("acquire", "release")
            ]
        return found

    joblib_kind: str
    lock_calls: dict[int, list[tuple[int, str]]]


def _as_rank(value: Value, rank: Symbol) -> Value:
    """An item that is told apart by its worker: an index of the list it came from."""
    if any(s.kind == "loop" for s in deps_of(value)) and not isinstance(value, Unknown):
        return symbol_value(rank)
    if isinstance(value, Unknown) and value.deps:
        return replace(value, deps=value.deps | {rank})
    return value


def _wrapper(name: str) -> Callable[..., Value]:
    return lambda self, args, node: self._wrap(name, args, node)


def _pooled(name: str) -> Callable[..., Value]:
    return lambda self, args, node: self._pool(name, args, node)


def _starter(name: str, kind: str) -> Callable[..., Value]:
    return lambda self, args, node: self._thread(kind, args, node, name)


for _name in (
    *NUMBA,
    "numba.cuda.jit",
    "numba.vectorize",
    "numba.stencil",
    *("triton.jit", "triton.autotune", "triton.heuristics"),
    "cupyx.jit.rawkernel",
):
    Parallel.FUNCTIONS[_name] = _wrapper(_name)
    Parallel.METHODS[(_name, "__call__")] = Parallel._apply_trait
Parallel.FUNCTIONS["numba.jit_module"] = Parallel._jit_module
Parallel.FUNCTIONS["numba.get_thread_id"] = Parallel._thread_id
for _name, _kind in STARTERS.items():
    Parallel.FUNCTIONS[_name] = _starter(_name, _kind)
for _name in POOLS:
    Parallel.FUNCTIONS[_name] = _pooled(_name)
    Parallel.METHODS[(_name, "submit")] = Parallel._submit
    Parallel.METHODS[(_name, "apply_async")] = Parallel._apply_async
    for _method in MAPPERS:
        Parallel.METHODS[(_name, _method)] = Parallel._map
Parallel.FUNCTIONS["torch.multiprocessing.spawn"] = Parallel._spawn
Parallel.FUNCTIONS["joblib.delayed"] = Parallel._delayed
Parallel.FUNCTIONS["joblib.Parallel"] = Parallel._joblib
Parallel.METHODS[("joblib.delayed", "__call__")] = Parallel._run_delayed
