"""Which functions may begin a copy to the host that is not waited for, as their text tells: a
sieve."""

from __future__ import annotations

import ast
import re

from memlint.analysis.leading_names import arguments_of_calls, code_of
from memlint.analysis.places.moved import Bindings, defaults_of
from memlint.analysis.walking import nodes_of, walk

_PINNED = ("pin_memory", "cuda", "CUDA")


def may_copy_to_host(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function may begin a copy to the host that is only queued."""
    del around
    nodes = nodes_of(function)
    calls = [one for one in nodes if isinstance(one, ast.Call) and _may_be_queued(one)]
    if not calls:
        return False
    names = _Names(function, Bindings(nodes), source)
    return any(
        names.may_be(_switch(call), "True") and _goes_to_host(call, names, source) for call in calls
    )


def _may_be_queued(call: ast.Call) -> bool:
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr in ("to", "copy_")
        and not (isinstance(switch := _switch(call), ast.Constant) and switch.value is not True)
    )


def _switch(call: ast.Call) -> ast.expr:
    """What tells whether a copy is waited for."""
    for keyword in call.keywords:
        if keyword.arg in ("non_blocking", None):
            return keyword.value
    given = [one for one in call.args[1:] if not isinstance(one, ast.Attribute)]
    return given[-1] if given else ast.Constant(False)


def _goes_to_host(call: ast.Call, names: _Names, source: str) -> bool:
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr == "copy_":
        code = code_of(source)
        return any(word in code for word in _PINNED) and not names.is_unseen(call.func.value)
    shown = next((k.value for k in call.keywords if k.arg == "device"), None)
    shown = shown or (call.args[0] if call.args else None)
    return shown is None or names.may_be(shown, "cpu")


class _Names:
    """What the names of a function may stand for, in the function and in its program."""

    def __init__(self, function: ast.AST, bindings: Bindings, source: str) -> None:
        self._bindings = bindings
        self._source = source
        self._name = getattr(function, "name", "")
        spec = getattr(function, "args", None)
        self._parameters = defaults_of(spec) if isinstance(spec, ast.arguments) else {}

    def may_be(self, node: ast.expr, word: str, depth: int = 0) -> bool:
        """Whether an expression may be a constant that ``word`` stands for."""
        match node:
            case ast.Constant(value=value):
                return str(value).startswith(word)
            case ast.Name(id=name):
                if word.lower() in name.lower():
                    return True
                bound = [*self._bindings.bound(name)]
                if (default := self._parameters.get(name)) is not None:
                    bound.append(default)
                return self._is_set(name, word) or any(
                    depth < 4 and self.may_be(one, word, depth + 1) for one in bound
                )
            case ast.Attribute(attr=name):
                return word in name.lower() or self._is_set(name, word)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.may_be(operand, "False", depth)
            case ast.Starred(value=value):
                return self.may_be(value, word, depth)
        return any(
            isinstance(one, (ast.Constant, ast.Name, ast.Attribute))
            and self.may_be(one, word, depth)
            for one in walk(node)[1:]
        )

    def _is_set(self, name: str, word: str) -> bool:
        """Whether the program gives something of this name such a value, or hands it on by
        place."""
        code = code_of(self._source)
        if re.search(rf"\b{name}\b[ \t]*(?::[^=\n]+)?=(?!=)[^\n]*\b{word}", code):
            return True
        return name in self._parameters and any(
            word in given for given in arguments_of_calls(self._source, self._name)
        )

    def is_unseen(self, node: ast.expr) -> bool:
        """Whether a value is a part of what callers give that are not in the program."""
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        return (
            isinstance(node, ast.Name)
            and node.id in self._parameters.keys() - {"self", "cls"}
            and not self._bindings.bound(node.id)
            and not any(True for _ in arguments_of_calls(self._source, self._name))
        )
