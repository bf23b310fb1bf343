"""Which functions may move a model to a device, by their syntax alone: a sieve."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from memlint.analysis import knowledge
from memlint.analysis.changes import called_name
from memlint.analysis.last_name import last_name
from memlint.analysis.paths import names_in, path_of
from memlint.analysis.walking import nodes_of

# What else brings models to a device, by what it is called.
_BRINGING = frozenset({"prepare", "fit", "set_default_device"})
_LIBRARIES = frozenset({"torch", "np", "numpy", "F", "jnp", "cp"})
_MAKERS = frozenset({"load", "compile", "script", "trace", "get_model"})
_PARTS = frozenset({"modules", "children", "named_modules", "named_children"})
# What is done with models, and hardly with arrays.
_OF_MODELS = (
    "eval|train|parameters|named_parameters|modules|children|state_dict|load_state_dict|"
    "requires_grad_|forward|apply|half|bfloat16|module|zero_grad"
)


def moves_model(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function may move a model to a device."""
    nodes = nodes_of(function)
    parts = {name for node in nodes if isinstance(node, ast.For) for name in _parts_of_model(node)}
    parts.add("super")
    return any(_brings(node, parts, source) for node in nodes)


def _parts_of_model(loop: ast.For) -> set[str]:
    """The variables of a loop over the parts of a module."""
    over = called_name(loop.iter) if isinstance(loop.iter, ast.Call) else ""
    return names_in(loop.target) if over in _PARTS else set()


def _brings(node: ast.AST, parts: set[str], source: str) -> bool:
    match node:
        case ast.With(items=items):
            return any(map(_is_device, items))
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=moved, attr="to" | "cuda")) as call):
            # Of an array nothing would come.
            return not _only_casts(call) and last_name(moved) not in parts
        case ast.Call(func=ast.Attribute(value=moved, attr="to" | "cuda")):
            if _only_casts(node) or last_name(moved) in parts:
                return False
            return _may_be_model(moved, source)
        case ast.Call():
            return called_name(node) in _BRINGING
    return False


def _only_casts(call: ast.Call) -> bool:
    """``x.to(dtype=...)``, ``x.to(y.dtype)``"""
    given = [*(k.arg or "" for k in call.keywords), *(last_name(one) for one in call.args)]
    return bool(given) and all(name.endswith("dtype") for name in given)


def _is_device(item: ast.withitem) -> bool:
    call = item.context_expr
    return isinstance(call, (ast.Name, ast.Attribute)) or (
        isinstance(call, ast.Call) and called_name(call) == "device"
    )


def _may_be_model(node: ast.expr, source: str) -> bool:
    if isinstance(node, ast.Call):
        return _makes_model(node, source)
    while isinstance(node, ast.Subscript):
        node = node.value
    path = path_of(node)
    return path is not None and _is_used_as_model(source, path[-1], attribute=len(path) > 1)


def _makes_model(call: ast.Call, source: str) -> bool:
    """Whether a call may make a model, or give back the one that it is a method of."""
    if isinstance(call.func, ast.Name):
        return True
    if not isinstance(call.func, ast.Attribute):
        return True
    name, path = call.func.attr, path_of(call.func)
    if path is not None and path[0] in _LIBRARIES:
        return name[:1].isupper() or name in _MAKERS
    if name in knowledge.methods("torch"):
        return _may_be_model(call.func.value, source)
    return "tensor" not in name


@lru_cache(maxsize=64)
def _is_used_as_model(source: str, name: str, *, attribute: bool) -> bool:
    """Whether something of this name is called, or has a method of models called."""
    before = r"\." if attribute else r"(?<![\w.])(?<!def )"
    used = rf"{before}{name}(?:\[[^\]\n]*\])?(?:\(|\.(?:{_OF_MODELS})\b)"
    return re.search(used, source) is not None
