"""What a model is made of: its parts, and the convolutions among them."""

from __future__ import annotations

from dataclasses import field

from memlint.analysis.events import Convolution
from memlint.analysis.interpreter.machine import UNKNOWN, text_of
from memlint.analysis.interpreter.objects import Objects
from memlint.analysis.interpreter.records import ModelRecord
from memlint.analysis.values import (
    Absent,
    Const,
    Instance,
    Mapping,
    Object,
    Sequence,
    Site,
    Unknown,
    Value,
    alternatives,
    join,
)
from memlint.late_dataclass import dataclass

MODULE = "torch.nn.Module"
NETWORK = "memlint.network"
LAYER = "<layer>"
CONVOLUTIONS = {
    f"torch.nn.{lazy}Conv{transpose}{dims}d": (dims, bool(transpose))
    for lazy in ("", "Lazy")
    for transpose in ("", "Transpose")
    for dims in (1, 2, 3)
}
CONVOLUTION_PARAMETERS = (
    "in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups",
)  # fmt: skip
TRANSPOSED_PARAMETERS = (
    "in_channels", "out_channels", "kernel_size", "stride", "padding", "output_padding", "groups",
)  # fmt: skip
LIBRARIES = ("torch.nn.", "torchvision.models.", "timm.", "segmentation_models_pytorch.")
MOST_PARTS = 600
# Where parts are kept that are put into a module by other means than its attributes.
HELD = "<held>"


@dataclass(slots=True)
class Parts:
    """The convolutions of a model, the sites of all its parts, whether all could be seen."""

    convolutions: list[Convolution] = field(default_factory=list)
    sites: list[tuple[Site, Value]] = field(default_factory=list)
    complete: bool = True


class Layers(Objects):
    """Modules and their parts."""

    def is_module(self, value: Value) -> bool:
        if isinstance(value, Instance):
            return any(
                base == MODULE or base.endswith(("Module", "Model")) or base.startswith("torch.nn.")
                for base in self.library_bases(value.cls)
            )
        return (
            isinstance(value, Object)
            and value.cls.startswith(LIBRARIES)
            and value.site not in self.loaders
        )

    def model(self, value: Value) -> ModelRecord:
        assert isinstance(value, (Instance, Object))
        record = self.models.get(value.site)
        if record is None:
            record = self.models[value.site] = ModelRecord(value)
            target = self.targets.get(id(value.site.node))
            record.text = text_of(target) if target is not None else ""
        return record

    def hold(self, base: Object | Instance, value: Value) -> None:
        """``base`` gets one more part, or several."""
        held = self.heap.of(base.site)
        held[HELD] = join((held.get(HELD, value), value))

    def store_on_object(self, base: Object | Instance, name: str, value: Value) -> None:
        if self.is_module(base) and (isinstance(base, Object) or not name):
            self.hold(base, value)

    def parts_of(self, value: Value) -> Parts:
        """Everything that a model holds, itself included."""
        parts = Parts()
        seen: set[Value] = set()
        stack: list[Value] = [value]
        while stack and len(seen) < MOST_PARTS:
            for part in alternatives(stack.pop()):
                if part in seen:
                    continue
                seen.add(part)
                if isinstance(part, (Instance, Object)):
                    parts.sites.append((part.site, part))
                convolution = convolution_of(part)
                if convolution is not None:
                    if convolution not in parts.convolutions:
                        parts.convolutions.append(convolution)
                    continue
                inner, known = self._inside(part)
                parts.complete = parts.complete and known
                # Reversed, so that parts come off the stack in the order they are made in.
                stack.extend(reversed(inner))
        return parts

    def _inside(self, value: Value) -> tuple[list[Value], bool]:
        """The parts of a module or container, and whether they are all known."""
        match value:
            case Instance():
                return self._inside_instance(value)
            case Object(cls=cls):
                if cls == NETWORK:
                    return [Object("torch.nn.Conv2d", value.site)], True
                if cls.startswith(LIBRARIES):
                    inside = [part for _, part in value.facts]
                    inside += self.heap.of(value.site).values()
                    return inside, cls.startswith("torch.nn.") or bool(value.facts)
            case Sequence(items=items, element=element):
                return list(items) if items is not None else [element], True
            case Mapping(items=pairs):
                return [part for _, part in pairs], True
            case Unknown(origin="call"):
                return [], False
        return [], True

    def _inside_instance(self, value: Instance) -> tuple[list[Value], bool]:
        attributes = self.heap.of(value.site)
        bases = self.library_bases(value.cls)
        inside = list(attributes.values())
        if LAYER not in attributes:
            inside += [
                Object(base, value.site, (("open", UNKNOWN),))
                for base in bases
                if base in CONVOLUTIONS
            ]
        known = all(base.startswith(("torch.nn.", "builtins.", "lightning.")) for base in bases)
        return inside, known


def convolution_of(value: Value) -> Convolution | None:
    """A layer as a convolution, if it is one."""
    if not isinstance(value, Object) or value.cls not in CONVOLUTIONS:
        return None
    dims, transposed = CONVOLUTIONS[value.cls]
    return Convolution(
        value.site.node,
        dims,
        _number(value, "in_channels", None),
        _number(value, "out_channels", None),
        _number(value, "groups", 1),
        _number(value, "kernel_size", None),
        _number(value, "stride", 1),
        transposed,
    )


def _number(layer: Object, name: str, default: int | None) -> int | None:
    """A parameter of a convolution, where it is a number (or a tuple of equal ones)."""
    if not layer.facts:
        return None
    names = list(TRANSPOSED_PARAMETERS if "Transpose" in layer.cls else CONVOLUTION_PARAMETERS)
    if "Lazy" in layer.cls:
        names = names[1:]
    given = layer.fact(name)
    if isinstance(given, Absent) and name in names:
        given = layer.fact(str(names.index(name)))
    if isinstance(given, Absent):
        return None if any(key in ("open", "*") for key, _ in layer.facts) else default
    if isinstance(given, Sequence) and given.items:
        given = given.items[0] if len(set(given.items)) == 1 else UNKNOWN
    if isinstance(given, Const) and type(given.value) is int:
        return given.value
    return None
