"""Which functions may evaluate a model while autograd records, as their text tells: a sieve."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from memlint.analysis.evaluation import (
    ENGINE,
    EVALUATION,
    LIBRARY,
    MEASURED,
    MEASURING,
    TESTING,
)
from memlint.analysis.knowledge.networks import NETWORK_NAME, RUNNING
from memlint.analysis.last_name import last_name
from memlint.analysis.leading_names import (
    UNNAMED,
    calls_of_functions,
    code_of,
    definitions,
    leading_to,
    leading_to_names,
)
from memlint.analysis.steps import STEP_HOOKS
from memlint.analysis.uses import dotted
from memlint.analysis.walking import nodes_of, walk
from memlint.late_pattern import late_pattern

EVALUATING = (".eval()", ".train(False", ".train(mode=False")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (
    ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_NUMBERS = frozenset({"float", "int", "print", "len"})
_IMPORTED = late_pattern(
    r"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+(?:\(([^)]*)\)|([^\n(]*))", re.MULTILINE
)
_OF_MODULES = (".eval(", ".train(", ".parameters(", ".named_parameters(")
_OWNER = late_pattern(r"(\w+)(?:\[[^\]\n]*\])?$")
_EVALUATED = late_pattern(r"\.eval\(\)|\.train\((?:mode=)?False")
_BOUND = late_pattern(r"(\w+)[ \t]*(?::[^=\n]+)?=(?!=)")
# What a class keeps as an attribute, and its methods.
_OWN = late_pattern(r"\bself\.(\w+)[ \t]*(?::[^=\n]+)?=(?!=)|\bdef[ \t]+(\w+)\([ \t]*self\b")
_NO_RUNS = frozenset({"eval", "train", "to", "cuda", "parameters", "named_parameters", "cpu"})
# So far behind a name, at most, what it is bound to is put into evaluation mode.
_NEAR = 600


def may_evaluate(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function may run a model that is only to be measured or used."""
    if not may_be_told(source):
        return False
    functions = list(_functions_in(function))
    named = any(MEASURING.search(getattr(one, "name", "")) for one in functions)
    if not named and not _puts_into_evaluation(source):
        return False
    return any(_may_evaluate(one, around, source) for one in functions)


@lru_cache(maxsize=4)
def may_be_told(source: str) -> bool:
    """Whether a program is none that tests itself, or evaluates by a framework."""
    return LIBRARY.search(source) is not None and not (
        TESTING.search(source) or ENGINE.search(source)
    )


@lru_cache(maxsize=4)
def _puts_into_evaluation(source: str) -> bool:
    code = code_of(source)
    return any(word in code for word in EVALUATING)


def _functions_in(function: ast.AST) -> Iterator[ast.AST]:
    """A function, or what a module does, and the functions in it."""
    yield function
    yield from (one for one in nodes_of(function)[1:] if isinstance(one, _FUNCTIONS))


def _may_evaluate(function: ast.AST, around: str, source: str) -> bool:
    name = getattr(function, "name", "")
    if name in STEP_HOOKS or name in ("forward", "__init__") or name.startswith("forward_"):
        return False
    if any(_turns_off(one) for one in getattr(function, "decorator_list", ())):
        return False
    nodes = nodes_of(function)
    meant = isinstance(function, ast.Module) or bool(EVALUATION.search(name))
    if not meant and not any(isinstance(one, _LOOPS) or _measures(one) for one in nodes):
        return False
    networks = Networks(function, nodes, around, source)
    return any(isinstance(one, ast.Call) and networks.are_run_by(one) for one in nodes)


def _turns_off(decorator: ast.expr) -> bool:
    """``@torch.no_grad()``."""
    if isinstance(decorator, ast.Call) and (decorator.args or decorator.keywords):
        return False
    return last_name(decorator) in ("no_grad", "inference_mode")


def _measures(node: ast.AST) -> bool:
    """Whether something makes plain numbers of a tensor."""
    match node:
        case ast.Attribute(attr=name):
            return name in MEASURED or name in ("shape", "dtype", "device")
        case ast.Call(func=ast.Name(id=name)):
            return name in _NUMBERS
        case ast.Compare() | ast.FormattedValue() | ast.If() | ast.While():
            return True
    return False


