"""The memory format of images between convolutions: what keeps channels_last, what loses it.

What made a value is done over on an array of that format, of which nothing else is known.
"""

from __future__ import annotations

from memlint.analysis import axes, knowledge
from memlint.analysis.axes import Layout
from memlint.analysis.knowledge import Args
from memlint.analysis.knowledge.model import SliceValue
from memlint.analysis.values import (
    Absent,
    Made,
    Object,
    Sequence,
    Site,
    Tensor,
    Value,
    alternatives,
    made_of,
)
from memlint.late_dataclass import dataclass

_CONVOLUTIONS = {
    f"torch.nn.{lazy}Conv{transpose}{dims}d": dims
    for lazy in ("", "Lazy")
    for transpose in ("", "Transpose")
    for dims in (2, 3)
}
_FUNCTIONS = {
    f"torch.nn.functional.conv{transpose}{dims}d": dims
    for transpose in ("", "_transpose")
    for dims in (2, 3)
}
CONVOLUTION = "convolution"
"""The name of calls of library modules that convolve, in Called events."""
CONVOLVING = frozenset({CONVOLUTION, *_FUNCTIONS})
# Modules, and functions of ``torch.nn.functional``, that work in the format of their input.
_KEEPING = (
    "BatchNorm", "SyncBatchNorm", "GroupNorm", "ReLU", "LeakyReLU", "PReLU", "GELU", "SiLU", "ELU",
    "SELU", "CELU", "Mish", "Hardswish", "Hardsigmoid", "Hardtanh", "Sigmoid", "Tanh", "Softplus",
    "Dropout", "Identity", "MaxPool", "AvgPool", "AdaptiveAvgPool", "AdaptiveMaxPool", "Upsample",
    "relu", "leaky_relu", "gelu", "silu", "elu", "selu", "mish", "hardswish", "batch_norm",
    "group_norm", "dropout", "max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool",
    "interpolate",
)  # fmt: skip
_JOINS = frozenset({"torch.cat", "torch.concat", "torch.concatenate"})
# What makes an image row-major without computing anything new; a mean does so as well.
_LOSING = frozenset(
    {".contiguous", ".to", ".clone", ".view", ".reshape", ".unflatten", ".view_as", ".reshape_as"}
    | {"torch.reshape", "torch.unflatten", "torch.clone", "torch.add", "torch.sub", "torch.mul"}
    | {"operator.add", "operator.subtract", "operator.multiply", "operator.true_divide"}
    | {"einops.rearrange"}
)
_ASKING = frozenset({".permute", ".movedim", ".moveaxis", ".contiguous", ".to"})
# So many operations are looked at for one answer.
_MOST = 64


@dataclass(frozen=True, slots=True)
class Format:
    """The layout of a value between convolutions, and where it became row-major.

    ``asked`` tells that the program itself made it channels_last: by name, or by a permutation
    of NHWC data.
    """

    layout: Layout
    lost: Made | None = None
    asked: bool = False


def convolves(value: Value) -> int | None:
    """The dimensions of a library module's convolutions, where it has any of 2 or 3."""
    if not isinstance(value, Object):
        return None
    if value.cls in _CONVOLUTIONS:
        return _CONVOLUTIONS[value.cls]
    if value.cls == "torch.nn.Sequential":
        found = (convolves(one) for _, part in value.facts for one in alternatives(part))
        return next((dims for dims in found if dims is not None), None)
    return None


def format_of(value: Value) -> Format | None:
    """In which format a value comes from the convolution before; ``None`` where that is not
    known, or where there is none."""
    return _first({}, value)


# What is known of what each operation gave, within one question: values share their parts.
_Known = dict[int, Format | None]


def _first(known: _Known, value: Value) -> Format | None:
    for one in alternatives(value):
        if (found := _of(known, one)) is not None:
            return found
    return None


def _of(known: _Known, value: Value) -> Format | None:
    made = made_of(value)
    if made is None:
        return None
    if id(made) not in known:
        known[id(made)] = None
        known[id(made)] = _worked_out(known, value, made) if len(known) < _MOST else None
    return known[id(made)]


