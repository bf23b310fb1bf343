"""Which functions may make float64 of what nobody asked to be, as far as syntax tells: a sieve.

Either a tensor is made of an array that may be float64 by NumPy's default, or an array that may
be float32 meets a NumPy scalar or integers of 64 bits.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from memlint.analysis.casts import is_cast_at_once
from memlint.analysis.definitions_text import callers_hold, leads_to, names_behind
from memlint.analysis.imported_names import full_name
from memlint.analysis.knowledge.float64 import DRAWN, MAKERS, STRONG_SCALARS
from memlint.analysis.last_name import last_name
from memlint.analysis.marks import NONE, OUTER, Marks, MarkWalk
from memlint.analysis.places.followed import defined_names
from memlint.analysis.uses import Uses
from memlint.analysis.walking import as_module, kinds_in, walk
from memlint.late_pattern import late_pattern

_TENSOR_MAKERS = frozenset({"from_numpy", "tensor", "as_tensor", "asarray"})
_PICTURES = frozenset({"open", "imread", "imdecode", "cvtColor"})
_ARRAYS = frozenset({"array", "asarray", "asanyarray"})
_STRONG = frozenset(name.rpartition(".")[2] for name in STRONG_SCALARS) | {"arange"}
_SOURCES = (
    frozenset(name.rpartition(".")[2] for name in MAKERS | DRAWN)
    | _PICTURES
    | {"full", "arange"}
    | _STRONG
)
_SOURCE = late_pattern(rf"\b(?:{'|'.join(sorted(_SOURCES | _ARRAYS))})\s*\(")
_OTHER_MODULES = frozenset({"torch", "th", "math", "F", "tf", "jnp", "jax"})
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_NO_ARRAYS = frozenset({"shape", "ndim", "dtype", "size", "len", "range", "item", "tolist"})
_DEFAULT = "default"
_SINGLE = "single"
_STRONG_MARK = "strong"
_CALLED = "called:"


def may_be_float64(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function may make float64 by default."""
    calls = kinds_in(function)[ast.Call]
    made = {one for one in calls if _makes_tensor(one, source)}
    single = "float32" in source
    if not made and not (single and any(_is_strong(one, source) for one in calls)):
        return False
    module = as_module(function)
    if made:
        uses = Uses(module)
        made = {one for one in made if not is_cast_at_once(one, uses)}
    return _Arrays(function, around, source, frozenset(made), single=single).found(module)


def _makes_tensor(call: ast.Call, source: str) -> bool:
    """Whether a call makes a tensor of something, and names no dtype."""
    if not call.args or isinstance(call.args[0], ast.Constant):
        return False
    if isinstance(call.func, ast.Attribute) and call.func.attr not in _TENSOR_MAKERS:
        return False
    full = full_name(call.func, source)
    base, name = full.partition(".")[0], full.rpartition(".")[2]
    if name not in _TENSOR_MAKERS or (name == "asarray" and base in ("np", "numpy", "jnp", "jax")):
        return False
    if any(one.arg in ("dtype", None) for one in call.keywords):
        return False
    return len(call.args) == 1 or name == "from_numpy"


def _is_strong(call: ast.Call, source: str) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr not in _STRONG:
        return False
    full = full_name(call.func, source)
    return full.rpartition(".")[2] in _STRONG and full.partition(".")[0] not in _OTHER_MODULES


