"""Which functions may make the host wait in a loop, as far as their text tells: a sieve.

What is read in each step of a training loop, what a loop picks as the next token, and the parts
of a tensor that are read one by one are all told by the loop: what stands in it, and what it calls.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from memlint.analysis.last_name import last_name
from memlint.analysis.leading_names import (
    UNNAMED,
    Definition,
    called_otherwise,
    code_of,
    definitions,
    leading_to,
)
from memlint.analysis.uses import dotted
from memlint.analysis.walking import nodes_of, walk
from memlint.late_pattern import late_pattern

_TRAINS = frozenset({"backward", "manual_backward", "zero_grad"})
TRAINING_CALL = late_pattern(r"(?<!def )\b(?:manual_backward|backward|zero_grad)\s*\(")
_TEXTS = frozenset({"print", "str", "format"})
_NUMBERS = frozenset({"float", "int", "bool"})
_METHODS = frozenset({"item", "tolist", "cpu"})
_PARAMETERS = late_pattern(r"\(([^)]*)\)")
_READING = (".item(", ".tolist(", ".cpu(", "float(", "int(", "bool(")
# What is read as a whole, up to its views.
_READ_NAME = late_pattern(
    r"\b(\w+)(?:\.\w+(?:\([^()]*\))?|\[[^\]\n]*\])*\.(?:item|tolist|cpu)\(|"
    r"\b(?:float|int|bool)\(\s*(\w+)"
)
_PICKS = frozenset({"argmax", "multinomial", "topk", "sample", "max"})
_DEVICES = (
    "cuda", "CUDA", "gpu", "GPU", "ccelerat", "Fabric", "lightning", "Trainer", "ignite", "rank",
    "RANK",
)  # fmt: skip
_NUMBERED = late_pattern(r"(?:\.to\(|device\s*=)\s*\d")
_VIEWS = frozenset(
    {"squeeze", "view", "reshape", "flatten", "detach", "float", "long", "int", "to", "contiguous",
     "unsqueeze", "mean", "sum", "max", "min", "argmax", "norm", "abs", "softmax", "sigmoid",
     "clone"}
)  # fmt: skip
_LOOPS = (
    ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
# What hands on the items of what it is given.
_HANDING_ON = frozenset({"enumerate", "zip", "reversed", "tqdm", "trange", "track", "iter", "list"})
# Calls whose result is no tensor of torch.
_NO_TENSORS = frozenset(
    {"range", "sorted", "dict", "open", "len", "set", "items", "keys", "values", "split", "listdir",
     "glob", "walk", "getattr", "vars", "dir", "input", "str", "readlines", "splitlines", "product",
     "named_parameters", "named_modules", "named_children", "modules", "parameters", "children"}
)  # fmt: skip
_NO_TENSOR_MODULES = frozenset(
    {"os", "glob", "json", "re", "random", "math", "np", "numpy", "itertools", "sys", "pd"}
)


def may_wait(function: ast.AST, around: str, source: str) -> bool:
    """Whether a loop of a function may read a tensor over and over."""
    del around
    if not _knows_cuda(source):
        return False
    nodes = nodes_of(function)
    calls = _calls_in_loops(nodes)
    if not calls:
        return False
    if _train(calls, source):
        return True
    reads = [one for call in calls for one in _read_by(call, source)]
    if not reads:
        return False
    values = _Values(function, nodes, source)
    return any(values.is_part_or_pick(one) for one in reads)


@lru_cache(maxsize=4)
def _knows_cuda(source: str) -> bool:
    """Whether a program, not what is said about it, speaks of CUDA or of numbers of devices."""
    if not any(word in source for word in _DEVICES) and _NUMBERED.search(source) is None:
        return False
    code = code_of(source)
    return any(word in code for word in _DEVICES) or _NUMBERED.search(code) is not None


def _calls_in_loops(nodes: Iterable[ast.AST]) -> list[ast.Call]:
    """The calls that stand in loops, of the nodes of a function, those further up first."""
    inside: set[int] = set()
    found: list[ast.Call] = []
    for loop in nodes:
        if isinstance(loop, _LOOPS) and id(loop) not in inside:
            below = walk(loop)
            inside.update(id(one) for one in below if isinstance(one, _LOOPS))
            found += [one for one in below if isinstance(one, ast.Call)]
    return found


def _train(calls: list[ast.Call], source: str) -> bool:
    """Whether one of the calls of a loop trains, or leads to what does."""
    if not ("backward" in source or "zero_grad" in source):
        return False
    training = leading_to(source, TRAINING_CALL)
    names = {last_name(call.func) for call in calls}
    return bool(names & (_TRAINS | training)) or (
        called_otherwise(source, training) and any(_may_be_handed(call.func) for call in calls)
    )


def _may_be_handed(callee: ast.expr) -> bool:
    """Whether a callee may be anything: a name, or an attribute of ``self``."""
    return isinstance(callee, ast.Name) or (
        isinstance(callee, ast.Attribute)
        and isinstance(callee.value, ast.Name)
        and callee.value.id == "self"
    )


def _read_by(call: ast.Call, source: str) -> Iterable[ast.expr]:
    """What a call may read of the device: in itself, or in what it leads to."""
    match call.func:
        case ast.Attribute(value=value, attr=name) if name in _METHODS:
            return [value]
        case ast.Attribute(value=value, attr="to") if _names_host(call, source):
            return [value]
        case ast.Name(id=name) if name in _NUMBERS:
            return call.args[:1]
        case ast.Name(id="map"):
            return call.args[1:]
    name = last_name(call.func)
    if name in _reading_helpers(source):
        return [*call.args, *(keyword.value for keyword in call.keywords)]
    return []


@lru_cache(maxsize=4)
def _reading_helpers(source: str) -> frozenset[str]:
    """The functions that read what they are given."""
    return frozenset(one.name for one in definitions(source) if _reads_parameter(one)) - UNNAMED


def _reads_parameter(function: Definition) -> bool:
    if not any(word in function.text for word in _READING):
        return False
    given = _PARAMETERS.search(function.text)
    if given is None:
        return False
    names = set(re.findall(r"\w+", given[1])) - {"self", "cls"}
    return any(
        first in names or second in names for first, second in _READ_NAME.findall(function.text)
    )


def _names_host(call: ast.Call, source: str) -> bool:
    given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "device")]
    return any(
        str(one.value).startswith("cpu")
        if isinstance(one, ast.Constant)
        else '"cpu"' in source or "'cpu'" in source
        for one in given
    )


class _Values:
    """Where the values of a function come from, up to views of them."""

    def __init__(self, function: ast.AST, nodes: Iterable[ast.AST], source: str) -> None:
        self._bound: dict[str, list[ast.expr]] = {}
        self._iterated: dict[str, list[ast.expr]] = {}
        self._asking: set[ast.expr] = set()
        self._inner: set[str] = set()
        arguments = getattr(function, "args", None)
        own = (
            {one.arg for one in walk(arguments) if isinstance(one, ast.arg)} if arguments else set()
        )
        called = source.count(f"{getattr(function, 'name', '')}(") > 1
        self._own = own if called else set[str]()
        for node in nodes:
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._note(self._bound, target, value)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._note(self._bound, target, value)
                case ast.NamedExpr(target=target, value=value):
                    self._note(self._bound, target, value)
                case ast.For() | ast.AsyncFor() | ast.comprehension():
                    self._note(self._iterated, node.target, node.iter)
                case ast.With() | ast.AsyncWith():
                    for item in node.items:
                        if item.optional_vars is not None:
                            self._note(self._bound, item.optional_vars, item.context_expr)
                case ast.arg(arg=name) if name not in own:
                    self._inner.add(name)

    def _note(self, into: dict[str, list[ast.expr]], target: ast.expr, value: ast.expr) -> None:
        for one in walk(target):
            if isinstance(one, ast.Name):
                into.setdefault(one.id, []).append(value)

    def is_part_or_pick(self, node: ast.expr) -> bool:
        """Whether a value may be the part of a tensor that an iteration is for, or what it picks
        as the next token."""
        return any(self._is_part(one) or _picks(one) for one in self._ends(node))

    def _ends(self, node: ast.expr) -> Iterator[ast.expr]:
        """What a value comes from, through names and views."""
        waiting, seen = [node], set[int]()
        while waiting:
            one = waiting.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            yield one
            match one:
                case ast.Name(id=name):
                    waiting += self._bound.get(name, ())
                case ast.Subscript(value=value) | ast.Attribute(value=value):
                    waiting.append(value)
                case ast.NamedExpr(value=value) | ast.Await(value=value):
                    waiting.append(value)
                case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _VIEWS:
                    waiting.append(value)
                case ast.IfExp(body=body, orelse=orelse):
                    waiting += [body, orelse]

    def _is_part(self, node: ast.expr) -> bool:
        match node:
            case ast.Subscript(value=value, slice=key):
                return any(
                    isinstance(one, (ast.Name, ast.Attribute)) for one in walk(key)
                ) and self._may_be_tensor(value)
            case ast.Name(id=name):
                return name in self._inner or any(
                    self._may_be_tensor(one) for one in self._iterated.get(name, ())
                )
        return False

    def _may_be_tensor(self, node: ast.expr) -> bool:
        """Whether something, or one of the things that are iterated together, may be a tensor
        that the program makes."""
        if node in self._asking:
            # What is iterated may come from what is made of it: the circle tells nothing.
            return False
        self._asking.add(node)
        try:
            return any(self._is_tensor_like(one) for one in self._ends(node))
        finally:
            self._asking.discard(node)

    def _is_tensor_like(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return (
                    name in self._own
                    or name in self._inner
                    or any(
                        self._may_be_tensor(one)
                        for one in self._iterated.get(name, ())
                        if one is not node
                    )
                )
            case ast.Call(func=func, args=args):
                name = last_name(func)
                if name in _HANDING_ON:
                    return any(self._may_be_tensor(one) for one in args)
                root = dotted(func).partition(".")[0]
                return name not in _NO_TENSORS and root not in _NO_TENSOR_MODULES
            case ast.BinOp() | ast.UnaryOp() | ast.Compare():
                return True
            case ast.Attribute(value=ast.Name(id="self")):
                return True
        return False


def _picks(node: ast.expr) -> bool:
    """Whether a call picks the greatest, or draws one."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name in _PICKS
    return False
