"""Which functions may read a checkpoint whole, as far as their syntax tells: a sieve."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from memlint.analysis.files import STREAM_NAMES
from memlint.analysis.marks import path_of
from memlint.analysis.walking import nodes_of, walk
from memlint.late_pattern import late_pattern, name_pattern

LOAD = name_pattern(r"\bload\b")
# What is kept beside the weights and is small.
SMALL = late_pattern(
    r"(sched|scaler|rng|sampler|vocab|tokenizer|training_args|trainer_state|config|hparams|stats|"
    r"meta|label|index|split)\w*(\.\w+)?$",
    re.IGNORECASE,
)
SAMPLES = late_pattern(r"(Dataset|DataModule|Datapipe|IterDataPipe)$", re.IGNORECASE)
_TORCH = late_pattern(r"\bimport\s+torch\s+as\s+(\w+)")
_OTHER_NAMES = late_pattern(
    r"\bload\s+as\s+(\w+)|\b(\w+)\s*=[^=\n]*\b\w+(?:\.serialization)?\.load\b(?!\s*\()"
)
_FROM_TORCH = late_pattern(r"\bfrom\s+torch(?:\.serialization)?\s+import\b[^\n]*\bload\b")
_CLASS = late_pattern(r"[ \t]*(?:@[^\n]*\n[ \t]*)*class (\w+)(?:\(([^)]*)\))?")


def may_load(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function reads a checkpoint whole that may be large."""
    if _is_of_samples(around):
        return False
    nodes = nodes_of(function)
    bases, names = _names(source)
    loaders = [one for one in nodes if _is_loader(one, bases, names)]
    if not loaders:
        return False
    called = {one.func: one for one in nodes if isinstance(one, ast.Call)}
    looped = {
        name.id
        for one in nodes
        if isinstance(one, (ast.For, ast.AsyncFor, ast.comprehension))
        for name in walk(one.target)
        if isinstance(name, ast.Name)
    }
    return any(one not in called or _is_open(called[one], looped) for one in loaders)


def _is_of_samples(around: str) -> bool:
    """Whether the class of a method is that of a data set."""
    found = _CLASS.match(around)
    if found is None:
        return False
    names = [found.group(1), *(found.group(2) or "").replace(" ", "").split(",")]
    return any(map(SAMPLES.search, names))


def named_file(path: ast.expr) -> str:
    """What a path is called as it is written: a text, or the last name of a variable."""
    match path:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(str(p.value) if isinstance(p, ast.Constant) else "_" for p in parts)
        case ast.BinOp(right=right):
            return named_file(right)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


@lru_cache(maxsize=4)
def _names(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names of torch in a program, and those of its function."""
    other = {first or second for first, second in _OTHER_NAMES.findall(source)}
    if _FROM_TORCH.search(source) is not None:
        other.add("load")
    return frozenset({"torch", *_TORCH.findall(source)}), frozenset(other)


def _is_loader(node: ast.AST, bases: frozenset[str], names: frozenset[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in names and isinstance(node.ctx, ast.Load)
    if not isinstance(node, ast.Attribute):
        return False
    path = path_of(node)
    if node.attr == "load":
        owner = path.rpartition(".")[0]
        return owner in bases or owner.rpartition(".")[2] == "serialization"
    return node.attr in names and isinstance(node.ctx, ast.Load)


def _is_open(call: ast.Call, looped: set[str]) -> bool:
    """Whether a call leaves it open how a file is read, and may read a large one."""
    given = {one.arg: one.value for one in call.keywords}
    if "mmap" in given or "pickle_module" in given:
        return False
    path = given.get("f", call.args[0] if call.args else None)
    if path is None:
        return None in given or bool(call.args)
    if SMALL.search(named_file(path)):
        return False
    name = path.id if isinstance(path, ast.Name) else getattr(path, "attr", "")
    named = isinstance(path, (ast.Name, ast.Attribute)) and STREAM_NAMES.search(name)
    return not named or name in looped
