"""Loops whose iterations are steps: of training, or over batches or samples that a model sees."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from memlint.analysis.events import Called, Context, Enclosing, Forward
from memlint.analysis.values import Instance
from memlint.analysis.walking import walk
from memlint.late_pattern import late_pattern

# Methods that a framework calls once a step.
STEP_HOOKS = frozenset(
    {"training_step", "validation_step", "test_step", "predict_step", "prediction_step",
     "on_train_batch_start", "on_train_batch_end", "on_validation_batch_end",
     "on_test_batch_end", "on_step_begin", "on_step_end", "on_substep_end", "before_train_iter",
     "after_train_iter", "optimizer_step"}
)  # fmt: skip
FRAMEWORK_CLASS = late_pattern(r"(LightningModule|Callback|Trainer|Hook|Learner|Strategy)$")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def step_around(
    context: Context, forwards: Iterable[Forward], calls: Iterable[Called]
) -> Enclosing | None:
    """The loop around an operation whose every iteration is a step, if it is the innermost."""
    if not context.loops:
        return None
    innermost = context.loops[-1]
    if innermost.role in ("batch", "step"):
        return innermost
    if innermost.role:
        return None
    loop = innermost.loop.node
    for one in forwards:
        within = one.context.loops
        if within and within[-1].loop.node is loop and not _made_in(loop, one.models):
            return innermost
    backward = any(
        one.name == ".backward" and one.context.loops and one.context.loops[-1].loop.node is loop
        for one in calls
    )
    return innermost if backward else None


def hook_of_step(context: Context) -> str:
    """The hook that an operation stands in and that a framework calls once a step."""
    name = context.name.rpartition(".")[2]
    receiver = context.receiver
    if name not in STEP_HOOKS or not isinstance(receiver, Instance) or context.loops:
        return ""
    bases = [ast.unparse(base) for base in receiver.cls.node.bases]
    return name if any(FRAMEWORK_CLASS.search(base) for base in bases) else ""


def _made_in(loop: ast.AST, models: Iterable[str]) -> bool:
    """Whether each iteration has a model of its own."""
    roots = {text.partition(".")[0] for text in models}
    return any(name in roots for name in _bound_in(loop))


def _bound_in(loop: ast.AST) -> Iterator[str]:
    for node in walk(loop):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield node.id
