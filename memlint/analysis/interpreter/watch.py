"""Operations that rules watch: what made each value, and under what each operation runs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from operator import is_

from memlint.analysis.events import Called, Context, Enclosing
from memlint.analysis.interpreter.autograd import Autograd, with_places
from memlint.analysis.interpreter.loop_roles import role_of
from memlint.analysis.interpreter.state import OpenLoop
from memlint.analysis.knowledge import Args
from memlint.analysis.values import (
    Absent,
    Bound,
    Class,
    Const,
    Function,
    Instance,
    Linear,
    Made,
    Mapping,
    Partial,
    Ref,
    Sequence,
    Site,
    Value,
    alternatives,
    join,
    made_of,
    with_made,
    with_made_at_last,
)
from memlint.source.project import source_of

TRUTH = "builtins.bool"
_TRUTHS = frozenset({".any", ".all", "torch.any", "torch.all"})
NO_ARRAYS = (Const, Linear, Sequence, Mapping, Ref, Function, Class, Absent)


class Watch(Autograd):
    """Notes of operations."""

    # The call that is read once more, since it may be of another object.
    again: ast.AST | None = None

    def each_called(self, callees: Iterable[Value], args: Args, node: ast.AST) -> Value:
        """The value of a call that may be of any of ``callees``, told as one operation."""
        before, results = self.again, []
        for callee in callees:
            results.append(self.call(callee, args, node))
            self.again = node
        self.again = before
        return join(results)

    def operation(
        self,
        name: str,
        node: ast.AST,
        receiver: Value | None,
        args: Args,
        value: Value,
        graphs: frozenset[Site] = frozenset(),
    ) -> Value:
        """Note an operation; its result, which knows then what made it."""
        inputs = args.positional if receiver is None else (receiver, *args.positional)
        if name in self.watched:
            key = (id(node), name, self.frame.grad, *(id(f.call) for f in self.stack))
            told = receiver
            before = self.called.get(key)
            if (
                node is self.again
                and before is not None
                and None not in (receiver, before.receiver)
            ):
                told = join(one for one in (before.receiver, receiver) if one is not None)
                value = join((before.value, value))
            self.called[key] = Called(
                node,  # type: ignore[arg-type]
                name,
                told,
                args,
                value,
                self.statement,
                self.context(),
                source_of(node, self.source),
            )
        made = Made(name, node, inputs, _named(args))
        if not self.follows_graphs:
            return with_made(value, made)
        graphs |= self.graphs_after(name, node, receiver, args)
        return with_places(name, args, with_made(value, made, graphs))

    def called_by(self, callee: Value, args: Args, node: ast.AST, value: Value) -> Value:
        """:meth:`operation` for a call, by what it calls."""
        if isinstance(callee, Ref):
            return self.operation(callee.name, node, None, args, value)
        graphs = self.graphs_of_call(callee, args, node, value)
        if isinstance(callee, Bound):
            name = f".{callee.name}"
            self.note_entered(name, callee.receiver, args)
            self.note_mode(name, node, callee.receiver, args)
            value = self.operation(name, node, callee.receiver, args, value, graphs)
        else:
            value = self._called_object(callee, args, node, value, graphs)
        self.note_forward(callee, args, node, value)
        return value

    def _called_object(
        self, callee: Value, args: Args, node: ast.AST, value: Value, graphs: frozenset[Site]
    ) -> Value:
        if isinstance(callee, Function) and isinstance(callee.bound, Instance):
            short = f".{callee.name.rpartition('.')[2]}"
            if short in self.watched:
                self.operation(short, node, callee.bound, args, value)
        known = made_of(value)
        if known is not None and not graphs:
            return value
        made = Made("call", node, (callee, *args.positional), _named(args))
        if not isinstance(callee, (Function, Partial, Class, Instance)):
            return with_made(value, known or made, graphs)
        # What made the parts of a result within a function of the program is known already.
        return with_made_at_last(value, made, graphs or None)

    def operated(
        self,
        name: str,
        node: ast.AST,
        operands: tuple[Value, ...],
        value: Value,
        key: tuple[Value, ...] = (),
    ) -> Value:
        """:meth:`operation` for an operator, a subscript or an attribute; ``key`` is that of
        what is stored to."""
        if all(isinstance(one, NO_ARRAYS) for one in operands):
            return value
        keywords: dict[str, Value] = {"key": Sequence("tuple", key)} if key else {}
        return self.operation(name, node, None, Args(operands, keywords, False), value)

    def note_truth(self, node: ast.expr, value: Value) -> None:
        """A condition asks for the truth of ``x.any()`` or ``x.all()``: a number is read."""
        if TRUTH in self.watched and not isinstance(node, ast.BoolOp):
            found = [made_of(one) for one in alternatives(value)]
            if any(made is not None and made.name in _TRUTHS for made in found):
                self.operated(TRUTH, node, (value,), value)

    # Under what an operation runs

    # The last context that was told, and what it was told of.
    last_context: tuple[tuple[object, ...], Context] | None = None

    def context(self) -> Context:
        frame, loaders = self.frame, len(self.loaders)
        loops = frame.loops
        # While a function runs, nothing of those that it was called through changes but these.
        state = (
            frame, loops[-1] if loops else None, len(loops), frame.conditions, frame.throttles,
            frame.varied, frame.contexts, frame.grad, self.grad_set, len(self.stack), loaders,
        )  # fmt: skip
        last = self.last_context
        if last is not None and all(map(is_, last[0], state)):
            return last[1]
        found = self._context()
        self.last_context = state, found
        return found

    def _context(self) -> Context:
        frames = self.stack
        loops: list[Enclosing] = []
        rare = conditional = varied = False
        for frame in reversed(frames):
            loops.extend(
                Enclosing(
                    opened.loop,
                    self._role_of(opened),
                    rare or frame.throttles > opened.throttles,
                    conditional or frame.conditions > opened.conditions,
                    varied or frame.varied > opened.varied,
                )
                for opened in reversed(frame.loops)
            )
            rare = rare or frame.throttles > 0
            conditional = conditional or frame.conditions > 0
            varied = varied or frame.varied > 0
        frame = self.frame
        functions = [f.function for f in frames if f.function is not None]
        return Context(
            tuple(reversed(loops)),
            tuple(f.call for f in frames if f.call is not None),
            frame.function.node if frame.function is not None else None,
            frame.name,
            functions[0].node if functions and frames[1].call is None else None,
            self.recording(),
            frame.contexts,
            frame.receiver,
            frame.compiled,
            frame.conditions > 0,
            frame.throttles > 0,
        )

    def _role_of(self, opened: OpenLoop) -> str:
        if opened.role is None or opened.role[0] != len(self.loaders):
            opened.role = len(self.loaders), role_of(opened.loop, self.loaders)
        return opened.role[1]

    def surroundings(self) -> object:
        """What of the calling code tells apart the operations of a function that it calls."""
        if not self.watched or self.frame.compiled is not None:
            return ()
        return (
            self.grad_set,
            tuple(self.frame.modes.items()) if self.follows_graphs else (),
            *(
                (id(opened.loop.node), frame.throttles > opened.throttles)
                for frame in self.stack
                for opened in frame.loops
            ),
        )

    def tell_calls(self) -> Iterator[Called]:
        """The operations that were noted, in the order of their last reading."""
        yield from self.called.values()
        self.called = {}


def _named(args: Args) -> tuple[tuple[str, Value], ...]:
    """The arguments that are given by a name, and what ``**`` gives by some."""
    return (*args.keywords.items(), *(("**", value) for value in args.spread))
