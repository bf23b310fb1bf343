"""What calls of torch, numpy, cupy and einops do to arrays: tables, and how they are asked.

Each row of the tables names the operation, what it does, and the calls that prove it; the
tests run those calls on real arrays and compare.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cache
from itertools import product
from math import prod

from memlint.analysis.axes import OPAQUE, dense_any_rank
from memlint.analysis.knowledge.kinds import ITEMSIZE, device_types, dtype_of
from memlint.analysis.knowledge.model import Args, Call, Row, SliceValue, Table
from memlint.analysis.knowledge.names import canonical
from memlint.analysis.knowledge.numbers import shape_of, value_of
from memlint.analysis.knowledge.subscripts import attribute, subscript
from memlint.analysis.values import (
    Alternatives,
    Sequence,
    Site,
    Tensor,
    Unknown,
    Value,
    alternatives,
    join,
)

__all__ = [
    "ITEMSIZE",
    "Args",
    "SliceValue",
    "attribute",
    "call_function",
    "call_method",
    "canonical",
    "dense_any_rank",
    "device_types",
    "dtype_of",
    "functions",
    "methods",
    "shape_of",
    "subscript",
    "value_of",
    "view_method",
]

_MAX_COMBINATIONS = 12

_DISTINCTIVE = frozenset(
    {"transpose", "permute", "t", "contiguous", "movedim", "moveaxis", "swapaxes", "swapdims"}
    | {"expand", "expand_as", "narrow", "unsqueeze", "squeeze", "unflatten", "view_as"}
    | {"reshape", "ravel", "diagonal", "unfold", "as_strided", "chunk", "reshape_as"}
    | {"unbind", "tensor_split", "moveaxis"}
)

# Functions whose first argument is an array, not a list of arrays.
_OF_ARRAYS = frozenset(
    {"transpose", "permute", "t", "movedim", "moveaxis", "swapaxes", "swapdims", "narrow"}
    | {"unsqueeze", "squeeze", "chunk", "split", "unbind", "tensor_split", "reshape", "select"}
    | {"diagonal", "polar", "complex", "rearrange", "ascontiguousarray", "real", "imag"}
    | {"flip", "flipud", "fliplr", "rot90", "view_as_complex", "view_as_real"}
)

_OPERATORS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "pow": "power",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "neg": "negative",
}
"""Operators by torch's names, as numpy calls them."""


def call_function(name: str, args: Args, node: ast.AST, site: Site) -> Value | None:
    """The result of calling the library function ``name``; ``None`` where it is not known."""
    lib, _, short = name.partition(".")
    if lib in ("numpy", "cupy"):
        name = f"{lib}.{_OPERATORS.get(short, short)}"
    row = functions().get(name)
    if row is None:
        return None
    return _apply(
        row, Call(name.rpartition(".")[2], "" if lib == "einops" else lib, args, node, site)
    )


def call_method(receiver: Tensor, name: str, args: Args, node: ast.AST, site: Site) -> Value | None:
    """The result of the method ``name`` of an array; ``None`` where it is not known."""
    row = methods(receiver.lib).get(name)
    if row is None:
        return None
    given = Args((receiver, *args.positional), args.keywords, args.open)
    return _apply(row, Call(name, receiver.lib, given, node, site))


def view_method(name: str, lib: str) -> bool:
    """Whether ``name`` is a method that only arrays have, so that its receiver is one."""
    return name in _DISTINCTIVE and name in methods(lib)


def takes_array(name: str) -> bool:
    """Whether a library function takes an array first, so that whatever it is given is one."""
    return name.rpartition(".")[2] in _OF_ARRAYS and name in functions()


def _apply(row: Row, call: Call) -> Value | None:
    if call.args.open:
        return _unsure(row, call)
    if not any(_varies(value) for value in call.args.positional):
        return row.apply(call)
    options = [_options(value) for value in call.args.positional]
    if prod(len(choices) for choices in options) > _MAX_COMBINATIONS:
        return None
    results: list[Value] = []
    for chosen in product(*options):
        result = row.apply(replace(call, args=replace(call.args, positional=chosen)))
        if result is None:
            return None
        results.append(result)
    return join(results)


def _varies(value: Value) -> bool:
    """Whether an argument, or an item of it, may be one of several values."""
    if isinstance(value, Sequence):
        return value.items is not None and any(isinstance(v, Alternatives) for v in value.items)
    return isinstance(value, Alternatives)


def _options(value: Value) -> tuple[Value, ...]:
    """The values that an argument may be, its items chosen one by one."""
    if isinstance(value, Sequence) and value.items is not None and _varies(value):
        choices = [alternatives(item) for item in value.items]
        if prod(len(one) for one in choices) > _MAX_COMBINATIONS:
            return (replace(value, items=None, element=Unknown()),)
        return tuple(replace(value, items=items) for items in product(*choices))
    return alternatives(value)


def _unsure(row: Row, call: Call) -> Value | None:
    """The result where arguments are not seen: only that it is an array, if it is one."""
    seen = Args(call.args.positional[:1], {}, False)
    result = row.apply(Call(call.name, call.lib, seen, call.node, call.site))
    if not isinstance(result, Tensor):
        return None
    made_dense = call.name in _DENSE_MAKERS
    return Tensor(result.lib, dense_any_rank() if made_dense else OPAQUE, site=None)


_DENSE_MAKERS = frozenset({"zeros", "ones", "rand", "randn", "full", "randint", "arange"})


@cache
def functions() -> Table:
    """All functions in the tables, by full name."""
    from memlint.analysis.knowledge import (
        einops,
        numpy_rows,
        torch_compute,
        torch_create,
        torch_views,
    )

    shared = {**torch_views.SHARED, **torch_compute.SHARED}
    table: Table = {f"torch.{name}": row for name, row in shared.items()}
    table |= torch_compute.FUNCTIONS
    table |= torch_create.FUNCTIONS
    for lib in ("numpy", "cupy"):
        table |= {f"{lib}.{name}": row for name, row in numpy_rows.FUNCTIONS.items()}
    table |= numpy_rows.UNPROVED
    table |= einops.FUNCTIONS
    return table


@cache
def methods(lib: str) -> Table:
    """All methods of arrays of a library; of either, torch first, where it is not known."""
    from memlint.analysis.knowledge import (
        numpy_rows,
        queries,
        torch_compute,
        torch_create,
        torch_views,
    )

    torch = {**torch_views.SHARED, **torch_compute.SHARED, **torch_compute.METHODS}
    torch |= torch_create.METHODS
    torch |= torch_views.METHODS
    torch |= queries.METHODS
    array = {**numpy_rows.METHODS}
    if lib == "cupy":
        array |= queries.CUPY_METHODS
    if lib in ("numpy", "cupy"):
        return array
    return torch if lib == "torch" else {**array, **torch}