class Networks:
    """What a function may call that is a network, or runs one."""

    def __init__(self, function: ast.AST, nodes: list[ast.AST], around: str, source: str) -> None:
        self._names = _network_names(source)
        self._running = _running_names(source)
        self._imported = imported_names(source)
        self._layers = _own_layers(around)
        self._local: set[str] = {"self"}
        for node in nodes:
            match node:
                case ast.arg(arg=name) if name != "cls":
                    self._local.add(name)
                case ast.For() | ast.AsyncFor() | ast.comprehension():
                    self._local.update(
                        one.id for one in walk(node.target) if isinstance(one, ast.Name)
                    )

    def are_run_by(self, call: ast.Call) -> bool:
        """Whether a call may run a network."""
        if not (call.args or call.keywords):
            return False
        func: ast.expr = call.func
        while isinstance(func, ast.Attribute) and func.attr in ("forward", "module"):
            func = func.value
        name = last_name(func)
        if isinstance(func, ast.Name) and name in self._local:
            return True
        if isinstance(func, ast.Attribute) and dotted(func) == f"self.{name}":
            if name in self._layers:
                return True
        elif dotted(func).partition(".")[0] in self._imported:
            return False
        return name not in _NO_RUNS and (
            name in self._names
            or name in RUNNING
            or name in self._running
            or NETWORK_NAME.search(name) is not None
        )


@lru_cache(maxsize=4)
def _own_layers(around: str) -> frozenset[str]:
    """The attributes of a class that puts itself into evaluation mode, and its methods, which may
    compute with its parameters."""
    if "self.eval()" not in around and "self.train(" not in around:
        return frozenset()
    return frozenset(attribute or method for attribute, method in _OWN.findall(around))


@lru_cache(maxsize=4)
def _network_names(source: str) -> frozenset[str]:
    """The last names of what a program calls methods on that only modules have, and of what it
    puts into evaluation mode where that is made."""
    code = code_of(source)
    found = {name for word in _OF_MODULES if word in code for name in _owners(word, code)}
    for chain in _EVALUATED.finditer(code) if _puts_into_evaluation(source) else ():
        found.update(_BOUND.findall(code[max(chain.start() - _NEAR, 0) : chain.start()])[-1:])
    for maker in leading_to(source, _EVALUATED) - UNNAMED:
        found.update(_assigned_from(f"{maker}(", code))
    return frozenset(found - {"self", ""})


def _owners(call: str, code: str) -> Iterator[str]:
    """The last names of what a method is called on."""
    at = code.find(call)
    while at >= 0:
        owner = _OWNER.search(code, max(at - 80, 0), at)
        if owner is not None:
            yield owner[1]
        at = code.find(call, at + 1)


def _assigned_from(call: str, code: str) -> Iterator[str]:
    """The last names that the results of a call are assigned to on its line."""
    at = code.find(call)
    while at >= 0:
        yield from _BOUND.findall(code[code.rfind("\n", 0, at) + 1 : at])
        at = code.find(call, at + 1)


@lru_cache(maxsize=4)
def _running_names(source: str) -> frozenset[str]:
    """The functions of a program that may run a network, or lead to one that does."""
    names = _network_names(source) | RUNNING
    others = imported_names(source) | {one.name for one in definitions(source)} | _NO_RUNS
    found = {
        name
        for name, called in calls_of_functions(source)
        if any(one in names or NETWORK_NAME.search(one) for one in called - others)
    }
    return leading_to_names(source, frozenset(found)) - UNNAMED


@lru_cache(maxsize=4)
def imported_names(source: str) -> frozenset[str]:
    """The names that a source imports."""
    found: set[str] = set()
    for several, one in _IMPORTED.findall(source):
        for part in re.sub(r"#[^\n]*", "", several or one).split(","):
            words = part.split()
            if words:
                found.add(words[-1].partition(".")[0])
    return frozenset(found)
