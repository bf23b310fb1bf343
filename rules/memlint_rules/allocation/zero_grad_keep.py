"""MEM513 zero-grad-keep."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.edits import call_with_keyword
from memlint.analysis.events import Called, Enclosing
from memlint.analysis.values import Absent, must_be
from memlint.analysis.walking import walk
from memlint.findings import Applicability, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, DraftFix, Needs, Replacement, Rule

# Programs in which gradients have to stay where they are, or are added to by hand.
IN_PLACE = late_pattern(
    r"CUDAGraph|cuda\.graphs?\b|make_graphed_callables|FullyShardedDataParallel|\bFSDP\b|deepspeed|"
    r"fully_shard|gradient_as_bucket_view|[Ff]lat_?(grad|param|buffer)|_flatten_dense_tensors|"
    r"\.grad(\.data)?(\.(add_|copy_|data_ptr)\b|\s*\+=|\[[^\]]*\]\s*[-+*/]?=)"
)
HELP = (
    "let gradients be dropped (`zero_grad()` does since PyTorch 2.0, or `p.grad = None`), unless "
    "something reads `.grad` between here and `backward()`"
)


class ZeroGradKeep(Rule):
    """Gradients are filled with zeros instead of being dropped.

    ## What it does

    Reports `zero_grad(set_to_none=False)` of an optimizer or a module, and loops over parameters
    that call `p.grad.zero_()`.

    ## Why it is slow

    Zeros are written over every gradient, the next `backward()` reads and adds to them, and all
    gradients stay allocated through the forward pass, when activations need the memory. Without
    them `backward()` simply stores its result. Measured on two cores of an AMD Zen 3 (PyTorch
    2.14) with 20 linear layers: a step takes 1.05 times as long at width 128 and 1.2 times at
    width 2048, and 80 MiB of gradients stay at width 1024. Dropping them has been the default
    since PyTorch 2.0.

    ## When it is silent

    - `set_to_none` is not known to be false, or is not given;
    - the gradient of one tensor is reset (an input that is attacked, a regression by hand);
    - the program captures CUDA graphs, shards or flattens its parameters (FSDP, DeepSpeed), or
      adds to gradients by hand: then they have to stay where they are.

    ## Example

    ```python
    def step(model, optimizer, batch):
        optimizer.zero_grad(set_to_none=False)
        model(batch).mean().backward()
        optimizer.step()
    ```

    ## Use instead

    ```python
    def step(model, optimizer, batch):
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
    ```

    ## Fix safety

    Unsafe: optimizers skip parameters whose gradient is `None`, where one of zeros still moves
    them by momentum and weight decay, and code that reads `.grad` before `backward()` finds
    `None`.

    ## How to confirm

    Compare `torch.cuda.max_memory_allocated()` over some steps, and look for `memset` or
    `aten::zero_` at the start of each step in a profile.

    ## References

    - [Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html)
    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code = "MEM513"
    name = "zero-grad-keep"
    severity = Severity.INFO
    applicability = Applicability.UNSAFE
    calls = frozenset({".zero_grad", ".zero_"})
    needs = Needs(
        {"zero_grad", "grad.zero_", "grad.data.zero_"},
        units=[
            {
                "set_to_none",
                late_pattern(r"\.zero_grad\(\s*\w"),
                "grad.zero_",
                "grad.data.zero_",
            }
        ],
    )

    def check(self, called: Called) -> Iterator[Draft]:
        """Gradients that are kept and zeroed."""
        if called.name not in self.calls or called.source.holds(IN_PLACE):
            return
        node = called.node
        if not isinstance(node, ast.Call):
            return
        if called.name == ".zero_grad":
            yield from self._optimizer(called, node)
        else:
            yield from self._parameter(called, node)

    def _optimizer(self, called: Called, node: ast.Call) -> Iterator[Draft]:
        given = called.args.get("set_to_none", 0)
        if isinstance(given, Absent) or not must_be(given, False):
            return
        edit = call_with_keyword(called.source, node, "set_to_none", "True")
        if node.args:
            edit = Replacement(node.args[0], "True")
        what = ast.unparse(node.func)
        yield self.finding(
            node,
            f"`{what}` writes zeros over all gradients and keeps them allocated through the "
            "forward pass; dropping them saves that memory, the write, and a read in `backward()`",
            HELP,
            fix=None
            if edit is None
            else DraftFix("drop the gradients", (edit,), Applicability.UNSAFE),
        )

    def _parameter(self, called: Called, node: ast.Call) -> Iterator[Draft]:
        loop = called.context.loops[-1] if called.context.loops else None
        if loop is None or _keeps_by_option(called):
            return
        owner = _owner(node)
        if owner is None or owner not in _variables(loop):
            return
        fix = None
        statement = called.statement
        if isinstance(statement, ast.Expr) and statement.value is node:
            edit = Replacement(statement, f"{owner}.grad = None")
            fix = DraftFix("drop the gradient", (edit,), Applicability.UNSAFE)
        yield self.finding(
            node,
            f"zeros are written over the gradient of each parameter `{owner}`, which stays "
            "allocated through the forward pass; dropping it saves that memory, the write, and a "
            "read in `backward()`",
            HELP,
            fix=fix,
        )


def _owner(node: ast.Call) -> str | None:
    """The ``p`` of ``p.grad.zero_()`` and ``p.grad.data.zero_()``."""
    base = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(base, ast.Attribute) and base.attr == "data":
        base = base.value
    if isinstance(base, ast.Attribute) and base.attr == "grad" and isinstance(base.value, ast.Name):
        return base.value.id
    return None


def _variables(enclosing: Enclosing) -> set[str]:
    loop = enclosing.loop.node
    target = loop.target if isinstance(loop, (ast.For, ast.AsyncFor)) else None
    if target is None:
        return set()
    return {one.id for one in walk(target) if isinstance(one, ast.Name)}


def _keeps_by_option(called: Called) -> bool:
    """Whether the function lets its caller choose."""
    function = called.context.function
    if function is None:
        return False
    spec = function.args
    return any("none" in a.arg.lower() for a in (*spec.args, *spec.kwonlyargs))
