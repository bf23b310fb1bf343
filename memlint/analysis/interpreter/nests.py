"""What is accessed in loops, and what workers store side by side."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.events import (
    Access,
    Compiled,
    Loop,
    LoopNest,
    SharedUpdate,
    SlotStore,
    Workers,
)
from memlint.analysis.interpreter.machine import UNKNOWN, text_of
from memlint.analysis.interpreter.state import Frame, OpenLoop
from memlint.analysis.interpreter.statements import Statements
from memlint.analysis.knowledge import Args, SliceValue
from memlint.analysis.knowledge.scalars import SCALAR_FUNCTIONS
from memlint.analysis.linear import add, linear, of_linear
from memlint.analysis.values import (
    Class,
    Const,
    Function,
    Object,
    Ref,
    Sequence,
    Site,
    Symbol,
    Tensor,
    Unknown,
    Value,
    alternatives,
    deps_of,
    join,
    plain,
)
from memlint.analysis.walking import walk

LOOPS = (ast.For, ast.While, ast.comprehension)


class Nests(Statements):
    """Accesses, collected in the loops that are open.

    A loop's body is read until nothing new is learnt, so that what its last reading finds
    replaces what the ones before found; it is told when the function ends.
    """

    shared: set[Site]
    bound_names: dict[int, frozenset[str]]
    light_functions: dict[int, bool]

    def start_prange(self, node: ast.AST, loops: list[Loop]) -> None:
        """Iterations of a parallel loop are workers from here on."""
        compiled = self.frame.compiled
        parallel = isinstance(compiled, Compiled) and compiled.parallel
        if loops[0].kind == "prange" and parallel:
            depth = len(self.frame.loops) - len(loops)
            symbols = frozenset(loop.symbol for loop in loops)
            self.frame.workers = Workers("prange", symbols, node, depth)

    def note_nest(self, opened: list[OpenLoop]) -> None:
        """Loops whose bodies have been read, and that are closed already."""
        accesses = tuple(opened[-1].accesses)
        compiled = self.frame.compiled
        if not accesses and compiled is None and not _runs_over_array(opened[-1].loop):
            return
        loops = (*(o.loop for o in self.frame.loops), *(o.loop for o in opened))
        self.frame.nests[id(loops[-1].node)] = LoopNest(
            loops,
            accesses,
            compiled,
            self.frame.name,
            self.frame.call is not None,
            opened[-1].heavy,
        )

    def tell_nests(self) -> None:
        """Emit what the loops of this frame access."""
        for nest in self.frame.nests.values():
            self.emit(nest)
        for slot in self.frame.slots.values():
            self.emit(slot)
        for update in self.frame.updates.values():
            self.emit(update)
        self.frame.nests, self.frame.slots, self.frame.updates = {}, {}, {}

    def note_work(self, callee: Value) -> None:
        """A call in the body of a compiled loop."""
        if not all(self._is_light(one) for one in alternatives(callee)):
            self.frame.loops[-1].heavy = True

    def _is_light(self, callee: Value) -> bool:
        """Whether a call costs about as much as a few operations on numbers."""
        match callee:
            case Function(node=node):
                known = self.light_functions.get(id(node))
                if known is None:
                    known = self.light_functions[id(node)] = not _works_on_many(node)
                return known
            case Ref(name):
                module, _, last = name.rpartition(".")
                if module in ("math", "cmath", "numpy.random", "random") or module == "builtins":
                    return last not in ("sorted", "sum", "list", "set", "dict")
                return last in SCALAR_FUNCTIONS or module.startswith(("numba", "numpy.random"))
            case Class():
                return True
        return False

    def note_access(
        self,
        node: ast.AST,
        base_node: ast.expr,
        base: Value,
        items: tuple[Value | SliceValue, ...],
        mode: str,
        given: Value = UNKNOWN,
    ) -> None:
        frame = self.frame
        if not frame.loops and frame.workers is None:
            return
        # ``None`` cannot be indexed: where it is, another value is set first.
        bases = [plain(one) for one in alternatives(base) if one != Const(None)]
        base = join(bases)
        if not bases or not all(isinstance(v, (Tensor, Unknown)) for v in alternatives(base)):
            return
        loops = tuple(o.loop for o in frame.loops)
        conditional = bool(frame.loops) and frame.conditions > frame.loops[-1].conditions
        partial = frozenset(o.loop.symbol for o in frame.loops if frame.conditions > o.conditions)
        access = Access(
            node,
            self.statement,
            text_of(base_node),
            base,
            items,
            mode,
            conditional,
            loops,
            partial,
            given,
        )
        if frame.loops:
            frame.loops[-1].accesses.append(access)
        if mode != "load" and frame.workers is not None:
            self._note_slot(access, frame.workers)
            self._note_update(access)

    def note_view(self, receiver: Tensor, name: str, args: Args, node: ast.AST) -> None:
        """``x.select(1, j)``, ``x.narrow(1, j, 1)`` and ``x.take(j, axis=1)`` as ``x[:, j]``."""
        rank = receiver.layout.rank
        by_take = name == "take"
        axis = args.get("axis" if by_take else "dim", 1 if by_take else 0)
        start = args.get("indices" if by_take else "start", 0 if by_take else 1)
        if name == "select":
            start = args.get("index", 1)
        number = axis.value if isinstance(axis, Const) else None
        if rank is None or type(number) is not int or not -rank <= number < rank:
            return
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return
        item: Value | SliceValue = start
        if name == "narrow":
            length = linear(args.get("length", 2))
            first = linear(start)
            if length is None or first is None:
                return
            item = SliceValue(start, of_linear(add(first, length)))
        items: list[Value | SliceValue] = [SliceValue()] * rank
        items[number] = item
        self.note_access(node, node.func.value, receiver, tuple(items), "load")

    def _note_slot(self, access: Access, workers: Workers) -> None:
        deps = frozenset[Symbol]().union(
            *(deps_of(i) for i in access.index if not isinstance(i, SliceValue))
        )
        if not deps & workers.symbols and all(s.kind != "thread" for s in deps):
            return
        sites = [v.site for v in alternatives(access.value) if isinstance(v, Tensor)]
        made = next((site.node for site in sites if site is not None), None)
        if made is not None and self._private(made, workers):
            return
        frame = self.frame
        within = access.loops
        if workers.kind == "prange" and workers.depth >= 0:
            within = access.loops[workers.depth + 1 :]
        frame.slots[id(access.node)] = SlotStore(
            access,
            workers,
            within,
            frame.compiled,
            made,
            frame.name,
            self._spread(workers),
            locked=self.is_locked(access.node),
            shared=bool(sites) and all(site in self.shared for site in sites),
            called=frame.call is not None,
        )

    def _note_update(self, access: Access) -> None:
        """A store that needs what the element held, where a parallel loop runs it."""
        parallel = next(self._parallel_loops(), None)
        if parallel is None or (access.mode == "store" and not self._reads_back(access)):
            return
        loop, frame = parallel
        inner = [f.function.node for f in self.stack[self.stack.index(frame) + 1 :] if f.function]
        sites = [
            v.site.node for v in alternatives(access.value) if isinstance(v, Tensor) and v.site
        ]
        if any(_inside(made, body) for made in sites for body in (loop.node, *inner)):
            return
        assert frame.compiled is not None
        here = frame is self.frame
        bound = self._bound_in(loop.node) if here else None
        self.frame.updates[id(access.node)] = SharedUpdate(
            access, loop, frame.compiled, bound, self.frame.name
        )

    def _bound_in(self, loop: ast.AST) -> frozenset[str]:
        """The names that the body of a loop binds."""
        found = self.bound_names.get(id(loop))
        if found is None:
            found = self.bound_names[id(loop)] = frozenset(
                node.id
                for node in walk(loop)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            )
        return found

    def _parallel_loops(self) -> Iterator[tuple[Loop, Frame]]:
        """The parallel loops around this place, outermost first, with their functions; only
        the first of them runs in parallel."""
        for frame in self.stack:
            if frame.compiled is not None and frame.compiled.parallel:
                for opened in frame.loops:
                    if opened.loop.kind == "prange":
                        yield opened.loop, frame

    def _reads_back(self, access: Access) -> bool:
        """``x[k] = x[k] + v``."""
        text = ast.unparse(access.node)
        return bool(self.frame.loops) and any(
            other.mode == "load"
            and other.statement is access.statement
            and ast.unparse(other.node) == text
            for other in self.frame.loops[-1].accesses
        )

    def _spread(self, workers: Workers) -> Loop | None:
        """The parallel loop whose iterations the workers share out."""
        if workers.kind != "prange":
            return None
        opened = (o.loop for frame in reversed(self.stack) for o in frame.loops)
        return next((loop for loop in opened if loop.node is workers.node), None)

    def _private(self, made: ast.AST, workers: Workers) -> bool:
        """Whether each worker makes the array itself."""
        if workers.kind == "process":
            return False
        if workers.kind == "prange" and _inside(made, workers.node):
            return True
        return any(_inside(made, body) for body in self._run_by(workers))

    def _run_by(self, workers: Workers) -> Iterator[ast.AST]:
        """The functions that a worker is inside of."""
        for frame in reversed(self.stack):
            if frame.function is None or (workers.kind == "prange" and frame.workers is None):
                return
            if frame.workers is not None and frame.workers.depth >= 0:
                return
            yield frame.function.node
            if frame.call is workers.node:
                return

    def is_locked(self, node: ast.AST) -> bool:
        """Whether a lock is held at ``node``."""
        raise NotImplementedError


def _runs_over_array(loop: Loop) -> bool:
    for one in alternatives(loop.iterates) if loop.iterates is not None else ():
        if isinstance(one, Sequence) and isinstance(one.element, Tensor):
            return True
        if isinstance(one, Tensor) or (isinstance(one, Object) and one.cls.startswith("builtins.")):
            return True
    return False


def _works_on_many(node: ast.AST) -> bool:
    """Whether a function works on many elements, by loops or on whole arrays."""
    return any(map(_is_long, walk(node))) or _works_in_place(node)


def _is_long(node: ast.AST) -> bool:
    """Whether a part of a function's body works on many elements."""
    match node:
        case ast.Subscript(slice=ast.Slice(), ctx=ast.Store()):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=name)):
            return name not in SCALAR_FUNCTIONS
    return isinstance(node, LOOPS)


def _works_in_place(node: ast.AST) -> bool:
    """Whether a function changes an array as a whole: ``x -= mean`` of what it is handed, which
    would be lost if it were a number, as nothing is given back."""
    if not isinstance(node, ast.FunctionDef):
        return False
    inner = list(walk(node))
    if any(isinstance(one, ast.Return) and one.value is not None for one in inner):
        return False
    handed = {one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    return any(
        isinstance(one, ast.AugAssign) and getattr(one.target, "id", "") in handed for one in inner
    )


def _inside(node: ast.AST, outer: ast.AST) -> bool:
    first, last = getattr(outer, "lineno", 0), getattr(outer, "end_lineno", 0)
    return bool(first <= getattr(node, "lineno", 0) <= last)
