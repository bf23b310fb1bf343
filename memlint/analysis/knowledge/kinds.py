"""Dtypes and devices as values."""

from __future__ import annotations

from memlint.analysis.values import (
    Alternatives,
    Const,
    Object,
    Ref,
    Sequence,
    Tensor,
    Unknown,
    Value,
)
from memlint.late_pattern import late_pattern

_SAME = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "bool_": "bool",
    "single": "float32",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "intc": "int32",
    "int_": "int64",
    "float_": "float64",
}
_NAMES = frozenset(
    {"bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"}
    | {"float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128"}
    | {"float8_e4m3fn", "float8_e5m2"}
)
_PYTHON = {"float": "float64", "int": "int64", "bool": "bool", "complex": "complex128"}
_SHORT = {
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "i1": "int8",
    "i2": "int16",
    "i4": "int32",
    "i8": "int64",
    "u1": "uint8",
    "u2": "uint16",
    "u4": "uint32",
    "u8": "uint64",
    "c8": "complex64",
    "c16": "complex128",
    "f": "float32",
    "d": "float64",
}
_TENSOR_CLASSES = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ByteTensor": "uint8",
    "BoolTensor": "bool",
}
ITEMSIZE = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "uint16": 2,
    "int16": 2,
    "float16": 2,
    "bfloat16": 2,
    "uint32": 4,
    "int32": 4,
    "float32": 4,
    "uint64": 8,
    "int64": 8,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
}
"""Bytes of one element, by dtype."""

_DEVICE = late_pattern(r"^(cuda|cpu|mps|xpu|meta|hpu|npu|tpu|xla|privateuseone)(:|$)")


def dtype_of(value: Value) -> str | None:
    """The dtype that a value names, without its library ("float32"), or ``None``."""
    if isinstance(value, Object) and value.cls == "numpy.dtype":
        return dtype_of(value.fact("0"))
    if isinstance(value, Ref):
        module, _, name = value.name.rpartition(".")
        if module == "builtins":
            return _PYTHON.get(name)
        if name in _TENSOR_CLASSES and module in ("torch", "torch.cuda"):
            return _TENSOR_CLASSES[name]
        if module.split(".")[0] in ("torch", "numpy", "cupy", "numba", "jax"):
            if module != "torch" and name in ("double", "single", "half", "long"):
                return {"long": None}.get(name, _SAME[name])
            return name if name in _NAMES else _SAME.get(name)
        return None
    if isinstance(value, Const) and isinstance(value.value, str):
        name = value.value.lstrip("<=|").removeprefix("torch.")
        if name in _PYTHON:
            return _PYTHON[name]
        return name if name in _NAMES else _SHORT.get(name)
    return None


def device_types(value: Value) -> frozenset[str]:
    """The kinds of device that a value may name ("cuda", "cpu"); empty where not known."""
    match value:
        case Const(str() as text):
            found = _DEVICE.match(text)
            return frozenset({found.group(1)}) if found else frozenset()
        case Const(int() as index) if type(index) is int:
            return frozenset({"cuda"})
        case Unknown(origin="int"):
            # The number of a device is that of an accelerator.
            return frozenset({"cuda"})
        case Object(cls="torch.device" | "torch.cuda.device"):
            return device_types(
                value.fact("type" if value.facts and value.facts[0][0] == "type" else "0")
            )
        case Ref(name) if name.startswith("cupy."):
            return frozenset({"cuda"})
        case Tensor():
            return value.devices
        case Alternatives(values):
            return frozenset().union(*(device_types(one) for one in values))
        case Sequence(items=(one,)):
            return device_types(one)
    return frozenset()
