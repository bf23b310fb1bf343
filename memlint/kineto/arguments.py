"""The arguments of operators as a profiler writes them down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memlint.layout import Strided
from memlint.tracer.operands import ITEMSIZES

DTYPES = {
    "float": "float32", "double": "float64", "c10::Half": "float16", "c10::BFloat16": "bfloat16",
    "int": "int32", "long": "int64", "long int": "int64", "short": "int16", "short int": "int16",
    "unsigned char": "uint8", "signed char": "int8", "char": "int8", "bool": "bool",
}  # fmt: skip
"""The types of elements by their names in C++, as ``Input type`` has them."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor among arguments: ``array.strides`` is empty where the trace has none."""

    array: Strided
    dtype: str


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of an operator: tensors, and the text of everything else, by position.

    ``shaped`` tells that the trace has their shapes, ``clear`` that the tensors among them are
    all there: of those of unknown types, and of those in lists, too little is told."""

    tensors: tuple[Tensor | None, ...] = ()
    values: tuple[str, ...] = ()
    shaped: bool = False
    clear: bool = False

    def value(self, index: int) -> str:
        """The text of an argument; empty where there is none."""
        return self.values[index] if index < len(self.values) else ""

    def sizes(self, index: int) -> tuple[int, ...] | None:
        """An argument that is a list of whole numbers."""
        text = self.value(index).strip()
        if not (text.startswith("[") and text.endswith("]")):
            return None
        parts = [one.strip() for one in text[1:-1].split(",") if one.strip()]
        try:
            return tuple(int(one) for one in parts)
        except ValueError:
            return None


NOTHING = Given()


def given(args: Mapping[str, Any]) -> Given:
    """The arguments of one event."""
    dims, types = args.get("Input Dims"), args.get("Input type", args.get("Input Type"))
    strides, values = args.get("Input Strides"), args.get("Concrete Inputs")
    if not isinstance(dims, list) or not isinstance(types, list):
        return NOTHING
    tensors = []
    for index, kind in enumerate(types):
        shape = dims[index] if index < len(dims) else None
        steps = strides[index] if isinstance(strides, list) and index < len(strides) else None
        tensors.append(_tensor(kind, shape, steps))
    texts = tuple(str(one) for one in values) if isinstance(values, list) else ()
    clear = all(
        tensor is not None or kind in _NO_TENSORS or (kind in _LISTS and index)
        for index, (kind, tensor) in enumerate(zip(types, tensors, strict=True))
    )
    return Given(tuple(tensors), texts, True, clear)


_NO_TENSORS = ("", "Scalar", "ScalarList", "None")
_LISTS = ("TensorList", "GenericList")


def _tensor(kind: Any, shape: Any, steps: Any) -> Tensor | None:
    dtype = DTYPES.get(kind) if isinstance(kind, str) else None
    if dtype is None or not _is_whole(shape):
        return None
    strides = tuple(steps) if _is_whole(steps) and len(steps) == len(shape) else ()
    return Tensor(Strided(tuple(shape), strides, ITEMSIZES[dtype]), dtype)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Sequence) and all(type(one) is int for one in value)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a dense array of a shape."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
