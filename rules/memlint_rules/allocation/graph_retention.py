"""MEM502 graph-retention."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from memlint.analysis.evaluation import evidence, guarded_by_callers, wants_gradients
from memlint.analysis.events import Called, Enclosing, Forward, ProgramEnd, ProgramStart
from memlint.analysis.graphs import BACKWARD, differentiated, nodes_behind, surely_in_graph
from memlint.analysis.places.evaluation import EVALUATING
from memlint.analysis.places.meter import adds_to_itself
from memlint.analysis.places.retention import NAMED, may_retain
from memlint.analysis.retention import (
    GROWING,
    SETTING,
    SUMMING,
    Kept,
    emptied_elsewhere,
    innermost_of,
    kept,
    outlives,
    place_of,
)
from memlint.analysis.uses import Uses, uses_in
from memlint.analysis.values import graphs_of, possible_graphs
from memlint.analysis.walking import walk
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Size, Weighed
from memlint.findings import Applicability, Severity
from memlint.late_dataclass import dataclass
from memlint.late_pattern import name_pattern
from memlint.rule import Draft, DraftFix, Needs, Related, Replacement, Rule
from memlint.source.model import Source
from memlint.source.project import is_foreign
from memlint.tracer.operands import spell
from memlint.tracer.records import Retained
from memlint.tracer.sightings import Sighting

HELP = (
    "keep `.detach()` of it, which stays on the device; `.item()` and `float()` serve too, but "
    "wait for the device each time"
)
# What walks a graph: ``grad`` by itself is imported.
WALKING = frozenset({"backward(", "autograd.grad", "autograd.backward"})
WALKING_BY_NAME = name_pattern(r"(?<![\w.])grad\b")


@dataclass(frozen=True, slots=True)
class _Backward:
    called: Called
    nodes: frozenset[int]


FEWEST_STEPS = 3
"""Of what runs: a loop may well hold the results of the step before."""


class GraphRetention(Rule):
    """A loss or an output is kept across iterations with the graph that computed it.

    ## What it does

    Reports sums, lists, dictionaries, attributes and meters of the program that outlive an
    iteration and are given a tensor that is part of a graph of autograd: `total += loss`,
    `losses.append(loss)`, `ema = 0.9 * ema + 0.1 * loss`, `meter.update(loss)` where `update` keeps
    what it is given, also a meter that the program imports from its own project.

    ## Why it is slow

    As long as the tensor is referenced, so is its graph. Where nothing calls `backward` on it,
    in an evaluation, all activations of every iteration stay: measured on a small MLP (PyTorch
    2.14, CPU) 2 MiB an iteration, on real networks soon all memory; that is a *warning*. After
    `loss.backward()` the activations are freed and only the nodes of the graph stay: 5.5 KiB an
    iteration on a three-layer MLP, and a chain that takes ever longer to free; that is reported
    as *info*. With `.detach()` 0.7 KiB stay.

    ## When it is silent

    - what is kept was detached, or made a number (`.item()`, `float()`, `.tolist()`), or computed
      under `no_grad`, or by something that is not differentiated (`argmax`, `==`, an accuracy);
    - the sum or the list is what `backward` is called on: losses of time steps, of tasks, of
      several batches;
    - the accumulator is made anew in the iteration, or for each batch where a loop trains several
      times on one;
    - it is given something only now and then, or keeps only the last few;
    - no backward pass and no sign of an evaluation is seen: a caller may differentiate the sum;
    - meters that are not part of the program.

    ## Example

    ```python
    def train(model, loader, optimizer, loss_fn):
        total = 0.0
        for x, y in loader:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss
        return float(total) / len(loader)
    ```

    ## Use instead

    ```python
    def train(model, loader, optimizer, loss_fn):
        total = 0.0
        for x, y in loader:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        return float(total) / len(loader)
    ```

    ## Fix safety

    Unsafe: `.detach()` is put behind what is kept. No value changes; code that is not seen and
    calls `backward` on the accumulated value would then fail.

    ## How to confirm

    Print `total.requires_grad`: it is `True`. Watch `torch.cuda.memory_allocated()` at the same
    point of each iteration: it rises. `memlint bench graph-retention` measures it on your machine.

    ## References

    - [PyTorch FAQ: don't accumulate history across your training loop](https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory)
    - [SpareNet: memory grows during training](https://github.com/microsoft/SpareNet/issues/12)
    """

    code = "MEM502"
    name = "graph-retention"
    severity = Severity.WARNING
    applicability = Applicability.UNSAFE
    calls = BACKWARD | GROWING | SUMMING | {SETTING, "forward"}
    needs = Needs(
        {"torch", "lightning", "accelerate", "backward(", ".eval()", ".train(False"},
        {*WALKING, WALKING_BY_NAME, *EVALUATING, NAMED},
        units=[{"(", adds_to_itself}],
        classes=(adds_to_itself,),
        nearest=True,
        places=may_retain,
        callers=may_retain,
    )

    def check_start(self, program: ProgramStart) -> Iterator[Draft]:
        """Begin with no operations."""
        self._source = program.source
        self._backwards: list[_Backward] = []
        self._forwards: list[Forward] = []
        self._others: list[Called] = []
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """Keep backward passes, and what puts something into an accumulator."""
        if called.name in BACKWARD:
            self._backwards.append(_Backward(called, nodes_behind(differentiated(called))))
        elif called.name in self.calls and _has_graph(called):
            self._others.append(called)
        yield from ()

    def check_forward(self, forward: Forward) -> Iterator[Draft]:
        """Keep where models are run."""
        if forward.graphs:
            self._forwards.append(forward)
        yield from ()

    def check_end(self, program: ProgramEnd) -> Iterator[Draft]:
        """Parts of graphs that outlive the iteration that made them."""
        if not self._others:
            return
        uses = uses_in(program.tree)
        told: set[tuple[int, int]] = set()
        named: set[tuple[int, str]] = set()
        for called in self._others:
            one = kept(called, uses)
            if one is None or self._is_differentiated(one):
                continue
            place, target, given = place_of(one, uses)
            key = (getattr(place, "lineno", 0), id(uses.scope_of(place)))
            if key in told or _names(one.given) & {n for s, n in named if s == key[1]}:
                continue
            severity = self._severity(one, place, target, uses)
            if severity is not None:
                told.add(key)
                named.add((key[1], target))
                yield self._finding(one, place, target, given, severity)

    def _is_differentiated(self, one: Kept) -> bool:
        """Whether a backward pass begins at the accumulator."""
        node = id(one.called.node)
        return any(node in backward.nodes for backward in self._backwards)

    def _severity(self, one: Kept, place: ast.AST, target: str, uses: Uses) -> Severity | None:
        graphs = graphs_of(one.value)
        walked = [
            b
            for b in self._backwards
            if possible_graphs(differentiated(b.called)) & graphs
            and surely_in_graph(one.value, b.nodes)
        ]
        if walked:
            return Severity.INFO if self._in_step(one, place, target, walked, uses) else None
        if any(possible_graphs(differentiated(b.called)) & graphs for b in self._backwards):
            return None
        return Severity.WARNING if self._in_evaluation(one, place, target, uses) else None

    def _in_step(
        self, one: Kept, place: ast.AST, target: str, walked: list[_Backward], uses: Uses
    ) -> bool:
        loop = self._loop_of(one)
        if loop is None:
            return self._in_method(one, place, target, walked, uses)
        if loop.throttled or not outlives(one, loop.loop.node, place, target, uses):
            return False
        if self._ends_with_batch(one, loop, place, target, uses):
            return False
        return any(
            enclosing.loop.node is loop.loop.node
            for b in walked
            for enclosing in b.called.context.loops
        )

    def _ends_with_batch(
        self, one: Kept, loop: Enclosing, place: ast.AST, target: str, uses: Uses
    ) -> bool:
        """Whether a loop runs several times for each batch, and its accumulator is made anew for
        each: a few nodes, gone with the step."""
        loops = one.called.context.loops
        around = loops[: loops.index(loop)]
        return loop.role != "batch" and any(
            outer.role == "batch" and not outlives(one, outer.loop.node, place, target, uses)
            for outer in around
        )

    def _in_method(
        self, one: Kept, place: ast.AST, target: str, walked: list[_Backward], uses: Uses
    ) -> bool:
        """A method that trains one step and keeps the loss in its object."""
        context = one.called.context
        if context.loops or context.throttled or not target.startswith("self."):
            return False
        if one.grows and emptied_elsewhere(target, one.called.source.text):
            return False
        scope = uses.scope_of(place)
        return any(
            uses.scope_of(b.called.node) is scope and not b.called.context.loops for b in walked
        )

    def _loop_of(self, one: Kept) -> Enclosing | None:
        """The innermost loop in which the graph is made that is kept."""
        graphs = graphs_of(one.value)
        nodes = {
            id(enclosing.loop.node)
            for forward in self._forwards
            if forward.graphs & graphs
            for enclosing in forward.context.loops
        }
        return innermost_of(one.called.context.loops, nodes)

    def _in_evaluation(self, one: Kept, place: ast.AST, target: str, uses: Uses) -> bool:
        loop = self._loop_of(one)
        if loop is None or loop.throttled:
            return False
        graphs = graphs_of(one.value)
        made = [
            f
            for f in self._forwards
            if f.graphs & graphs and any(e.loop.node is loop.loop.node for e in f.context.loops)
        ]
        if not any(
            evidence(f, uses) and not wants_gradients(f) and not guarded_by_callers(f, uses)
            for f in made
        ):
            return False
        anchors = {id(f.node) for f in made}
        return surely_in_graph(one.value, anchors) and outlives(
            one, loop.loop.node, place, target, uses
        )

    def _finding(
        self, one: Kept, place: ast.AST, target: str, given: ast.expr | None, severity: Severity
    ) -> Draft:
        what = f"`{ast.unparse(given)}`" if given is not None else "what is given here"
        name = f"`{target}`"
        if severity is Severity.INFO:
            text = (
                f"{name} keeps {what} of every iteration with its graph; `backward()` has freed "
                "the activations, but the nodes of all graphs stay, some KiB an iteration, and "
                "take ever longer to free"
            )
        else:
            text = (
                f"{name} keeps {what} of every iteration with its graph, and nothing calls "
                "`backward()` on it: all activations of all iterations stay in memory"
            )
        related = []
        if place is not one.node:
            related.append(Related(one.node, "it is kept here"))
        return self.finding(
            place, text, HELP, severity=severity, related=related, fix=_fix(self._source, given)
        )

    def observe(self, kept: Retained) -> Iterator[Sighting]:
        """Results that are alive, with their graph, steps after they were made."""
        if kept.steps < FEWEST_STEPS:
            return
        site, related = (
            kept.site,
            tuple((one, "numbers are summed up here with their graph") for one in kept.sums),
        )
        if len(kept.sums) == 1:
            # It is the sum that holds them.
            (site,), related = kept.sums, ((kept.site, "this is kept alive with its graph"),)
        yield Sighting(
            self,
            site,
            f"{spell(kept.result)} of {kept.steps} earlier steps is still alive with its graph",
            "keep `.detach()` of what is collected or summed up over steps, or its `.item()`",
            self.severity,
            kept.count,
            kept.steps,
            kept.nbytes,
            related=related,
            totals=": at least {nbytes_a_step} more with every step",
        )

    @bench(
        "evaluates a small MLP without a backward pass and keeps the losses",
        as_is="losses.append(loss)",
        alternative="losses.append(loss.detach())",
        needs=("torch",),
        sizes=Sizes("rows of a batch", quick=256, full=(1, 256, 4096)),
    )
    def bench(self, size: Size) -> Weighed:
        """What the graphs of eight steps keep alive, counted exactly."""
        from memlint.bench.saved import SavedTensors
        from memlint.bench.tensors import normal

        steps = 8
        weights = [normal(size, 256, 256, seed=seed).requires_grad_() for seed in range(3)]
        batch = normal(size, size.number, 256)

        def loss() -> Any:
            x = batch
            for weight in weights:
                x = (x @ weight).relu()
            return x.square().mean()

        def weighed(kept_of: Callable[[Any], Any]) -> float:
            saved = SavedTensors()
            with saved.watching():
                losses = [kept_of(loss()) for _ in range(steps)]
            return saved.nbytes(held=losses, besides=(batch, *weights)) / steps

        return Weighed(
            lambda: weighed(lambda loss: loss),
            lambda: weighed(lambda loss: loss.detach()),
            "bytes kept per step",
            f"3 layers of 256, batches of {size.number}",
        )


def _names(node: ast.expr) -> set[str]:
    """The variables and attributes in an expression."""
    return {ast.unparse(one) for one in walk(node) if isinstance(one, (ast.Name, ast.Attribute))}


def _has_graph(called: Called) -> bool:
    return any(graphs_of(one) for one in called.args.positional)


def _fix(source: Source, given: ast.expr | None) -> DraftFix | None:
    if not isinstance(given, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp)):
        return None
    if is_foreign(given):
        return None
    text = source.segment(given)
    if "\n" in text:
        return None
    shown = f"({text})" if isinstance(given, ast.BinOp) else text
    edit = Replacement(given, f"{shown}.detach()")
    return DraftFix("keep it without its graph", (edit,), Applicability.UNSAFE)