class _Arrays:
    """What is known of the arrays of a function by its syntax."""

    def __init__(
        self,
        function: ast.AST,
        around: str,
        source: str,
        made: frozenset[ast.Call],
        *,
        single: bool,
    ) -> None:
        self._function, self._around, self._source = function, around, source
        self._made, self._single = made, single
        arguments = getattr(function, "args", ast.Pass())
        self._parameters = {one.arg for one in walk(arguments) if isinstance(one, ast.arg)}
        inner = {one.arg for one in kinds_in(function)[ast.arg]}
        self._inner = inner - self._parameters
        self._arrived: Marks = NONE
        self._met: set[tuple[Marks, Marks]] = set()

    def found(self, module: ast.Module) -> bool:
        """Whether float64 may be made by default in a piece of code."""
        MarkWalk(self._step).run(module)
        if _DEFAULT in self._arrived:
            return True
        if any(self._may_be_source(mark) for mark in self._arrived):
            return True
        return any(
            _SINGLE in other or any(self._may_be_single(mark) for mark in other)
            for _, other in self._met
        )

    def _step(self, node: ast.expr, of: Callable[[ast.expr], Marks]) -> Marks | None:
        match node:
            case ast.Call():
                return self._called(node, of)
            case ast.BinOp(op=op, left=left, right=right):
                if isinstance(op, _ARITHMETIC) and self._single:
                    for one, other in ((of(left), of(right)), (of(right), of(left))):
                        if _STRONG_MARK in one:
                            self._met.add((one, other))
                return (of(left) | of(right)) - {_STRONG_MARK}
            case ast.Attribute(attr=name) if name in _NO_ARRAYS:
                return NONE
            case ast.Constant(value=float()):
                return NONE
            case ast.Constant() | ast.JoinedStr() | ast.Compare():
                return NONE
        return None

    def _called(self, node: ast.Call, of: Callable[[ast.expr], Marks]) -> Marks | None:
        func = node.func
        full = full_name(func, self._source)
        base, name = full.partition(".")[0], full.rpartition(".")[2]
        given = NONE.union(*map(of, [*node.args, *(one.value for one in node.keywords)]))
        if node in self._made:
            self._arrived |= of(node.args[0])
            return NONE
        if name in _NO_ARRAYS:
            return NONE
        asked = next((one.value for one in node.keywords if one.arg == "dtype"), None)
        if name == "astype":
            asked = node.args[0] if node.args else asked
        if asked is not None and "float" in ast.unparse(asked):
            return frozenset({_SINGLE}) if "32" in ast.unparse(asked) else NONE
        if base in _OTHER_MODULES:
            return given - {_STRONG_MARK}
        if name in _STRONG:
            return given | {_STRONG_MARK, _DEFAULT}
        if name in _SOURCES or (name in _ARRAYS and _is_written(node)):
            return given | {_DEFAULT}
        if name in defined_names(self._source):
            given |= {_CALLED + name}
        receiver = of(func.value) if isinstance(func, ast.Attribute) else NONE
        return receiver | given

    def _may_be_source(self, mark: str) -> bool:
        if mark.startswith(_CALLED):
            return leads_to(mark.removeprefix(_CALLED), _SOURCE, self._source)
        return self._comes(mark, _SOURCE)

    def _may_be_single(self, mark: str) -> bool:
        word = re.compile("float32")
        if mark.startswith(_CALLED):
            return leads_to(mark.removeprefix(_CALLED), word, self._source)
        return mark.startswith(OUTER) and self._comes(mark, word)

    def _comes(self, mark: str, word: re.Pattern[str]) -> bool:
        """Whether what comes from outside may come from where a word stands."""
        path = mark.removeprefix(OUTER)
        if not mark.startswith(OUTER) or path in ("self", "np", "numpy"):
            return False
        if path in self._parameters:
            return callers_hold(self._function, self._around, word, self._source)
        if path in self._inner:
            return any(_named(one, word) for one in walk(self._function))
        behind = names_behind(path.rpartition(".")[2], self._source)
        return any(word.search(f"{name}(") or name == "float32" for name in behind) or any(
            leads_to(name, word, self._source) for name in behind
        )


def _named(node: ast.AST, word: re.Pattern[str]) -> bool:
    """Whether a node is a call of what a word names, or that name."""
    match node:
        case ast.Call(func=func):
            return word.search(f"{last_name(func)}(") is not None
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            return word.fullmatch(name) is not None
    return False


def _is_written(call: ast.Call) -> bool:
    """Whether numbers are written in a call."""
    return any(isinstance(one, (ast.List, ast.Tuple, ast.ListComp)) for one in call.args)
