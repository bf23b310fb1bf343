"""Where the host waits for the device: reads of CUDA tensors that run over and over.

A read in a training step, in a loop over tokens or in one over the samples of a tensor is
told; whatever happens only now and then is not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import field

from memlint.analysis import knowledge
from memlint.analysis.events import Called, Enclosing
from memlint.analysis.last_name import last_name
from memlint.analysis.placement import is_tensor, on_cuda
from memlint.analysis.placing import PLACING, placed_by
from memlint.analysis.values import (
    Bound,
    Const,
    Made,
    Sequence,
    Site,
    Value,
    alternatives,
    constants,
    deps_of,
    leaves,
    made_of,
    plain,
)
from memlint.analysis.walking import walk
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

READING_METHODS = frozenset({".item", ".tolist", ".cpu", ".to"})
READING_FUNCTIONS = frozenset(
    {"builtins.float", "builtins.int", "builtins.bool", "builtins.print", "builtins.format",
     "builtins.str"}
)  # fmt: skip
TRUTH = "builtins.bool"
READS = READING_METHODS | READING_FUNCTIONS | {".format"}
BACKWARD = frozenset({".backward", "torch.autograd.backward", ".manual_backward"})
TRAINING = BACKWARD | {".zero_grad"}
NORMS = frozenset({"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_norm",
                   ".clip_grad_norm_"})  # fmt: skip
STEPS = frozenset({".step"})
# What waits for all that was queued.
EMPTYING = frozenset({"torch.cuda.synchronize", "torch.accelerator.synchronize"})
_PICKS = frozenset(
    f"{head}{name}" for head in (".", "torch.") for name in ("argmax", "multinomial", "topk")
) | {".sample"}
_VIEWS = frozenset(
    {"operator.getitem", ".squeeze", ".view", ".reshape", ".flatten", ".detach", ".float",
     ".long", ".int", ".to", ".contiguous", ".unsqueeze", ".mean", ".sum", ".max", ".min",
     ".argmax", ".norm", ".abs", ".softmax", ".sigmoid", ".clone"}
)  # fmt: skip
# What is read as one number, or a few.
_SCALAR = frozenset({".item", ".tolist", "builtins.float", "builtins.int", "builtins.bool"})
_OF_ONE = (READING_METHODS | _SCALAR) - {".to"}
# Attributes that tell of a tensor what the host knows anyway.
_KNOWN_TO_HOST = frozenset(
    {"device", "dtype", "shape", "ndim", "requires_grad", "is_cuda", "is_leaf", "layout", "grad_fn",
     "is_sparse", "itemsize", "nbytes", "names", "training"}
)  # fmt: skip
# Methods of tensors that other objects have, too, or that give several tensors.
_SHARED_NAMES = frozenset(
    {".to", ".cuda", ".cpu", ".type", ".split", ".chunk", ".unbind", ".index", ".count", ".copy",
     ".get", ".values", ".size", ".dim", ".numel", ".detach"}
)  # fmt: skip
# Methods of Python's own containers.
_OF_PYTHON = frozenset({"append", "get", "items", "keys", "pop", "values", "update", "sample"})
# Operators of lists, too.
_OF_LISTS = frozenset({"operator.add", "operator.multiply", "operator.remainder"})
# Code that measures waits on purpose.
_MEASURES = late_pattern(r"profil|bench|timeit|latency", re.IGNORECASE)
# What a schedule of learning rates is called.
_SCHEDULES = late_pattern(r"sch(e|d)|lr|warmup", re.IGNORECASE)
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
    # What backward is called on, by the loops in whose own body it is.
    walked: dict[int, list[Value]] = field(default_factory=dict)
    # What empties the queue, and what fills it again, but for the forward pass.
    emptied: list[Called] = field(default_factory=list)
    filled: list[Called] = field(default_factory=list)

    def note(self, call: Called) -> None:
        """Take note of one operation."""
        if call.name in PLACING:
            self.placed.update(placed_by(call))
        if call.name in READS:
            self.reads.append(call)
        elif call.name in EMPTYING:
            self.emptied.append(call)
        elif call.name in STEPS:
            self.fed.update(id(made.node) for made in _behind(call.args.positional))
            if not _is_schedule(call):
                self.filled.append(call)
        elif call.name in TRAINING:
            innermost = call.context.innermost()
            if innermost is not None:
                self.training.add(id(innermost.loop.node))
            if call.name in BACKWARD:
                self.filled.append(call)
                given = (call.receiver, *call.args.positional)
                values = [one for one in given if one is not None]
                self.losses.update(id(made.node) for one in values for made in _made_by(one))
                if innermost is not None:
                    self.walked.setdefault(id(innermost.loop.node), []).extend(values)

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
        if any(self._waited_for(read, before) for before in self.emptied):
            return None
        # A part of a tensor, and what is picked from one, is a tensor.
        known = kind != "training" or read.name in READING_METHODS
        if any((known or self._is_tensor(one)) and on_cuda(one, self.placed) for one in values):
            return Wait(read, kind, loop)
        if kind == "training" and any(self._is_norm(one, loop) for one in values):
            return Wait(read, kind, loop)
        return None

    def _is_norm(self, value: Value, loop: Enclosing) -> bool:
        """Whether ``value`` is the norm of the gradients, which lie where the loss does."""
        losses = self.walked.get(id(loop.loop.node), [])
        return any(
            made.name in NORMS for one in alternatives(value) for made in _made_by(one)
        ) and any(on_cuda(one, self.placed) for one in losses)

    def _waited_for(self, read: Called, before: Called) -> bool:
        """Whether ``before`` waits in the same iteration for all that ``read`` would wait for."""
        if not before.context.loops or before.context.function is not read.context.function:
            return False
        innermost = before.context.loops[-1]
        if innermost.conditional or innermost.throttled:
            return False
        if all(one.loop.node is not innermost.loop.node for one in read.context.loops):
            return False
        first, last = before.node.lineno, read.node.lineno
        between = (
            one.node.lineno for one in self.filled if one.context.function is read.context.function
        )
        return (
            first < last
            and not any(first <= line < last for line in between)
            and _is_older(read, innermost.loop.node, first)
        )

    def _kind_of(self, read: Called) -> tuple[str, Enclosing, tuple[Value, ...]] | None:
        values = _read(read)
        loop = self._training_loop(read)
        if loop is not None:
            return "training", loop, values
        innermost = read.context.loops[-1]
        if innermost.throttled or innermost.varied or read.name not in _OF_ONE | {".to"}:
            return None
        if innermost.role in ("batch", "epoch", "parameters") or not values:
            return None
        if _samples(values[0], innermost, scalar=read.name in _SCALAR):
            few = innermost.loop.trips is not None and innermost.loop.trips < _FEW
            return None if few else ("sample", innermost, values)
        if read.name not in _SCALAR or innermost.loop.kind not in ("range", "while"):
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

    def _is_tensor(self, value: Value) -> bool:
        """Whether ``value`` is a tensor, where what reads it reads other things, too."""
        return any(
            is_tensor(one) or any(id(made.node) in self.losses for made in _made_by(one))
            for one in alternatives(value)
        )


def _is_schedule(step: Called) -> bool:
    """Whether a step is one of a schedule, which queues nothing."""
    match step.node:
        case ast.Call(func=ast.Attribute(value=value)):
            return _SCHEDULES.search(last_name(value)) is not None
    return False


def _is_older(read: Called, loop: ast.AST, line: int) -> bool:
    """Whether what is read was there at ``line`` of a loop already: a name that no later line
    binds, or a view of it."""
    names: set[str] = set()
    for node in walk(read.node):
        match node:
            case ast.Name(id=name):
                names.add(name)
            case ast.Call(func=ast.Attribute(attr=name)) if node is not read.node:
                if f".{name}" not in _VIEWS:
                    return False
            case ast.Call() if node is not read.node:
                return False
    return not any(
        isinstance(node, ast.Name)
        and node.id in names
        and isinstance(node.ctx, ast.Store)
        and line <= node.lineno < read.node.lineno
        for node in walk(loop)
    )


def _read(read: Called) -> tuple[Value, ...]:
    """What an operation reads."""
    if read.name == "builtins.print":
        return read.operands
    if read.name == ".format":
        return (*read.args.positional, *read.args.keywords.values())
    return read.operands[:1]


def _to_host(read: Called) -> bool:
    if read.name == ".format":
        return isinstance(read.receiver, Const)
    if read.name != ".to":
        return True
    given = read.args.get("device", 0)
    quick = any(value is True for value in constants(read.args.get("non_blocking", 1)))
    return not quick and set(constants(given)) == {"cpu"}


def _made_by(value: Value) -> Iterator[Made]:
    """What made a value, attributes of it aside."""
    for one in alternatives(value):
        if isinstance(one, Bound) and one.name in _KNOWN_TO_HOST:
            continue
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


def _samples(value: Value, inner: Enclosing, *, scalar: bool, depth: int = 0) -> bool:
    """Whether ``value`` is the part for this iteration of a tensor made before the loop.

    What is read as one number must be a part of a tensor, or of what is found by a key.
    """
    return depth < _DEPTH and all(
        _is_sample(one, inner, scalar=scalar, depth=depth) for one in alternatives(value)
    )


def _is_sample(value: Value, inner: Enclosing, *, scalar: bool, depth: int) -> bool:
    symbol, loop = inner.loop.symbol, inner.loop.node
    made = next(_made_by(value), None)
    if made is None or not made.inputs:
        return False
    whole = made.inputs[0]
    if made.name == "builtins.next":
        return _iterates(made.node, loop) and _is_whole(whole, scalar=scalar)
    if made.name == "operator.getitem" and any(symbol in deps_of(key) for key in made.inputs[1:]):
        before = all(not _within(one.node, loop) for one in _made_by(whole))
        return before and symbol not in deps_of(whole) and _is_whole(whole, scalar=scalar)
    return made.name in _VIEWS and _samples(whole, inner, scalar=scalar, depth=depth + 1)


def _iterates(statement: ast.AST, loop: ast.AST) -> bool:
    """Whether ``loop`` is the statement that takes the next part, or a comprehension in it."""
    return statement is loop or (isinstance(loop, ast.expr) and _within(loop, statement))


def _is_whole(value: Value, *, scalar: bool) -> bool:
    """Whether ``value`` is one tensor, rather than a collection of several."""
    return all(_is_one_whole(one, scalar=scalar) for one in alternatives(value))


def _is_one_whole(value: Value, *, scalar: bool) -> bool:
    if is_tensor(value):
        return True
    made = next(_made_by(value), None)
    if made is None or isinstance(value, Sequence):
        return False
    if made.name == "operator.getitem":
        return scalar and any(
            isinstance(key, Const) and isinstance(key.value, str) for key in made.inputs[1:]
        )
    if made.name.startswith("."):
        return made.name not in _SHARED_NAMES and made.name[1:] in knowledge.methods("torch")
    return made.name.startswith("operator.") and made.name not in _OF_LISTS


def _picks_token(value: Value, loop: ast.AST) -> bool:
    """Whether ``value`` is the position that a model's output in this iteration chooses."""
    for _ in range(_DEPTH):
        made = next(_made_by(value), None)
        if made is None or not made.inputs or not _within(made.node, loop):
            return False
        if made.name in _PICKS or _picks_along_axis(made):
            return any(
                _runs_model(one) and _within(one.node, loop) for one in _behind(made.inputs[:1])
            )
        if made.name not in _VIEWS:
            return False
        value = made.inputs[0]
    return False


def _picks_along_axis(made: Made) -> bool:
    """``_, token = torch.max(scores, dim=1)``."""
    return made.name in (".max", "torch.max") and (
        len(made.inputs) > 1 or any(key == "dim" for key, _ in made.keywords)
    )


def _runs_model(made: Made) -> bool:
    """Whether an object is called, or a method of it that tensors do not have
    (``model.decode(...)``)."""
    if made.name == "call":
        return True
    method = made.name[1:]
    known = method in _OF_PYTHON or method in knowledge.methods("torch")
    return made.name.startswith(".") and not known


def _within(node: ast.AST, loop: ast.AST) -> bool:
    first, last = getattr(loop, "lineno", 0), getattr(loop, "end_lineno", 0) or 0
    return first <= getattr(node, "lineno", 0) <= last
