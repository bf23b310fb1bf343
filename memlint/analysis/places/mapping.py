"""Which functions may map a file, or open an archive of arrays, to no use: a sieve by syntax.

A place is where the file is opened: what is done with it may stand elsewhere.
"""

from __future__ import annotations

import ast
import re

from memlint.analysis.definitions_text import CALLED_AS_OBJECT, definitions
from memlint.analysis.last_name import last_name
from memlint.analysis.marks import path_of
from memlint.analysis.walking import nodes_of, walk
from memlint.late_pattern import late_pattern

_MAPPERS = frozenset({"memmap", "open_memmap"})
_READING = frozenset({"r", "c", "readonly", "copyonwrite"})
_MAPPER_ALIAS = late_pattern(r"\b(?:memmap|open_memmap) as (\w+)")
_ALIAS = late_pattern(r"\b(?:memmap|open_memmap|load) as (\w+)")
_COPY = late_pattern(r"\.(?:astype|copy|tolist)\(|\b(?:array|copy|tensor|Tensor|FloatTensor)\(")
_STREAM = late_pattern(
    r"\b(?:open|BytesIO|BufferedReader|read|getbuffer|getvalue|extractfile|urlopen|GzipFile|"
    r"TemporaryFile|NamedTemporaryFile|SpooledTemporaryFile|FileIO|makefile|open_binary)\("
)
_ARCHIVE = late_pattern(r"\.npz\b")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def may_map_in_vain(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function opens a file in a way that may serve nothing."""
    aliases = frozenset(_ALIAS.findall(source))
    nodes = nodes_of(function)
    return any(
        _is_in_vain(one, function, around, source)
        for one in nodes
        if isinstance(one, ast.Call) and _opens(one, aliases)
    )


def _opens(call: ast.Call, aliases: frozenset[str]) -> bool:
    """Whether a call maps a file, or loads one."""
    name = last_name(call.func)
    if name in _MAPPERS or name == "load" or name in aliases:
        return True
    return any(one.arg in ("mmap_mode", "mmap") for one in call.keywords)


def _is_in_vain(call: ast.Call, function: ast.AST, around: str, source: str) -> bool:
    if last_name(call.func) in _MAPPERS | set(_MAPPER_ALIAS.findall(source)):
        return _COPY.search(source) is not None and _is_for_reading(call)
    if "torch" in path_of(call.func):
        return _is_of_stream(call, function, source)
    if _ARCHIVE.search(source) is not None and (_asks(call) or _reads_again(function, around)):
        return True
    return _asks(call) and (
        _COPY.search(source) is not None or _is_of_stream(call, function, source)
    )


def _is_for_reading(call: ast.Call) -> bool:
    """Whether a mapping may be one that is not written to."""
    texts = [
        one.value
        for one in [*call.args, *(k.value for k in call.keywords if k.arg == "mode")]
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    ]
    given = next((k.value for k in call.keywords if k.arg == "mode"), None)
    if isinstance(given, ast.Constant):
        return given.value in _READING
    return given is not None or any(one in _READING for one in texts) or _is_unclear(call)


def _is_unclear(call: ast.Call) -> bool:
    """Whether the mode may be given by position, as a name."""
    return any(k.arg is None for k in call.keywords) or any(
        not isinstance(one, ast.Constant) for one in call.args[1:]
    )


def _asks(call: ast.Call) -> bool:
    """Whether a load asks for a mapping."""
    given = [k.value for k in call.keywords if k.arg in ("mmap_mode", None)] + call.args[1:2]
    return any(not (isinstance(one, ast.Constant) and one.value is None) for one in given)


def _is_of_stream(call: ast.Call, function: ast.AST, source: str) -> bool:
    """Whether what is loaded may be open already, and is to be mapped."""
    given = [k.value for k in call.keywords if k.arg in ("mmap", "mmap_mode", None)]
    if not (given or len(call.args) > 1):
        return False
    path = [*call.args[:1], *(k.value for k in call.keywords if k.arg in ("f", "file"))]
    return any(_may_be_stream(one, function, source) for one in path)


def _may_be_stream(path: ast.expr, function: ast.AST, source: str) -> bool:
    """Whether a path may be an open file, or bytes, by what gave it."""
    if not isinstance(path, ast.Name):
        return _STREAM.search(ast.unparse(path)) is not None
    if path.id in _streams(ast.unparse(function)):
        return True
    parameters = {one.arg for one in nodes_of(function) if isinstance(one, ast.arg)}
    if path.id not in parameters:
        return path.id in _streams(source)
    name = getattr(function, "name", "")
    called = "" if name in CALLED_AS_OBJECT else name
    known = definitions(source)
    for text in [known.outside, *(one.text for one in known.functions)]:
        streams = "|".join(sorted(_streams(text)))
        if re.search(rf"\b{called}\([^\n]*{_STREAM.pattern}", text):
            return True
        if streams and re.search(rf"\b{called}\([^\n]*\b(?:{streams})\b", text):
            return True
    return False


def _streams(text: str) -> frozenset[str]:
    """The names of what is opened in a text."""
    found = re.findall(rf"{_STREAM.pattern}[^\n]*\bas (\w+)", text)
    found += re.findall(rf"\b(\w+)\s*=[^=\n][^\n]*{_STREAM.pattern}", text)
    return frozenset(found)


def _reads_again(function: ast.AST, around: str) -> bool:
    """Whether a member of what is loaded may be read in a loop, or for each sample."""
    if "__getitem__" in around or isinstance(function, ast.Module):
        return True
    nodes = nodes_of(function)
    if any(isinstance(one, (ast.Return, ast.Yield)) or _is_kept(one) for one in nodes):
        return True
    return any(
        isinstance(inner, ast.Subscript)
        for one in nodes
        if isinstance(one, (*_LOOPS, *_COMPREHENSIONS))
        for inner in walk(one)
    )


def _is_kept(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
