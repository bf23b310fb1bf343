"""Which functions may make a tensor of a list of arrays, as far as their syntax tells: a sieve."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from memlint.analysis.definitions_text import (
    CALLED_AS_OBJECT,
    callers_hold,
    has_subclasses,
    leads_to,
    owner_of,
)
from memlint.analysis.entries import LIST_OF_ARRAYS
from memlint.analysis.imported_names import full_name
from memlint.analysis.marks import NONE, OUTER, Marks, MarkWalk
from memlint.analysis.places.array_names import (
    LISTING,
    METHODS,
    MODULES,
    NO_ARRAYS,
    NUMBERS,
    is_from_elsewhere,
    may_be_lists_of_arrays,
)
from memlint.analysis.walking import as_module, kinds_in, walk
from memlint.late_pattern import late_pattern

# Where arrays of NumPy come from.
ARRAYS = late_pattern(r"\bnp\.|numpy|imread|\bcv2\.|toarray|get_fdata")
_MAKER = late_pattern(r"(?:tensor|as_tensor|asarray|(?:Float|Double|Long|Int|Short|Byte)?Tensor)$")
_DISPLAYS = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp, ast.Dict, ast.DictComp)
_LIST = "list"
_ARRAY = "array"
_CALLED = "called:"


def may_be_of_arrays(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function may make a tensor of a list of arrays."""
    made = frozenset(
        one
        for one in kinds_in(function)[ast.Call]
        if _makes(one, source) and may_be_lists_of_arrays(_given(one)[0], function, source)
    )
    if not made:
        return False
    return _Lists(function, around, source, made).found(as_module(function))


def _given(call: ast.Call) -> list[ast.expr]:
    """What a call makes a tensor of."""
    return [*call.args[:1], *(one.value for one in call.keywords if one.arg == "data")]


def _makes(call: ast.Call, source: str) -> bool:
    """Whether a call makes a tensor of something that may be a list."""
    given = _given(call)
    if not given or isinstance(given[0], ast.Constant):
        return False
    full = full_name(call.func, source)
    if _MAKER.match(full.rpartition(".")[2]) is None:
        return False
    return full.partition(".")[0] not in MODULES


class _Lists:
    """What is known of the lists of a function by its syntax."""

    def __init__(
        self, function: ast.AST, around: str, source: str, made: frozenset[ast.Call]
    ) -> None:
        self._function, self._around, self._source = function, around, source
        self._made = made
        self._given: set[Marks] = set()
        arguments = getattr(function, "args", ast.Pass())
        self._parameters = {one.arg for one in walk(arguments) if isinstance(one, ast.arg)}
        self._inner = {one.arg for one in kinds_in(function)[ast.arg]}
        self._annotations = {
            one.arg: ast.unparse(one.annotation).strip("'")
            for one in kinds_in(function)[ast.arg]
            if one.annotation is not None and "rray" in ast.unparse(one.annotation)
        }

    def found(self, module: ast.Module) -> bool:
        """Whether a tensor may be made of a list of arrays in a piece of code."""
        MarkWalk(self._step).run(module)
        return any(self._may_be(marks) for marks in self._given)

    def _may_be(self, marks: Marks) -> bool:
        if {_LIST, _ARRAY} <= marks:
            return True
        unknown = [one for one in marks if one not in (_LIST, _ARRAY)]
        return any(self._may_come(one) or self._is_annotated(one, marks) for one in unknown)

    def _is_annotated(self, mark: str, marks: Marks) -> bool:
        """Whether a parameter is said to be an array in a list, or a list of arrays."""
        annotation = self._annotations.get(mark.removeprefix(OUTER))
        if annotation is None:
            return False
        return _LIST in marks or LIST_OF_ARRAYS.fullmatch(annotation) is not None

    def _may_come(self, mark: str) -> bool:
        """Whether arrays may come from outside, or from a function of the program."""
        if mark.startswith(_CALLED):
            return leads_to(mark.removeprefix(_CALLED), ARRAYS, self._source)
        path = mark.removeprefix(OUTER)
        if path == "self":
            return False
        if path in self._parameters:
            return self._is_given_arrays()
        if path in self._inner:
            return True
        owner, _, name = path.rpartition(".")
        if owner not in ("", "self"):
            return False
        text = self._around if owner else self._source
        filled = (
            rf"\b{name}\b[^\n=]*(?:=(?!=)|\.(?:append|appendleft|extend|insert)\()|def {name}\("
        )
        return ARRAYS.search(text) is not None and re.search(filled, text) is not None

    def _is_given_arrays(self) -> bool:
        if callers_hold(self._function, self._around, ARRAYS, self._source):
            return True
        name = getattr(self._function, "name", "")
        return name in CALLED_AS_OBJECT and has_subclasses(owner_of(self._around), self._source)

    def _step(self, node: ast.expr, of: Callable[[ast.expr], Marks]) -> Marks | None:
        if isinstance(node, ast.Call):
            return self._called(node, of)
        if isinstance(node, _DISPLAYS):
            parts = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
            return NONE.union({_LIST}, *map(of, parts))
        if isinstance(node, (ast.Constant, ast.JoinedStr)):
            return NONE
        if isinstance(node, ast.Attribute) and node.attr in NO_ARRAYS:
            return NONE
        return None

    def _called(self, node: ast.Call, of: Callable[[ast.expr], Marks]) -> Marks | None:
        func = node.func
        full = full_name(func, self._source)
        base, name = full.partition(".")[0], full.rpartition(".")[2]
        given = [of(one) for one in (*node.args, *(one.value for one in node.keywords))]
        if node in self._made:
            self._given.add(of(_given(node)[0]))
            return NONE
        if name in NUMBERS or base in ("torch", "th", "F"):
            return NONE
        if is_from_elsewhere(func, self._source):
            return NONE
        if base in MODULES or name in METHODS:
            return frozenset({_ARRAY, _LIST} if name in LISTING else {_ARRAY})
        if name in ("list", "tuple", "zip", "map", "deque"):
            return NONE.union({_LIST}, *given)
        if (
            f"def {name}(" in self._source and name not in LISTING
        ) or f"class {name}" in self._source:
            return NONE.union({_CALLED + name}, *given)
        receiver = of(func.value) if isinstance(func, ast.Attribute) else NONE
        if name in LISTING:
            receiver |= {_LIST}
        return receiver.union(*given)
