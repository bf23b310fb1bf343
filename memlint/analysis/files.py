"""Files that programs read and map: paths and streams, mappings and archives."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memlint.analysis.values import (
    Absent,
    Const,
    Linear,
    Made,
    Object,
    Sequence,
    Value,
    alternatives,
    deps_of,
    made_of,
    may_be,
    must_be,
)
from memlint.late_pattern import late_pattern

# What is opened already, or lies in memory.
_STREAMS = late_pattern(
    r"(^|\.)(open|BytesIO|BufferedReader|read|getbuffer|getvalue|extractfile|urlopen|GzipFile|"
    r"TemporaryFile|NamedTemporaryFile|SpooledTemporaryFile|FileIO|makefile|open_binary)$"
)
# What open files and bytes are called.
STREAM_NAMES = late_pattern(
    r"(^|_)(f|fh|fp|fd|fin|fobj|fileobj|file_obj|filelike|file_like|handle|buf|buff|buffer|bio|"
    r"stream|io|bytes|blob|reader)\d*$",
    re.IGNORECASE,
)
_MAPPERS = frozenset({"numpy.memmap", "numpy.lib.format.open_memmap", "numpy.memmap.memmap"})
_SAME_MAPPING = frozenset({"numpy.asarray", "numpy.asanyarray", "numpy.ascontiguousarray"})


def is_stream(value: Value, node: ast.expr | None = None) -> bool:
    """Whether ``value`` may be an open file or bytes in memory, by what made it or its name."""
    for one in alternatives(value):
        if isinstance(one, Object) and _STREAMS.search(one.cls):
            return True
        made = made_of(one)
        if made is not None and _STREAMS.search(made.name):
            return True
    if any(symbol.kind == "loop" for symbol in deps_of(value)):
        return False  # ``for f in files``: a path
    if isinstance(node, (ast.Name, ast.Attribute)):
        return STREAM_NAMES.search(getattr(node, "attr", getattr(node, "id", ""))) is not None
    return isinstance(node, ast.Call) and _STREAMS.search(_last_name(node.func)) is not None


def ending_of(value: Value, node: ast.expr | None = None) -> str:
    """The text that a path is known to end with."""
    for one in alternatives(value):
        if isinstance(one, Const) and isinstance(one.value, str):
            return one.value
        if isinstance(one, Object) and one.cls.startswith("pathlib.") and one.facts:
            return ending_of(one.facts[-1][1])
        made = made_of(one)
        if made is not None and made.name in _JOINING and made.inputs:
            return ending_of(made.inputs[-1], _last_part(made.node))
    match node:
        case ast.JoinedStr(values=[*_, ast.Constant(value=str(text))]):
            return text
        case ast.BinOp(right=ast.JoinedStr() | ast.Constant() as right):
            return ending_of(value, right)
        case ast.Constant(value=str(text)):
            return text
        case ast.Call(args=[*_, ast.JoinedStr() | ast.Constant() as last]):
            return ending_of(value, last)
    return ""


def _last_part(node: ast.AST) -> ast.expr | None:
    """What a path is joined with at last, where it stands in the expression."""
    match node:
        case ast.Call(args=[*_, last], keywords=[]) | ast.BinOp(right=last):
            return last
    return None


_JOINING = frozenset({"operator.true_divide", "operator.add", "os.path.join"})


def mappings(value: Value) -> Iterator[Made]:
    """The operations that mapped the file that ``value`` is, where it is the whole of a map."""
    for one in alternatives(value):
        made = made_of(one)
        if made is None:
            continue
        if made.name in _MAPPERS or (made.name == "numpy.load" and _asks_for_map(made)):
            yield made
        elif made.name in _SAME_MAPPING and made.inputs and not made.keywords:
            yield from mappings(made.inputs[0])


def mapping_of(value: Value) -> Made | None:
    """The operation that mapped the file that ``value`` is, on every path."""
    found = list(mappings(value))
    return found[0] if found and len(found) == len(list(alternatives(value))) else None


def mode_of(made: Made) -> Value:
    """The mode of a mapping."""
    if made.name == "numpy.load":
        return made.get("mmap_mode", 1)
    return made.get("mode", 2 if made.name == "numpy.memmap" else 1)


def is_written(made: Made) -> bool:
    """Whether the program may write to a mapping."""
    mode = mode_of(made)
    if isinstance(mode, Absent):
        return True
    return not any(must_be(mode, text) for text in ("r", "readonly", "c", "copyonwrite"))


def _asks_for_map(made: Made) -> bool:
    mode = made.get("mmap_mode", 1)
    return not isinstance(mode, Absent) and not may_be(mode, None)


def opened_archive(value: Value) -> Made | None:
    """The ``numpy.load`` that gave an archive (``.npz``), by its name."""
    for one in alternatives(value):
        made = made_of(one)
        if made is not None and made.name == "numpy.load" and made.inputs:
            path = made.node.args[0] if isinstance(made.node, ast.Call) and made.node.args else None
            if ending_of(made.inputs[0], path).endswith(".npz"):
                return made
    return None


def row_bytes(made: Made) -> int | None:
    """The bytes of a row of a mapping, where its shape and dtype stand in the call."""
    shape = made.get("shape", 4 if made.name == "numpy.memmap" else 3)
    if not isinstance(shape, Sequence) or shape.items is None or len(shape.items) < 2:
        return None
    size = 1
    for one in shape.items[1:]:
        if not (isinstance(one, Const) and type(one.value) is int):
            return None
        size *= one.value
    return size * _item_bytes(made.get("dtype", 1))


def _item_bytes(dtype: Value) -> int:
    name = str(getattr(dtype, "value", getattr(dtype, "name", "")))
    digits = re.search(r"(\d+)$", name)
    if digits is None:
        return 8
    number = int(digits.group())
    return number if number <= 8 and len(name) <= 3 else number // 8


def is_number(value: Value) -> bool:
    """Whether a subscript picks one position."""
    return all(
        (isinstance(one, Const) and type(one.value) is int) or isinstance(one, Linear)
        for one in alternatives(value)
    )


def _last_name(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))
