"""Where an array is moved to, and whether it is there already."""

from __future__ import annotations

import ast
import re

from memlint.analysis import knowledge
from memlint.analysis.events import Called
from memlint.analysis.values import (
    Absent,
    Made,
    Sequence,
    Tensor,
    Unknown,
    Value,
    alternatives,
    devices_of,
    made_of,
)
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

_DEVICE_NAME = late_pattern(r"(^|_)(device|devices|dev|gpu|cuda|rank)(_?id)?\d*$", re.IGNORECASE)
_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Destination:
    """The device that something is moved to: what is known of it, and how it is written."""

    devices: frozenset[str]
    text: str

    @property
    def host(self) -> bool:
        """Whether it is the host for sure."""
        return self.devices == frozenset({"cpu"})


def destination_of(called: Called) -> Destination | None:
    """The device that a call moves to; ``None`` where it moves to none, or may not."""
    if not isinstance(called.node, ast.Call):
        return None
    if called.name == ".cuda":
        return Destination(frozenset({"cuda"}), "cuda")
    if called.name == ".cpu":
        return Destination(frozenset({"cpu"}), "cpu")
    position = None if called.name.startswith("torch.") else 0
    value = called.args.get("device", position)
    shown = _device_argument(called.node, position)
    if isinstance(value, Absent) or shown is None:
        return None
    text = ast.unparse(shown)
    if isinstance(called.node.func, ast.Attribute) and (
        text == f"{ast.unparse(called.node.func.value)}.device"
    ):
        return None
    devices = knowledge.device_types(value)
    if devices:
        return Destination(devices, text)
    name = shown.attr if isinstance(shown, ast.Attribute) else getattr(shown, "id", "")
    return Destination(frozenset(), text) if _DEVICE_NAME.search(name) else None


def _device_argument(node: ast.Call, position: int | None) -> ast.expr | None:
    for keyword in node.keywords:
        if keyword.arg == "device":
            return keyword.value
    if position is None or len(node.args) <= position:
        return None
    return node.args[position]


def lies_there(value: Value, to: Destination) -> bool:
    """Whether an array may well be where it is moved to: made there, moved there before, or
    computed from what was."""
    return any(_lies_there(one, to, _DEPTH) for one in alternatives(value))


def _lies_there(value: Value, to: Destination, depth: int) -> bool:
    known = devices_of(value)
    if known:
        if not to.devices:
            return "cpu" not in known
        return "cuda" in known if "cuda" in to.devices else bool(known & to.devices)
    made = made_of(value)
    if made is None or depth == 0:
        return False
    if _makes_there(made, to):
        return True
    if made.name in (".to", ".cuda") and _is_move(made):
        # Another way to name the device, unless it is the host that is asked for.
        return not to.host
    if made.name in (".cpu", ".numpy") or made.name.startswith("numpy."):
        return to.host
    return any(
        _lies_there(part, to, depth - 1)
        for one in made.inputs
        for part in _parts(one)
    )  # fmt: skip


def _parts(value: Value) -> tuple[Value, ...]:
    if isinstance(value, Sequence):
        return value.items if value.items is not None else (value.element,)
    return tuple(one for one in alternatives(value) if isinstance(one, (Tensor, Unknown)))


def _is_move(made: Made) -> bool:
    if made.name == ".cuda":
        return True
    shown = _device_argument(made.node, 0) if isinstance(made.node, ast.Call) else None
    name = getattr(shown, "attr", getattr(shown, "id", ""))
    return bool(_DEVICE_NAME.search(name))


def _makes_there(made: Made, to: Destination) -> bool:
    if made.name == ".cuda":
        return not to.host
    if made.name == ".to_device" or not isinstance(made.node, ast.Call):
        return False
    shown = _device_argument(made.node, 0 if made.name == ".to" else None)
    return shown is not None and ast.unparse(shown) == to.text
