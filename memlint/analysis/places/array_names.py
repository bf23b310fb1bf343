"""Which values of a program may be made of arrays of NumPy, as far as its statements tell: a help
of sieves.

Values are followed back by the names in them: through variables, attributes of whatever object,
what functions return, and what their calls hand to their parameters.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

from memlint.analysis.imported_names import full_name, imported
from memlint.analysis.knowledge.array_makers import SEVERAL
from memlint.analysis.last_name import last_name
from memlint.analysis.leading_names import UNNAMED
from memlint.analysis.marks import path_of
from memlint.analysis.places.settings import (
    SETTING,
    arguments_for,
    given_in,
    names_in,
    settings,
)
from memlint.analysis.places.statements import ATTRIBUTE, Asked, Statements, statements_of
from memlint.analysis.walking import children, kinds_in, walk

MODULES = frozenset({"np", "numpy", "cv2", "scipy", "sp", "skimage", "imageio", "tifffile"})
METHODS = frozenset({"numpy", "to_numpy", "toarray", "get_fdata", "imread"})
NUMBERS = frozenset({"len", "float", "int", "bool", "str", "item", "tolist", "sum", "max", "min",
                     "range", "abs", "round", "print", "isinstance"})  # fmt: skip
NO_ARRAYS = frozenset({"shape", "ndim", "dtype", "size", "device"})
LISTING = frozenset(name.rpartition(".")[2] for name in SEVERAL)
# Methods that give arrays and never lists.
_OF_ARRAYS = frozenset(
    {"astype", "reshape", "ravel", "flatten", "clip", "transpose", "swapaxes", "byteswap",
     "cumsum", "argsort", "mean", "std", "var", "prod"}
)  # fmt: skip
_TORCH = frozenset({"torch", "th", "F"})
_BUILTINS = frozenset(dir(builtins))
_SELVES = frozenset({"self", "cls", "super"})
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LISTS = (
    ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp, ast.Dict, ast.DictComp, ast.Starred,
)  # fmt: skip
# Modules of whose functions something is known.
_KNOWN = MODULES | {
    "accelerate", "builtins", "collections", "concurrent", "copy", "cupy", "dataclasses", "dill",
    "einops", "functools", "glob", "itertools", "jax", "joblib", "lightning", "more_itertools",
    "multiprocessing", "natsort", "numba", "operator", "os", "pandas", "pathlib", "pickle", "PIL",
    "pytorch_lightning", "random", "threading", "toolz", "torch", "torchvision", "tqdm", "typing",
}  # fmt: skip
# So many names are followed; behind more there may be anything.
_MANY = 60


def may_be_lists_of_arrays(value: ast.expr, function: ast.AST, source: str) -> bool:
    """Whether there may be arrays, and lists, in a value of a function."""
    made, outer = _made_in(value, function, source)
    if not outer and not made.attributes:
        return made.arrays and made.lists
    program = statements_of(source)
    unit = program.unit_of(function)
    for asked in program.asked(outer, made.attributes, unit):
        arrays, lists = _behind(asked, source)
        made.arrays |= arrays
        made.lists |= lists
    return made.arrays and made.lists


def _made_in(value: ast.expr, function: ast.AST, source: str) -> tuple[_Made, set[str]]:
    """What a value is made of by what a function does, and the names that it does not set."""
    made, local = _Made(source), _local(function, source)
    made.add(value)
    outer, seen = set[str](), set[str]()
    while fresh := made.names - seen:
        seen |= fresh
        for name in fresh:
            if name not in local.given or name in local.shared:
                outer.add(name)
            for one in local.given.get(name, ()):
                made.add(one)
    return made, outer


class _Local:
    """What the names of a function are given by its statements; ``shared`` are those that may be
    given something elsewhere too."""

    def __init__(self, function: ast.AST, source: str) -> None:
        kinds = kinds_in(function)
        self.shared = {one.arg for one in kinds[ast.arg]}
        for one in chain(kinds[ast.Global], kinds[ast.Nonlocal]):
            self.shared.update(one.names)
        for kind in _DEFINITIONS:
            self.shared.update(one.name for one in kinds[kind])
        for call in kinds[ast.Call]:
            if f"def {last_name(call.func)}(" in source:
                # It may be added to.
                self.shared.update(one.id for one in call.args if isinstance(one, ast.Name))
        self.given: dict[str, list[ast.expr]] = {}
        for setting in SETTING:
            for node in kinds[setting]:
                for target, value in settings(node):
                    for name, _ in names_in(target):
                        self.given.setdefault(name, []).append(value)


@lru_cache(maxsize=2)
def _local(function: ast.AST, source: str) -> _Local:
    return _Local(function, source)


@lru_cache(maxsize=256)
def _behind(first: Asked, source: str) -> tuple[bool, bool]:
    """Whether arrays, and lists, may be behind a name in a program."""
    program = statements_of(source)
    waiting, seen = [first], {first}
    arrays = lists = False
    while waiting and not (arrays and lists):
        if len(seen) > _MANY:
            return True, True
        asked = waiting.pop()
        for number in program.naming(asked):
            made = _Made(program.source)
            if _add_given(program, asked, number, made):
                return True, True
            arrays, lists = arrays or made.arrays, lists or made.lists
            unit = program.unit(number)
            further = {*program.asked(made.names, made.attributes, unit), *made.further} - seen
            waiting += further
            seen |= further
    return arrays, lists


class _Made:
    """What values are made of: arrays, lists, or what is named in them."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.arrays = self.lists = False
        self.names = set[str]()
        self.attributes = set[str]()
        self.further = set[Asked]()

    def add(self, value: ast.AST) -> None:
        """Take note of what a value is made of."""
        waiting: list[ast.AST] = [value]
        while waiting:
            node = waiting.pop()
            match node:
                case ast.Constant() | ast.JoinedStr():
                    pass
                case ast.Call():
                    waiting += self._called(node)
                case ast.Attribute(value=base, attr=name):
                    if name not in NO_ARRAYS:
                        self._note(node)
                        self.attributes.add(name)
                        waiting.append(base)
                case ast.Name(id=name):
                    if name not in _SELVES:
                        self._note(node)
                        if name not in imported(self._source):
                            self.names.add(name)
                case ast.Subscript(value=base):
                    waiting.append(base)
                case ast.IfExp(body=body, orelse=orelse):
                    waiting += [body, orelse]
                case _:
                    self.lists |= isinstance(node, _LISTS)
                    waiting += children(node)

    def _note(self, node: ast.expr) -> None:
        self.arrays |= full_name(node, self._source).partition(".")[0] in MODULES

    def _called(self, call: ast.Call) -> list[ast.AST]:
        full = full_name(call.func, self._source)
        base, name = full.partition(".")[0], full.rpartition(".")[2]
        if name in NUMBERS or base in _TORCH:
            return []
        if base in MODULES or name in METHODS or name in _OF_ARRAYS:
            self.arrays = True
            self.lists |= name in LISTING
            return []
        if f"def {name}(" in self._source and name not in LISTING:
            return [call.func]  # what it is given is asked of its parameters
        if is_from_elsewhere(call.func, self._source):
            return []
        self.lists = True
        given: list[ast.AST] = [*call.args, *(one.value for one in call.keywords)]
        return given if full in _BUILTINS else [call.func, *given]


