"""Where values live: what is known of their devices, and what follows from how they were made."""

from __future__ import annotations

import ast
import re
from collections.abc import Container

from memlint.analysis import knowledge
from memlint.analysis.values import (
    Alternatives,
    Bound,
    Class,
    Const,
    Function,
    Instance,
    Made,
    Mapping,
    Object,
    Sequence,
    Site,
    Tensor,
    Unknown,
    Value,
    alternatives,
    devices_of,
)
from memlint.late_pattern import late_pattern

HOST = frozenset({"cpu", "meta"})
# Operations whose result lies in host memory, or is no tensor.
TO_HOST = frozenset(
    {".cpu", ".numpy", ".item", ".tolist", ".get_device", ".size", ".dim", ".numel"}
)
# Built-in functions that hand on what they are given, or compute with it.
_HANDING_ON = frozenset(
    {"builtins.sum", "builtins.max", "builtins.min", "builtins.list", "builtins.tuple",
     "builtins.sorted", "builtins.reversed", "builtins.zip", "builtins.enumerate", "builtins.next",
     "builtins.getattr", "builtins.iter", "builtins.dict", "builtins.abs"}
)  # fmt: skip
_DEVICE_NAME = late_pattern(r"(^|_)(device|dev|gpu|cuda)(_?id)?$", re.IGNORECASE)
_DEPTH = 24
_QUERIES = frozenset(
    {"size", "dim", "ndimension", "numel", "nelement", "stride", "data_ptr", "is_contiguous",
     "element_size", "storage_offset", "get_device", "item", "tolist", "numpy", "type"}
)  # fmt: skip


def moves_off_host(value: Value, node: ast.AST | None) -> bool:
    """Whether ``value``, written as ``node``, names a device other than the host's memory.

    A device that is not known counts where it is called so (``device``, ``x.device``).
    """
    known = knowledge.device_types(value) | devices_of(value)
    if known and (not known <= HOST or names_host(value)):
        return not known <= HOST
    for one in alternatives(value):
        if isinstance(one, Bound) and one.name == "device":
            return not devices_of(one) or not devices_of(one) <= HOST
    if all(isinstance(one, Const) for one in alternatives(value)):
        return False
    return _DEVICE_NAME.search(_last_name(node)) is not None


def names_host(value: Value) -> bool:
    """Whether ``value`` names the host's memory, whatever path led here."""
    for one in alternatives(value):
        if isinstance(one, Object) and one.cls == "torch.device":
            if not one.facts or not names_host(one.facts[0][1]):
                return False
        elif not isinstance(one, Const) or knowledge.device_types(one) != {"cpu"}:
            return False
    return True


def _last_name(node: ast.AST | None) -> str:
    if isinstance(node, ast.Subscript):
        key = node.slice
        return str(key.value) if isinstance(key, ast.Constant) else ""
    return getattr(node, "id", getattr(node, "attr", ""))


def on_cuda(value: Value, placed: Container[Site] = frozenset()) -> bool:
    """Whether ``value`` lies on a CUDA device, or may by a choice that falls on CUDA.

    What a call makes of CUDA tensors, or a module that lies there (one of ``placed``) of
    anything, lies there too.
    """
    return _Search(placed).at(value, 0)


class _Search:
    """Goes back through what made a value, to where a device is known."""

    def __init__(self, placed: Container[Site]) -> None:
        self._placed = placed
        self._seen: dict[int, bool] = {}

    def at(self, value: Value, depth: int) -> bool:
        match value:
            case Unknown(devices=devices, made=made) | Tensor(devices=devices, made=made):
                if isinstance(value, Tensor) and value.lib == "numpy":
                    return False
                if devices:
                    return "cuda" in devices
                return made is not None and self._made(made, depth)
            case Bound(receiver=receiver):
                return not isinstance(receiver, Class) and self.at(receiver, depth)
            case Alternatives(values):
                return any(self.at(one, depth) for one in values)
            case Sequence(items=items, element=element):
                return any(self.at(one, depth) for one in (items or (element,))[:8])
            case Mapping(items=pairs):
                return any(self.at(one, depth) for _, one in pairs[:16])
            case Instance(site=site) | Object(site=site):
                return site in self._placed
            case Function(bound=receiver) if receiver is not None:
                return self.at(receiver, depth)
        return False

    def _made(self, made: Made, depth: int) -> bool:
        key = id(made)
        if key not in self._seen:
            self._seen[key] = False
            self._seen[key] = depth < _DEPTH and self._found(made, depth + 1)
        return self._seen[key]

    def _found(self, made: Made, depth: int) -> bool:
        name = made.name
        if name in TO_HOST or name.startswith("numpy."):
            return False
        if name.startswith("builtins.") and name not in _HANDING_ON:
            return False
        if name in (".to", ".type") and made.inputs:
            return self.at(made.inputs[0], depth)
        for key, given in made.keywords:
            if key == "device":
                return self.at(given, depth)
        every = (*made.inputs, *(given for _, given in made.keywords))
        return any(self.at(one, depth) for one in every)


def is_tensor(value: Value, depth: int = 0) -> bool:
    """Whether ``value`` is known to be a tensor of torch, by how it was made."""
    if depth > _DEPTH:
        return False
    match value:
        case Tensor(lib=lib):
            return lib in ("torch", "")
        case Unknown(made=made) if made is not None:
            return _makes_tensor(made, depth + 1)
        case Alternatives(values):
            return any(is_tensor(one, depth + 1) for one in values)
        case Bound(receiver=receiver, name="data" | "grad" | "T" | "mT"):
            return is_tensor(receiver, depth + 1)
    return False


def _makes_tensor(made: Made, depth: int) -> bool:
    name = made.name
    if name.startswith("torch.nn.functional.") or name in knowledge.functions():
        return name.startswith("torch.")
    if name.startswith("operator."):
        first = made.inputs[:1] if name == "operator.getitem" else made.inputs
        return any(is_tensor(one, depth) for one in first)
    if name == "call" and made.inputs:
        return is_layer(made.inputs[0])
    if name.startswith(".") and made.inputs:
        method = name[1:]
        known = method in knowledge.methods("torch") or method in ("detach", "clone", "cuda", "to")
        return known and method not in _QUERIES and is_tensor(made.inputs[0], depth)
    return False


def is_layer(callee: Value) -> bool:
    """Whether calling ``callee`` runs a layer or a loss of torch, which gives a tensor."""
    return any(
        isinstance(one, Object) and one.cls.startswith("torch.nn.") for one in alternatives(callee)
    )
