"""Where the host waits for the device: reads of CUDA tensors that run over and over.

A read in a training step, in a loop over tokens or in one over the samples of a tensor is
told; whatever happens only now and then is not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from memlint.analysis.events import Called, Enclosing
from memlint.analysis.placement import is_tensor, on_cuda
from memlint.analysis.values import (
    Bound,
    Made,
    Site,
    Symbol,
    Value,
    alternatives,
    constants,
    deps_of,
    leaves,
    made_of,
    plain,
)

READING_METHODS = frozenset({".item", ".tolist", ".cpu", ".to"})
READING_FUNCTIONS = frozenset(
    {"builtins.float", "builtins.int", "builtins.bool", "builtins.print", "builtins.format",
     "builtins.str"}
)  # fmt: skip
READS = READING_METHODS | READING_FUNCTIONS
BACKWARD = frozenset({".backward", "torch.autograd.backward", ".manual_backward"})
TRAINING = BACKWARD | {".zero_grad"}
STEPS = frozenset({".step"})
_PICKS = frozenset(
    f"{head}{name}" for head in (".", "torch.") for name in ("argmax", "multinomial", "topk")
) | {".sample"}
_VIEWS = frozenset(
    {"operator.getitem", ".squeeze", ".view", ".reshape", ".flatten", ".detach", ".float",
     ".long", ".int", ".to", ".contiguous", ".unsqueeze", ".mean", ".sum", ".max", ".min",
     ".argmax", ".norm", ".abs", ".softmax", ".sigmoid", ".clone"}
)  # fmt: skip
# Code that measures waits on purpose.
_MEASURES = re.compile(r"profil|bench|timeit|latency", re.IGNORECASE)
_DEPTH = 16
_FEW = 4


@dataclass(frozen=True, slots=True)
class Wait:
    """A read of a CUDA tensor by the host.

    ``kind`` is "training" (in each step of a training loop), "token" (each token that is
    generated) or "sample" (each part of a tensor, one by one); ``loop`` is that loop.
    """

    read: Called
    kind: str
    loop: Enclosing


@dataclass(slots=True)
class Reads:
    """The reads of a program, and what tells which of them matter."""

    reads: list[Called] = field(default_factory=list)
    placed: set[Site] = field(default_factory=set)
    # Loops in whose own body a step of training is done, and what backward is called on.
    training: set[int] = field(default_factory=set)
    losses: set[int] = field(default_factory=set)
    # What goes into ``env.step(...)``.
    fed: set[int] = field(default_factory=set)

    def note(self, call: Called) -> None:
        """Take note of one operation."""
        if call.name in READS:
            self.reads.append(call)
        elif call.name in STEPS:
            self.fed.update(id(made.node) for made in _behind(call.args.positional))
        elif call.name in TRAINING:
            innermost = call.context.innermost()
            if innermost is not None:
                self.training.add(id(innermost.loop.node))
            if call.name in BACKWARD:
                given = (call.receiver, *call.args.positional)
                self.losses.update(
                    id(made.node) for one in given if one is not None for made in _made_by(one)
                )

    def waits(self) -> Iterator[Wait]:
        """The reads that make the host wait over and over, once a line."""
        told: set[tuple[int, int]] = set()
        for read in self.reads:
            wait = self._wait(read)
            if wait is None:
                continue
            line = (id(read.source), read.node.lineno)
            if line not in told:
                told.add(line)
                yield wait

    def _wait(self, read: Called) -> Wait | None:
        loops = read.context.loops
        if not loops or id(read.node) in self.fed or not _to_host(read):
            return None
        if _MEASURES.search(read.context.name):
            return None
        found = self._kind_of(read)
        if found is None:
            return None
        kind, loop, values = found
        return Wait(read, kind, loop) if any(self._is_read(read, one) for one in values) else None

    def _kind_of(self, read: Called) -> tuple[str, Enclosing, tuple[Value, ...]] | None:
        values = read.operands if read.name == "builtins.print" else read.operands[:1]
        loop = self._training_loop(read)
        if loop is not None:
            return "training", loop, values
        innermost = read.context.loops[-1]
        if innermost.throttled or innermost.varied or read.name not in READING_METHODS:
            return None
        if innermost.role in ("batch", "epoch") or not values:
            return None
        if _samples(values[0], innermost.loop.symbol, innermost.loop.node):
            few = innermost.loop.trips is not None and innermost.loop.trips < _FEW
            return None if few else ("sample", innermost, values)
        if read.name not in (".item", ".tolist") or innermost.loop.kind not in ("range", "while"):
            return None
        return (
            ("token", innermost, values) if _picks_token(values[0], innermost.loop.node) else None
        )

    def _training_loop(self, read: Called) -> Enclosing | None:
        """The training loop that a read runs in each step of."""
        for one in reversed(read.context.loops):
            if id(one.loop.node) in self.training:
                evaluates = one.role == "epoch" and read.context.grad is False
                return None if one.throttled or one.varied or evaluates else one
            if one.role == "batch":
                return None
        return None

    def _is_read(self, read: Called, value: Value) -> bool:
        """Whether ``value`` is a tensor on a CUDA device, for a read that takes others too."""
        if read.name in READING_FUNCTIONS and not any(
            is_tensor(one) or any(id(made.node) in self.losses for made in _made_by(one))
            for one in alternatives(value)
        ):
            return False
        return on_cuda(value, self.placed)


def _to_host(read: Called) -> bool:
    if read.name != ".to":
        return True
    given = read.args.get("device", 0)
    quick = any(value is True for value in constants(read.args.get("non_blocking", 1)))
    return not quick and set(constants(given)) == {"cpu"}


def _made_by(value: Value) -> Iterator[Made]:
    """What made a value, attributes of it aside."""
    for one in alternatives(value):
        made = made_of(plain(one) if isinstance(one, Bound) else one)
        if made is not None:
            yield made


def _behind(values: tuple[Value, ...]) -> Iterator[Made]:
    """Everything that went into values, as far as it is near."""
    waiting = [(leaf, 0) for value in values for leaf in leaves(value)]
    seen: set[int] = set()
    while waiting:
        value, depth = waiting.pop()
        for made in _made_by(value):
            if id(made) in seen or depth > _DEPTH:
                continue
            seen.add(id(made))
            yield made
            waiting += [(leaf, depth + 1) for one in made.inputs for leaf in leaves(one)]


def _samples(value: Value, symbol: Symbol, loop: ast.AST) -> bool:
    """Whether ``value`` is the part for this iteration of a tensor made before the loop."""
    for _ in range(_DEPTH):
        made = next(_made_by(value), None)
        if made is None or not made.inputs:
            return False
        if made.name == "operator.getitem" and any(
            symbol in deps_of(key) for key in made.inputs[1:]
        ):
            whole = made.inputs[0]
            before = all(not _within(one.node, loop) for one in _made_by(whole))
            return before and symbol not in deps_of(whole) and is_tensor(whole)
        if made.name not in _VIEWS:
            return False
        value = made.inputs[0]
    return False


def _picks_token(value: Value, loop: ast.AST) -> bool:
    """Whether ``value`` is the position that a model's output in this iteration chooses."""
    for _ in range(_DEPTH):
        made = next(_made_by(value), None)
        if made is None or not made.inputs or not _within(made.node, loop):
            return False
        if made.name in _PICKS:
            return any(
                one.name == "call" and _within(one.node, loop) for one in _behind(made.inputs[:1])
            )
        if made.name not in _VIEWS:
            return False
        value = made.inputs[0]
    return False


def _within(node: ast.AST, loop: ast.AST) -> bool:
    first, last = getattr(loop, "lineno", 0), getattr(loop, "end_lineno", 0) or 0
    return first <= getattr(node, "lineno", 0) <= last