def is_from_elsewhere(callee: ast.expr, source: str) -> bool:
    """Whether a function is imported from a module of which nothing is known: what it gives is
    not known to be an array, nor a list."""
    root = path_of(callee).partition(".")[0]
    module = imported(source).get(root)
    return module is not None and module.partition(".")[0] not in _KNOWN


def _add_given(program: Statements, asked: Asked, number: int, made: _Made) -> bool:
    """Take note of what a statement gives to a name; true where that may be anything."""
    defined = program.definition(number)
    if defined is not None and defined[0] == "class":
        if defined[1] == asked.name:
            _add_given_by_objects(program, number, made)
        return False
    if defined is not None and defined[1] == asked.name:
        made.lists |= "yield" in program.text(number)
        for one in program.given_back(number):
            made.add(one)
        return False
    if defined is not None:
        return asked.unit != ATTRIBUTE and _add_handed(program, asked, number, made)
    tree = program.parsed(number)
    if tree is None or program.is_opaque(number):
        return True
    for value in given_in(
        tree,
        asked.name,
        as_attribute=asked.unit == ATTRIBUTE,
        is_field=program.is_field(number),
    ):
        made.lists |= program.fills(number)
        if value is None:
            return _add_arguments(program, program.owner(number), asked.name, (), made)
        made.add(value)
    return any(
        isinstance(node, ast.Call)
        and any(last_name(one) == asked.name for one in node.args)
        and program.adds(last_name(node.func))
        for node in walk(tree)
    ) or any(isinstance(node, ast.arg) and node.arg == asked.name for node in walk(tree))