def _worked_out(known: _Known, value: Value, made: Made) -> Format | None:
    if isinstance(value, Tensor) and _is_channels_last(value.layout):
        return Format(value.layout, asked=made.name in _ASKING)
    dims = _dims_of(made)
    if dims is not None:
        return Format(axes.channels_last((None,) * (dims + 2)))
    if made.name == "call":
        return _through_module(known, made)
    if made.name.startswith("torch.nn.functional.") and _keeps(made.name):
        return _first(known, made.inputs[0]) if made.inputs else None
    if made.name in _JOINS:
        return _joined(known, made)
    return _done_over(known, made)


def _dims_of(made: Made) -> int | None:
    """The dimensions of the convolution that this is."""
    if made.name == "call" and made.inputs:
        return convolves(made.inputs[0])
    return _FUNCTIONS.get(made.name)


def _through_module(known: _Known, made: Made) -> Format | None:
    if len(made.inputs) != 2 or not isinstance(made.inputs[0], Object):
        return None
    module = made.inputs[0].cls
    if module.startswith("torch.nn.") and _keeps(module):
        return _first(known, made.inputs[1])
    return None


def _keeps(name: str) -> bool:
    return name.rpartition(".")[2].rstrip("123d").rstrip("_") in _KEEPING


def _joined(known: _Known, made: Made) -> Format | None:
    """``cat``: in the format that all its parts share, else row-major."""
    parts = made.inputs[0] if made.inputs else None
    if not isinstance(parts, Sequence) or not parts.items:
        return None
    formats = [_first(known, part) for part in parts.items]
    told = [one for one in formats if one is not None]
    if not told:
        return None
    for part, found in zip(parts.items, formats, strict=True):
        if found is None and not _row_major_image(part):
            return None
    first = told[0]
    if len(told) == len(formats):
        lost = next((one for one in told if one.lost is not None), None)
        return lost or first
    if any(one.lost is not None for one in told):
        return next(one for one in told if one.lost is not None)
    rank = first.layout.rank or 4
    return Format(axes.dense((None,) * rank), made, first.asked)


def _tensor_of(value: Value) -> Value:
    """A parameter of a module as the tensor that it is made of."""
    if isinstance(value, Object) and value.cls.endswith(".Parameter"):
        data = value.fact("data")
        return value.fact("0") if isinstance(data, Absent) else data
    return value


def _row_major_image(value: Value) -> bool:
    """Whether a value is surely a row-major array of four or five axes, made here."""
    value = _tensor_of(value)
    return (
        isinstance(value, Tensor)
        and not value.assumed
        and value.layout.rank in (4, 5)
        and axes.natural(value.layout)
        and sum(axis.size != 1 for axis in (value.layout.axes or ())[1:]) >= 2
    )


def _done_over(known: _Known, made: Made) -> Format | None:
    """The operation applied to its inputs in their formats."""
    inputs: list[Value] = []
    source: Format | None = None
    for given in made.inputs:
        found = _first(known, given) if not isinstance(given, Sequence) else None
        if found is None:
            inputs.append(_tensor_of(given))
            continue
        if source is None or (source.lost is None and found.lost is not None):
            source = found
        inputs.append(Tensor("torch", found.layout))
    if source is None or any(isinstance(one, SliceValue) for one in inputs):
        return None
    layout = _apply(made, inputs)
    if layout is None or layout.opaque:
        return None
    if source.lost is not None:
        return Format(layout, source.lost, source.asked)
    dense_image = layout.rank in (4, 5) and axes.contiguous(layout) is True
    if dense_image and made.name not in _LOSING:
        return None
    return Format(layout, made if dense_image else None, source.asked)


def _apply(made: Made, inputs: list[Value]) -> Layout | None:
    site = Site(made.node, "format")
    keywords = dict(made.keywords)
    result: Value | None
    if made.name.startswith("."):
        receiver = inputs[0]
        if not isinstance(receiver, Tensor):
            return None
        args = Args(tuple(inputs[1:]), keywords)
        result = knowledge.call_method(receiver, made.name[1:], args, made.node, site)
    elif made.name.startswith("operator."):
        name = f"torch.{made.name[9:]}"
        result = knowledge.call_function(name, Args(tuple(inputs), {}), made.node, site)
    else:
        result = knowledge.call_function(made.name, Args(tuple(inputs), keywords), made.node, site)
    return result.layout if isinstance(result, Tensor) else None


def _is_channels_last(layout: Layout) -> bool:
    return axes.channels_last_format(layout) is True and axes.contiguous(layout) is not True
