"""MEM504 retain-graph-in-loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.events import Called, ProgramEnd, ProgramStart
from memlint.analysis.graphs import BACKWARD
from memlint.analysis.places.repeated import may_retain_graphs
from memlint.analysis.retained import needs_graph_again
from memlint.analysis.uses import uses_in
from memlint.analysis.values import Const, must_be
from memlint.findings import Applicability, Severity
from memlint.rule import Draft, DraftFix, Needs, Replacement, Rule

RETAINING = frozenset({".backward", "torch.autograd.backward"})
HELP = (
    "leave `retain_graph=True` out; where `backward()` then complains that the graph was freed, "
    "something of the last iteration is still in it: detach that"
)


class RetainGraphInLoop(Rule):
    """A graph is kept after `backward()` although nothing walks it again.

    ## What it does

    Reports `loss.backward(retain_graph=True)` in a loop where it is the only, or the last, backward
    pass over that graph in an iteration.

    ## Why it is slow

    `backward()` frees the saved activations while it walks the graph. With `retain_graph=True` all
    of them stay until the loss itself goes, which in a loop is when the next forward pass has
    already built its own graph: the peak of a step holds two graphs instead of one. It is no leak,
    the memory does not grow from step to step.

    ## When it is silent

    - another `backward()` or `autograd.grad` over a part of the same graph follows in the
      iteration (two losses of a GAN, gradient surgery, a penalty), in it or in what it calls;
    - the graph was made before the loop, so that each iteration walks it again (one row of a
      Jacobian at a time);
    - a part of the graph of the last iteration is carried on, so that it is walked again;
    - `create_graph=True`, or a value that is not known to be true.

    ## Example

    ```python
    def train(model, loader, optimizer, loss_fn):
        for x, y in loader:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward(retain_graph=True)
            optimizer.step()
    ```

    ## Use instead

    ```python
    def train(model, loader, optimizer, loss_fn):
        for x, y in loader:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety

    Unsafe: `retain_graph=True` is taken out. If code that is not seen walks the graph again,
    PyTorch raises an error there.

    ## How to confirm

    Compare `torch.cuda.max_memory_allocated()` over some steps with and without it.

    ## References

    - [torch.Tensor.backward](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html)
    - [Out of memory with retain_graph=True](https://github.com/pytorch/pytorch/issues/40005)
    """

    code = "MEM504"
    name = "retain-graph-in-loop"
    severity = Severity.INFO
    applicability = Applicability.UNSAFE
    calls = BACKWARD | {"forward"}
    needs = Needs(
        {"retain_graph"},
        {"backward"},
        {"for ", "while "},
        units=[{"for ", "while "}],
        nearest=True,
        places=may_retain_graphs,
        callers=may_retain_graphs,
    )

    def check_start(self, program: ProgramStart) -> Iterator[Draft]:
        """Begin with no operations."""
        self._backwards: list[Called] = []
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """Keep every backward pass."""
        if called.name in BACKWARD:
            self._backwards.append(called)
        yield from ()

    def check_end(self, program: ProgramEnd) -> Iterator[Draft]:
        """Graphs that are kept and not walked again."""
        kept = [one for one in self._backwards if _retains(one)]
        if not kept:
            return
        uses = uses_in(program.tree)
        for called in kept:
            # A method is also read by itself, as if nothing of the program called it.
            every = [one for one in self._backwards if one.node is called.node]
            ways = [one for one in every if one.context.loops]
            if not ways or any(needs_graph_again(way, self._backwards, uses) for way in ways):
                continue
            yield self.finding(
                called.node,
                "`retain_graph=True` keeps all activations of this step until the next forward "
                "pass has made its own, and nothing walks the graph again: the peak of a step "
                "holds two graphs",
                HELP,
                fix=_fix(called),
            )


def _retains(called: Called) -> bool:
    if called.name not in RETAINING or not isinstance(called.node, ast.Call):
        return False
    create = called.args.get("create_graph", 2)
    plain = create == Const(False) or not (called.args.open or _given(called, "create_graph"))
    return must_be(called.args.get("retain_graph"), True) and plain


def _given(called: Called, name: str) -> bool:
    return name in called.args.keywords


def _fix(called: Called) -> DraftFix | None:
    node = called.node
    assert isinstance(node, ast.Call)
    given = next((k for k in node.keywords if k.arg == "retain_graph"), None)
    if given is None:
        return None
    edit = Replacement(given.value, "False")
    if len(node.keywords) == 1 and not node.args:
        edit = Replacement(node, f"{called.source.segment(node.func)}()")
    return DraftFix("let the graph go", (edit,), Applicability.UNSAFE)
