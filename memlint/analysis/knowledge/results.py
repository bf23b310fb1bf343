"""Results of calls: views of an argument's storage, and arrays of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from memlint.analysis.axes import OPAQUE, Layout, contiguous
from memlint.analysis.knowledge.model import Call
from memlint.analysis.values import Alternatives, Sequence, Tensor, Value

_OPERATORS = frozenset(
    {"add", "sub", "mul", "div", "true_divide", "floor_divide", "remainder", "pow", "matmul"}
    | {"subtract", "multiply", "divide", "power", "neg", "negative", "bitwise_and", "bitwise_or"}
    | {"eq", "ne", "lt", "le", "gt", "ge"}
)


def view(call: Call, base: Tensor, layout: Layout) -> Tensor:
    """The same storage seen through another layout."""
    return _with_layout(base, layout, _birth(call, (base,), layout))


def _with_layout(base: Tensor, layout: Layout, born: ast.AST | None) -> Tensor:
    # One by one: `replace` takes three times as long, and this is done for every view.
    return Tensor(
        base.lib, layout, base.dtype, base.devices, base.pinned, base.assumed, born, base.site,
        base.loaders, base.made, base.graphs,
    )  # fmt: skip


def fresh(
    call: Call,
    layout: Layout,
    *,
    of: Iterable[Tensor] = (),
    dtype: str | None = None,
    devices: frozenset[str] | None = None,
    pinned: bool | None = None,
) -> Tensor:
    """An array of its own, computed from ``of``."""
    sources = tuple(of)
    assumed = any(source.assumed for source in sources) and layout != OPAQUE
    return Tensor(
        _library(call, sources),
        layout,
        dtype,
        _shared_devices(sources) if devices is None else devices,
        pinned,
        assumed,
        _birth(call, sources, layout),
        call.site,
    )


def perhaps_view(call: Call, base: Tensor, layout: Layout, copies: bool | None) -> Tensor:
    """A view of ``base`` or a copy of it; whose storage it is stays open where not known."""
    if copies is False:
        return view(call, base, layout)
    made = fresh(call, layout, of=(base,), dtype=base.dtype)
    made = replace(made, loaders=base.loaders)
    return made if copies else replace(made, site=None)


def _library(call: Call, sources: tuple[Tensor, ...]) -> str:
    """Whose array the result is: an operator tells nothing of it, a function does."""
    named = next((source.lib for source in sources if source.lib), "")
    return named if sources and call.name in _OPERATORS else call.lib or named


def _birth(call: Call, sources: tuple[Tensor, ...], layout: Layout) -> ast.AST | None:
    if contiguous(layout) is True:
        return None
    for source in sources:
        if source.born is not None and contiguous(source.layout) is not True:
            return source.born
    return call.node


def _shared_devices(sources: tuple[Tensor, ...]) -> frozenset[str]:
    """Where the result of an operation on several arrays lives: with those of them that are
    not mere numbers."""
    for source in sources:
        if source.layout.rank != 0 and source.devices:
            return source.devices
    return next((source.devices for source in sources if source.devices), frozenset())


def tensors_in(values: Iterable[Value]) -> list[Tensor]:
    """The arrays among values, those in sequences included."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, Sequence):
            found += tensors_in(value.items or (value.element,))
        elif isinstance(value, Alternatives):
            found += tensors_in(value.values)
    return found