def _add_given_by_objects(program: Statements, number: int, made: _Made) -> None:
    """What the objects of a class give where they are called, iterated, or indexed."""
    made.names.update(program.bases(number))
    for method in program.methods(number):
        if program.definition(method)[1] in UNNAMED:  # type: ignore[index]
            made.further.update(
                one
                for value in program.given_back(method)
                for one in _asked_in(program, value, method, made)
            )


def _asked_in(program: Statements, value: ast.expr, number: int, made: _Made) -> Iterator[Asked]:
    inner = _Made(program.source)
    inner.add(value)
    made.arrays |= inner.arrays
    made.lists |= inner.lists
    yield from program.asked(inner.names, inner.attributes, program.unit(number))


def _add_handed(program: Statements, asked: Asked, number: int, made: _Made) -> bool:
    """What is handed to a parameter of a function."""
    tree = program.parsed(number)
    if tree is None:
        return True
    arguments = tree.args  # type: ignore[attr-defined]
    every = [one for one in walk(arguments) if isinstance(one, ast.arg) and one.arg == asked.name]
    if not every:
        return False
    if any(one.annotation is not None and "rray" in ast.unparse(one.annotation) for one in every):
        return True
    made.lists |= arguments.vararg is not None
    for default in (*arguments.defaults, *arguments.kw_defaults):
        if default is not None:
            made.add(default)
    name = program.definition(number)[1]  # type: ignore[index]
    owner = program.owner(number)
    spec = tuple(one.arg for one in (*arguments.posonlyargs, *arguments.args))
    if name in UNNAMED - {"__init__"}:
        objects = program.objects(owner) if name in ("forward", "__call__") else None
        return objects is None or any(
            _add_arguments(program, one, asked.name, spec, made, method=name)
            for one in (*objects, name)
        )
    called = {name, owner} if name in ("__init__", "__new__", "__post_init__") else {name}
    return any(_add_arguments(program, one, asked.name, spec, made) for one in called)


def _add_arguments(
    program: Statements,
    called: str,
    parameter: str,
    spec: tuple[str, ...],
    made: _Made,
    method: str = "",
) -> bool:
    """What calls give to a parameter; true where a function may be called otherwise, be it that of
    an object by one that is called as this is."""
    for number in program.naming(Asked(called, ATTRIBUTE)):
        if program.definition(number) is not None:
            continue
        tree = program.parsed(number)
        if tree is None:
            return True
        nodes = walk(tree)
        callees = {
            id(one.value)
            for one in nodes
            if isinstance(one, ast.Attribute) and method not in ("", one.attr)
        }
        for call in nodes:
            if isinstance(call, ast.Call) and last_name(call.func) == called:
                callees.add(id(call.func))
                for one in arguments_for(call, parameter, spec):
                    made.further.update(_asked_in(program, one, number, made))
        if any(
            isinstance(one, (ast.Name, ast.Attribute))
            and last_name(one) == called
            and id(one) not in callees
            and not (method and isinstance(one.ctx, ast.Store))
            for one in nodes
        ):
            return True
    return False
