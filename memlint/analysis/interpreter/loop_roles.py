"""What a loop is for: batches, epochs, training steps, the parts of a model."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from functools import lru_cache

from memlint.analysis.events import Loop
from memlint.analysis.last_name import last_name
from memlint.analysis.values import Instance, Object, Site, Tensor, Unknown, Value, alternatives
from memlint.late_pattern import late_pattern

# What loaders, and iterators over their batches, are called.
_LOADER = late_pattern(
    r"(loaders?|dataloaders?|prefetcher|batches|minibatches|batch_iter(ator)?|data_iter(ator)?|"
    r"(train|val|valid|test|eval)_(iter|dl|gen|generator|data|batches))$|^(dl|loader)$|_dl$",
    re.IGNORECASE,
)
_PARTS = frozenset(
    {"parameters", "named_parameters", "modules", "named_modules", "children", "named_children",
     "buffers", "named_buffers", "param_groups", "state_dict"}
)  # fmt: skip
# Calls that hand on what they are given one by one.
_WRAPPERS = frozenset(
    {"enumerate", "zip", "tqdm", "trange", "iter", "islice", "cycle", "chain", "track", "progress",
     "prefetch", "cuda_prefetcher", "log_every", "progress_bar", "prepare"}
)  # fmt: skip
_EPOCHS = late_pattern(r"(^|_)(n_|num_|max_)?epochs?($|_)", re.IGNORECASE)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def role_of(loop: Loop, loaders: Container[Site]) -> str:
    """The role of a loop, as :class:`~memlint.analysis.events.Enclosing` explains them."""
    names = [last_name(node) for node in _wrapped(loop.iterated)]
    if _yields_batches(loop.iterates, loaders) or any(map(_LOADER.search, names)):
        return "batch"
    if _EPOCHS.search(loop.variable) or _EPOCHS.search(loop.stop_text):
        return "epoch"
    if loop.iterated is not None and _EPOCHS.search(ast.unparse(loop.iterated)):
        return "epoch"
    if any(name in _PARTS for name in names):
        return "parameters"
    if isinstance(loop.node, _LOOPS) and _trains(loop.node):
        return "step"
    return ""


def _yields_batches(iterated: Value | None, loaders: Container[Site]) -> bool:
    for one in alternatives(iterated) if iterated is not None else ():
        if isinstance(one, (Object, Instance)) and one.site in loaders:
            return True
        if isinstance(one, Object) and one.cls.startswith("builtins."):
            if any(_yields_batches(fact, loaders) for _, fact in one.facts):
                return True
        elif isinstance(one, (Unknown, Tensor)) and one.loaders:
            return True
    return False


def _wrapped(node: ast.expr | None) -> Iterator[ast.expr]:
    """What is iterated over, without the wrappers around it."""
    if node is None:
        return
    yield node
    if isinstance(node, ast.Call) and last_name(node) in _WRAPPERS:
        for argument in node.args:
            yield from _wrapped(argument)


@lru_cache(maxsize=256)
def _trains(node: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether a loop's own body, not that of a loop in it, calls ``backward`` or steps."""
    pending: list[ast.AST] = list(node.body)
    while pending:
        one = pending.pop()
        if isinstance(one, _LOOPS):
            continue
        if (
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr in ("backward", "zero_grad")
        ):
            return True
        pending.extend(ast.iter_child_nodes(one))
    return False
