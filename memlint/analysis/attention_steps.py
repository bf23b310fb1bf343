"""The operations that attention is written with: products, softmaxes, and what is in between."""

from __future__ import annotations

from memlint.analysis.chains import given, short
from memlint.analysis.einsum import operands_of
from memlint.analysis.values import Absent, Made, Object, Value, alternatives

PRODUCTS = frozenset({"matmul", "bmm", "mm", "einsum"})
SCORES = PRODUCTS | {"baddbmm"}
# What may happen to the weights, or to a query or key, without a change of the method.
CASTS = frozenset(
    {"to", "type", "type_as", "float", "half", "bfloat16", "double", "cuda", "contiguous"}
)
_SHAPES = frozenset(
    {"reshape", "view", "flatten", "unflatten", "squeeze", "unsqueeze", "transpose", "permute", "T",
     "mT", "mH", "t", "swapaxes", "swapdims", "movedim", "moveaxis", "expand", "view_as",
     "reshape_as"}
)  # fmt: skip
AFTER = CASTS | _SHAPES | {"dropout", "masked_fill", "nan_to_num", "imasked_fill"}
SCALES = frozenset({"multiply", "true_divide", "imultiply", "itrue_divide", "mul", "div", "divide"})
BIASES = frozenset({"add", "iadd", "subtract", "isubtract", "sub"})
BEFORE = CASTS | _SHAPES | SCALES | BIASES | {"masked_fill", "where"}
OF_QUERIES = (
    CASTS | _SHAPES | SCALES | BIASES
    | {"normalize", "clone", "chunk", "split", "unbind", "getitem", "relu", "dropout", "norm"}
)  # fmt: skip
_FACTORS = {
    "matmul": (("input",), ("other", "tensor2")),
    "mm": (("input",), ("mat2",)),
    "bmm": (("input",), ("mat2",)),
    "baddbmm": (("batch1",), ("batch2",)),
}


def factors(product: Made) -> tuple[Value, ...]:
    """The two arrays that are multiplied, however they are given; empty where not known."""
    name = short(product.name)
    if name == "einsum":
        return operands_of(product)
    first = 1 if name == "baddbmm" else 0
    keywords = dict(product.keywords)
    found = [
        next((keywords[key] for key in keys if key in keywords), product.get("", first + place))
        for place, keys in enumerate(_FACTORS.get(name, ()))
    ]
    return () if any(isinstance(one, Absent) for one in found) else tuple(found)


def is_softmax(made: Made) -> bool:
    """A function, method or layer."""
    return short(made.name) == "softmax" or softmax_layer(made) is not None


def is_product(made: Made) -> bool:
    """What may give scores."""
    return short(made.name) in SCORES


def softmax_layer(made: Made) -> Object | None:
    """The layer that is called, also where it is the first of a sequence with dropout."""
    if made.name != "call" or not made.inputs:
        return None
    for one in alternatives(made.inputs[0]):
        if not isinstance(one, Object):
            continue
        if one.cls == "torch.nn.Softmax":
            return one
        if one.cls == "torch.nn.Sequential":
            return _leading_softmax(one)
    return None


def _leading_softmax(layers: Object) -> Object | None:
    first, *rest = (value for _, value in layers.facts) if layers.facts else (None,)
    if not isinstance(first, Object) or first.cls != "torch.nn.Softmax":
        return None
    drops = all(isinstance(one, Object) and one.cls == "torch.nn.Dropout" for one in rest)
    return first if drops else None


def softmax_input(softmax: Made) -> Value:
    """What a softmax is given."""
    return next(iter(given(softmax)), softmax.get("input"))
