"""Operations that leave an axis of size 1 in an array whose number of axes is not known.

Layouts of unknown rank do not keep such an axis, and moving it moves nothing in memory.
"""

from __future__ import annotations

from memlint.analysis import axes, knowledge
from memlint.analysis.knowledge import Args
from memlint.analysis.knowledge.model import SliceValue
from memlint.analysis.values import (
    Absent,
    Const,
    Made,
    Object,
    Sequence,
    Site,
    Tensor,
    Value,
    alternatives,
)

# Whatever is done is done over on an array of so many axes.
_TRIED = 6


def leaves_unit_axis(made: Made, value: Value) -> bool:
    """Whether ``value``, which ``made`` gave, may have an axis of size 1 that its layout does
    not tell of."""
    if isinstance(value, Tensor) and value.layout.axes is not None:
        return False
    match made.name:
        case "call":
            return _to_one_feature(made.inputs[0])
        case ".topk" | "torch.topk":
            return made.get("k", 1) == Const(1)
        case ".split" | "torch.split":
            return made.get("split_size_or_sections", 1) == Const(1)
        case ".chunk" | "torch.chunk":
            return not isinstance(made.get("chunks", 1), Const)
    return any(1 in (one.sizes or ()) for done in _done_over(made) for one in _tensors(done))


def _to_one_feature(module: Value) -> bool:
    if not isinstance(module, Object) or not module.cls.startswith("torch.nn.Linear"):
        return False
    named = module.fact("out_features")
    return (module.fact("1") if isinstance(named, Absent) else named) == Const(1)


def _done_over(made: Made) -> list[Value | None]:
    """The operation on an array of a known number of axes, none of them of size 1; a subscript
    key by key, since some of them may not be known."""
    array = Tensor("torch", axes.dense((None,) * _TRIED))
    rest = made.inputs[1:]
    site = Site(made.node, "unit axes")
    if made.name == "operator.getitem":
        return [knowledge.subscript(array, (_key(one),), made.node) for one in rest]
    keywords = dict(made.keywords)
    if made.name.startswith("."):
        args = Args(rest, keywords)
        return [knowledge.call_method(array, made.name[1:], args, made.node, site)]
    args = Args((array, *rest), keywords)
    return [knowledge.call_function(made.name, args, made.node, site)]


def _key(value: Value) -> Value | SliceValue:
    if isinstance(value, Sequence) and value.kind == "slice" and value.items is not None:
        return SliceValue(*value.items)
    return value


def _tensors(value: Value | None) -> list[Tensor]:
    if isinstance(value, Sequence):
        parts = value.items or (value.element,)
        return [one for part in parts for one in _tensors(part)]
    return [one for one in alternatives(value) if isinstance(one, Tensor)] if value else []
