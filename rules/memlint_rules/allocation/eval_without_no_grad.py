"""MEM503 eval-without-no-grad."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from memlint.analysis.evaluation import (
    evidence,
    function_wants_gradients,
    guarded_by_callers,
    wants_gradients,
)
from memlint.analysis.events import Called, Context, Forward, ProgramEnd, ProgramStart
from memlint.analysis.graphs import BACKWARD, differentiated, nodes_behind
from memlint.analysis.line_edits import decorated
from memlint.analysis.places.evaluation import EVALUATING, may_evaluate
from memlint.analysis.uses import Uses, uses_in
from memlint.analysis.values import Site, leaves, made_of, possible_graphs
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size, Weighed
from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, DraftFix, Needs, Rule

HELP = (
    "put `@torch.no_grad()` on the function, or the calls under `with torch.no_grad():`; "
    "`torch.inference_mode()` serves as well where nothing is differentiated later"
)
# Functions over batches that are called so count as evaluation by themselves.
NAMED = late_pattern(
    r"def (\w+_)?(eval|evaluate|evaluation|valid|validate|validation|val)(_\w+)?\(|"
    r"def (\w+_)?test\("
)


class EvalWithoutNoGrad(Rule):
    """A model that is only evaluated records the graph for a backward pass that never comes.

    ## What it does

    Reports a call of a model in a function that puts it into evaluation mode (`model.eval()`), or
    in a method or request handler of a model that was put into it when it was made, or in a loop
    over batches in a function called `validate`, `evaluate`, `test`, where nothing is
    differentiated and neither `torch.no_grad()` nor `torch.inference_mode()` is in effect.
    `model.eval()` changes dropout and batch normalisation; it does not stop autograd.

    ## Why it is slow

    Every layer keeps what its backward pass would need until the result is gone: the activations
    of the whole network instead of one or two layers. Measured on two cores of an AMD Zen 3
    (PyTorch 2.14) with 20 linear layers of 1024 and GELU at batch 4096: a peak of 1289 MiB more,
    against 137 MiB under `no_grad` and 120 MiB under `inference_mode`; the time is about a tenth
    longer, and up to 40 % for tiny operations. Batch sizes of evaluation could often be several
    times as large.

    ## When it is silent

    - `no_grad`, `inference_mode` or `set_grad_enabled(False)` is in effect: as a decorator, a
      `with` block, a switch, a decorator or context manager of the program that enters one, in
      the function or around all calls of it;
    - the function, or what it calls, differentiates: `backward`, `autograd.grad`,
      `requires_grad_`, hooks, `.grad` (attacks, saliency, Grad-CAM, fine-tuning with frozen
      batch normalisation);
    - a framework turns recording off: hooks of Lightning and of the Hugging Face Trainer, steps of
      an ignite engine;
    - `forward` and other methods of modules whose result others may differentiate;
    - the parameters of the model do not require gradients, or it is a scripted or exported one;
    - the input is made up (`torch.zeros(1, 3, 224, 224)`), and unit tests.

    ## Example

    ```python
    def validate(model, loader):
        model.eval()
        correct = 0
        for images, labels in loader:
            correct += (model(images).argmax(1) == labels).sum()
        return correct
    ```

    ## Use instead

    ```python
    import torch


    @torch.no_grad()
    def validate(model, loader):
        model.eval()
        correct = 0
        for images, labels in loader:
            correct += (model(images).argmax(1) == labels).sum()
        return correct
    ```

    ## Fix safety

    Unsafe: `@torch.no_grad()` is put on the function. No value changes, but a caller that
    differentiates what the function returns would find no graph.

    ## How to confirm

    Print `output.requires_grad` after the call: it is `True`. Compare
    `torch.cuda.max_memory_allocated()` of one evaluation with and without. `memlint bench
    eval-without-no-grad` measures it on your machine.

    ## References

    - [PyTorch performance tuning guide: disable gradient calculation](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [Autograd mechanics: evaluation mode is no gradient mode](https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation)
    - [semseg: out of memory in validation](https://github.com/hszhao/semseg/issues/60)
    """

    code = "MEM503"
    name = "eval-without-no-grad"
    severity = Severity.WARNING
    applicability = Applicability.UNSAFE
    calls = BACKWARD | {"forward"}
    needs = Needs(
        {"torch", "lightning", ".eval()", ".train(False", ".train(mode=False"},
        {*EVALUATING, NAMED},
        units=[{"("}],
        also={"no_grad", "inference_mode", "set_grad_enabled"},
        nearest=True,
        places=may_evaluate,
        callers=may_evaluate,
    )

    def check_start(self, program: ProgramStart) -> Iterator[Draft]:
        """Begin with no operations."""
        self._forwards: list[Forward] = []
        self._differentiated: set[Site] = set()
        self._behind: list[tuple[Context, frozenset[int]]] = []
        self._explained: frozenset[int] = frozenset()
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """Keep which graphs are differentiated."""
        if called.name in BACKWARD:
            given = differentiated(called)
            self._differentiated |= possible_graphs(given)
            self._behind.append((called.context, nodes_behind(given)))
        yield from ()

    def check_forward(self, forward: Forward) -> Iterator[Draft]:
        """Keep where models are run."""
        self._forwards.append(forward)
        yield from ()

    def check_end(self, program: ProgramEnd) -> Iterator[Draft]:
        """Models that are evaluated while autograd records."""
        if not self._forwards:
            return
        uses = uses_in(program.tree)
        # What the model's own code makes says nothing where another run of it is differentiated.
        trained = [one for one in self._forwards if one.graphs & self._differentiated]
        self._explained = frozenset[int]().union(*map(_made_at, trained))
        told: list[Forward] = []
        for forward in sorted(self._forwards, key=lambda one: len(one.context.calls)):
            if not self._is_wasted(forward, uses) or any(_covers(one, forward) for one in told):
                continue
            place = self._place_of(forward, uses)
            if place is not None:
                told.append(place)
        first: dict[int, Forward] = {}
        for forward in sorted(told, key=lambda one: (one.node.lineno, one.node.col_offset)):
            first.setdefault(id(forward.context.function), forward)
        for forward in first.values():
            yield self._finding(forward)

    def _is_wasted(self, forward: Forward, uses: Uses) -> bool:
        if not evidence(forward, uses) or forward.graphs & self._differentiated:
            return False
        nodes = {id(forward.node), *(_made_at(forward) - self._explained)}
        if any(
            _on_one_way(context, forward.context) and not nodes.isdisjoint(behind)
            for context, behind in self._behind
        ):
            return False
        return not (wants_gradients(forward) or guarded_by_callers(forward, uses))

    def _place_of(self, forward: Forward, uses: Uses) -> Forward | None:
        """Where to say it: of a helper that trains, too, its call by what evaluates."""
        if not any(
            other.node is forward.node and other.evaluating is False for other in self._forwards
        ):
            return forward
        calls = forward.context.calls
        callers = [one for one in self._forwards if calls and one.node is calls[-1] and one.through]
        if any(one.graphs & self._differentiated for one in callers):
            return None
        for one in callers:
            above = one.context.calls == calls[:-1] and one.graphs >= forward.graphs
            if above and not (wants_gradients(one) or guarded_by_callers(one, uses)):
                return replace(one, models=forward.models, evaluating=forward.evaluating)
        return None

    def _finding(self, forward: Forward) -> Draft:
        model = forward.models[0] if forward.models else "the model"
        function = forward.context.function
        where = f"`{forward.context.name}`" if function is not None else "this script"
        fix = None
        alone = isinstance(function, ast.FunctionDef) and not function_wants_gradients(function)
        if alone and _knows_torch(forward.source.text):
            assert isinstance(function, ast.FunctionDef)
            edit = decorated(function, "torch.no_grad()")
            fix = DraftFix("turn recording off", (edit,), Applicability.UNSAFE)
        return self.finding(
            forward.node,
            f"`{model}` is run for evaluation in {where} while autograd records: all activations "
            "are kept for a backward pass that does not come, often several times the memory that "
            "evaluation needs",
            HELP,
            confidence=Confidence.HIGH if forward.evaluating else Confidence.MEDIUM,
            fix=fix,
        )

    @bench(
        "evaluates a network of linear layers and GELU, and holds its output",
        as_is="model(x)",
        alternative="with torch.no_grad(): model(x)",
        needs=("torch",),
        sizes=Sizes("rows of a batch", quick=256, full=(1, 256, 4096)),
    )
    def bench_memory(self, size: Size) -> Weighed:
        """What is alive when the output is there."""
        import torch

        from memlint.bench.saved import SavedTensors

        weights, batch = _network(size)

        def weighed() -> float:
            saved = SavedTensors()
            with saved.watching():
                output = _output(weights, batch)
            return float(saved.nbytes(held=[output], besides=(batch, *weights)))

        what = f"{len(weights)} layers of 256, batches of {size.number}"
        return Weighed(weighed, torch.no_grad()(weighed), "bytes held with the output", what)

    @bench(
        "evaluates a network of linear layers and GELU",
        as_is="model(x)",
        alternative="with torch.no_grad(): model(x)",
        needs=("torch",),
        sizes=Sizes("rows of a batch", quick=64, full=(1, 64, 1024)),
    )
    def bench_time(self, size: Size) -> Pair:
        """What recording costs: little beside large layers."""
        import torch

        def recording(*tensors: Any) -> Any:
            return _output(tensors[1:], tensors[0])

        def operands() -> tuple[Any, ...]:
            weights, batch = _network(size)
            return (batch, *weights)

        what = f"20 layers of 256, batches of {size.number}"
        return Pair(recording, torch.no_grad()(recording), operands, what, settle=size.settle)


def _network(size: Size) -> tuple[list[Any], Any]:
    """The weights of twenty layers, and a batch."""
    from memlint.bench.tensors import normal

    weights = [(normal(size, 256, 256, seed=seed) / 16).requires_grad_() for seed in range(20)]
    return weights, normal(size, size.number, 256)


def _output(weights: Sequence[Any], x: Any) -> Any:
    from torch.nn.functional import gelu

    for weight in weights:
        x = gelu(x @ weight)
    return x


def _made_at(forward: Forward) -> frozenset[int]:
    """The expressions that made the parts of what a model gave, as identities."""
    made = (made_of(leaf) for leaf in leaves(forward.value))
    return frozenset(id(one.node) for one in made if one is not None)


def _on_one_way(one: Context, other: Context) -> bool:
    """Whether of two places one is in what the function of the other calls."""
    calls = zip(one.calls, other.calls, strict=False)
    return one.entry is other.entry and all(a is b for a, b in calls)


def _covers(outer: Forward, inner: Forward) -> bool:
    """Whether ``inner`` runs within a call that is told of already."""
    return any(call is outer.node for call in inner.context.calls)


def _knows_torch(text: str) -> bool:
    return "\nimport torch\n" in f"\n{text}"
