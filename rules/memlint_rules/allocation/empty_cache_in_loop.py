"""MEM505 empty-cache-in-loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.events import Called, Forward, ProgramEnd, ProgramStart
from memlint.analysis.line_edits import removed
from memlint.analysis.places.repeated import may_empty_caches
from memlint.analysis.steps import STEP_HOOKS, hook_of_step, step_around
from memlint.analysis.uses import Uses, uses_in
from memlint.findings import Applicability, Severity
from memlint.rule import Draft, DraftFix, Needs, Rule

EMPTYING = frozenset(
    f"torch.{module}.empty_cache"
    for module in ("cuda", "cuda.memory", "mps", "xpu", "xpu.memory", "npu", "mlu", "musa",
                   "accelerator", "accelerator.memory")
)  # fmt: skip
POOL = ".free_all_blocks"
HELP = (
    "leave the cache alone: freed blocks are reused anyway; call it where the program changes from "
    "one phase to another, or after an out-of-memory error, and against fragmentation set "
    "`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`"
)


class EmptyCacheInLoop(Rule):
    """The allocator's cache is given back to the driver in every step.

    ## What it does

    Reports `torch.cuda.empty_cache()`, the same of `torch.mps`, `torch.xpu` and
    `torch.accelerator.memory`, and CuPy's `free_all_blocks()`, where each iteration of a loop over
    batches, steps or samples calls it, directly or in a function that the loop calls, or where a
    hook does that a framework calls in each step.

    ## Why it is slow

    PyTorch keeps the blocks of freed tensors, because `cudaMalloc` and `cudaFree` wait for the
    device. After `empty_cache()` the next step has to ask the driver for all its memory again,
    so that each step waits for the GPU at least twice. The documentation says of it that it does
    not increase the amount of memory that is available for PyTorch. The Hugging Face Trainer
    took it out of its training step after reports of slower training. `gc.collect()`, which
    often stands beside it, takes some 50 ms in a small process that has imported torch (AMD Zen
    3, Python 3.11).

    ## When it is silent

    - it is reached only now and then (`if step % 500 == 0`), or under a condition that may come
      out otherwise in each step, such as one on the free memory;
    - it stands in the handler of an exception (out of memory, try again with less), or is reached
      after one only;
    - it stands outside of the innermost loop: once an epoch, between phases;
    - each iteration makes, loads or deletes a model of its own.

    ## Example

    ```python
    import torch


    def train(model, loader, optimizer):
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch.cuda.empty_cache()
    ```

    ## Use instead

    ```python
    import torch


    def train(model, loader, optimizer):
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety

    Unsafe: the call is taken out. No value changes, but a program that shares its device with
    others, or whose blocks are badly fragmented, may run out of memory without it.

    ## How to confirm

    Count `cudaMalloc` and `cudaFree` in a profile of some steps after the first: there should be
    none. `torch.cuda.memory_stats()["num_device_alloc"]` should not rise from step to step.

    ## References

    - [torch.cuda.memory.empty_cache](https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html)
    - [CUDA semantics: memory management](https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management)
    - [transformers: empty_cache in the Trainer slows training down](https://github.com/huggingface/transformers/issues/31372)
    """

    code = "MEM505"
    name = "empty-cache-in-loop"
    severity = Severity.WARNING
    applicability = Applicability.UNSAFE
    calls = EMPTYING | {POOL, ".backward", "forward"}
    needs = Needs(
        {"empty_cache", "free_all_blocks"},
        units=[{"for ", "while ", *STEP_HOOKS}],
        nearest=True,
        places=may_empty_caches,
        callers=may_empty_caches,
    )

    def check_start(self, program: ProgramStart) -> Iterator[Draft]:
        """Begin with no operations."""
        self._calls: list[Called] = []
        self._forwards: list[Forward] = []
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """Keep what empties a cache, and what tells loops that train."""
        if called.name in self.calls:
            self._calls.append(called)
        yield from ()

    def check_forward(self, forward: Forward) -> Iterator[Draft]:
        """Keep where models are run."""
        self._forwards.append(forward)
        yield from ()

    def check_end(self, program: ProgramEnd) -> Iterator[Draft]:
        """Caches that are emptied in each step."""
        for called in self._calls:
            if called.name not in EMPTYING and not _is_pool(called):
                continue
            where = self._where(called)
            statement = called.statement
            if not where or _after_failure(statement, uses_in(program.tree)):
                continue
            edit = None
            if isinstance(statement, ast.Expr) and statement.value is called.node:
                edit = removed(called.source, statement, uses_in(program.tree))
            yield self.finding(
                called.node,
                f"the cache of freed memory is given back to the driver {where}, so that each "
                "step allocates all its memory anew and waits for the device; it makes no more "
                "memory available to the program",
                HELP,
                fix=None
                if edit is None
                else DraftFix("take the call out", (edit,), Applicability.UNSAFE),
            )

    def _where(self, called: Called) -> str:
        context = called.context
        hook = hook_of_step(context)
        if hook:
            rare = context.throttled or context.conditional
            return "" if rare else f"in `{hook}`, which is called once a step"
        step = step_around(context, self._forwards, self._calls)
        if step is None or step.throttled or step.varied:
            return ""
        return {"batch": "for every batch", "step": "in every training step"}.get(
            step.role, "in every iteration that runs the model"
        )


def _after_failure(statement: ast.AST, uses: Uses) -> bool:
    """Whether a statement is only reached where one before it, which leaves the loop otherwise,
    has failed: a search for the batch size that fits."""
    parent = next(iter(uses.ancestors(statement)), None)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, [])
        if isinstance(block, list) and statement in block:
            return any(_leaves_unless_failing(one) for one in block[: block.index(statement)])
    return False


def _leaves_unless_failing(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Try) or not statement.handlers:
        return False
    last = (statement.orelse or statement.body)[-1]
    return isinstance(last, (ast.Break, ast.Return, ast.Continue))


def _is_pool(called: Called) -> bool:
    return called.name == POOL and not called.args.positional
