"""Parts of larger arrays: views that keep all of the storage alive, and take it along."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.values import (
    Absent,
    Alternatives,
    Const,
    Linear,
    Made,
    Mapping,
    Sequence,
    Tensor,
    Unknown,
    Value,
    alternatives,
    devices_of,
    made_of,
    must_be,
    plain,
)
from memlint.late_dataclass import dataclass

DEPTH = 10
# Views that take one of several parts.
SPLITS = frozenset(
    f"{prefix}{name}"
    for name in ("chunk", "split", "tensor_split", "unbind", "narrow", "select", "split_with_sizes",
                 "hsplit", "vsplit")
    for prefix in (".", "torch.")
)  # fmt: skip
# Of what these give, a number picks one of several arrays.
TUPLES = frozenset(
    f"numpy.{name}"
    for name in ("where", "nonzero", "unique", "meshgrid", "histogram", "histogram2d", "gradient",
                 "split", "array_split", "hsplit", "vsplit", "unravel_index", "polyfit", "ogrid",
                 "linalg.lstsq", "linalg.svd", "linalg.eig", "linalg.eigh", "linalg.qr",
                 "linalg.slogdet", "broadcast_arrays", "tril_indices", "triu_indices")
)  # fmt: skip
NARROWING = frozenset({".narrow", "torch.narrow"})
# Of these methods, tensors alone have one.
TENSOR_METHODS = frozenset(
    {".chunk", ".unbind", ".narrow", ".detach", ".cpu", ".cuda", ".requires_grad_", ".unsqueeze",
     ".contiguous", ".permute", ".expand", ".to", ".float", ".half", ".bfloat16", ".grad"}
)  # fmt: skip
# What gives one tensor, whatever it is given.
TENSOR_FUNCTIONS = frozenset(
    f"torch.{name}"
    for name in ("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "matmul",
                 "mm", "bmm", "einsum", "relu", "sigmoid", "tanh", "softmax", "log_softmax",
                 "from_numpy", "tensor", "as_tensor", "cdist", "addmm", "baddbmm", "argsort",
                 "nn.functional.normalize", "nn.functional.softmax", "nn.functional.log_softmax",
                 "nn.functional.relu", "nn.functional.gelu", "nn.functional.interpolate",
                 "nn.functional.one_hot", "nn.functional.linear", "nn.functional.embedding",
                 "nn.functional.conv1d", "nn.functional.conv2d", "nn.functional.conv3d",
                 "fft.fft", "fft.rfft", "fft.fft2", "fft.rfft2", "nn.Parameter",
                 "nn.parameter.Parameter")
)  # fmt: skip
# What gives a view of all, or the same tensor.
SAME = frozenset(
    {".detach", ".contiguous", ".view", ".reshape", ".squeeze", ".unsqueeze", ".t", ".T", ".mT",
     ".transpose", ".permute", ".requires_grad_", ".data", ".detach_", ".view_as", ".flatten",
     ".unflatten", "torch.squeeze", "torch.unsqueeze", "torch.transpose", "torch.permute",
     "torch.reshape", "torch.flatten", "torch.Tensor.detach"}
)  # fmt: skip
# Those of a tensor in host memory give the tensor itself.
ON_HOST = frozenset({".cpu"})
# So few elements are not worth a word.
SMALL = 16_384


@dataclass(frozen=True, slots=True)
class Part:
    """A view of a part of ``base``: ``node`` is the expression that gives it, ``certain`` tells
    that nothing about it is assumed, ``base_kept`` that the base is no larger than need be."""

    node: ast.AST
    base: Value
    origin: ast.AST | None
    certain: bool
    base_kept: bool = False

    def shares_with(self, other: Part) -> bool:
        """Whether another part, or this one, is of the same base."""
        return self.origin is not None and self.origin is other.origin


def parts_of(payload: Value) -> Iterator[Part]:
    """The parts of tensors in what is saved; a base that is saved as well is told as a part of
    itself (``base_kept``)."""
    for leaf in _opened(payload):
        for one in alternatives(leaf):
            found = part_of(one)
            if found is not None:
                yield found
            elif (made := made_of(one)) is not None:
                yield Part(made.node, one, _origin(one), certain=False, base_kept=True)


def _opened(value: Value, depth: int = 0) -> Iterator[Value]:
    if depth > 4:
        return
    match value:
        case Sequence(items=items):
            # Of a list of rows that is not known to its end, all rows may be there.
            for one in items or ():
                yield from _opened(one, depth + 1)
        case Mapping(items=items):
            for _, one in items:
                yield from _opened(one, depth + 1)
        case Alternatives(values):
            for one in values:
                yield from _opened(one, depth + 1)
        case _:
            yield plain(value)


def part_of(value: Value) -> Part | None:
    """The part of a tensor of torch that a value is, if it is known to be one."""
    made = made_of(value)
    node = made.node if made is not None else None
    narrowed = False
    tensor = isinstance(value, Tensor) and value.lib == "torch"
    for _ in range(DEPTH):
        if made is None or not made.inputs:
            return None
        base = made.inputs[0]
        if made.name == "operator.getitem":
            verdict = narrows(made)
            if verdict is None:
                return None
            narrowed = narrowed or verdict
        elif made.name in SPLITS or (made.name == "builtins.next" and _is_tensor(base)):
            narrowed = True
        elif made.name in ON_HOST:
            if not narrowed and devices_of(base) != {"cpu"}:
                return None
        elif made.name not in SAME:
            return None
        taken = made.name in TENSOR_METHODS or made.name.startswith("torch.")
        tensor = tensor or taken or _is_tensor(base)
        if narrowed and tensor:
            if _is_small(base) or node is None:
                return None
            return Part(node, base, _origin(base), certain=isinstance(base, Tensor))
        made = made_of(base)
    return None


def _origin(value: Value) -> ast.AST | None:
    """The expression that made the storage of a value, as far as views can be followed back."""
    made = made_of(value)
    for _ in range(DEPTH):
        if made is None:
            return None
        viewed = made.name in SAME or (
            made.name == "operator.getitem" and narrows(made) is not None
        )
        inner = made_of(made.inputs[0]) if viewed and made.inputs else None
        if inner is None:
            return made.node
        made = inner
    return None


def _is_tensor(value: Value) -> bool:
    if isinstance(value, Tensor):
        return value.lib == "torch"
    made = made_of(value)
    return made is not None and (made.name in TENSOR_METHODS or made.name in TENSOR_FUNCTIONS)


def _is_small(value: Value) -> bool:
    if not isinstance(value, Tensor) or value.sizes is None:
        return False
    total = 1
    for size in value.sizes:
        if not isinstance(size, int):
            return False
        total *= size
    return total < SMALL


def narrows(made: Made) -> bool | None:
    """Whether a subscript leaves most of its array out; ``None`` where it copies, or may."""
    found = False
    for key in made.inputs[1:]:
        verdict = _key_narrows(key)
        if verdict is None:
            return None
        found = found or verdict
    return found


def _key_narrows(key: Value) -> bool | None:
    match key:
        case Const(None) | Const("..."):
            return False
        case Const(int() as number):
            return None if isinstance(number, bool) else True
        case Linear():
            return True
        case Unknown(origin="int", made=None):
            return True
        case Sequence(kind="slice", items=items) if items is not None:
            return _slice_narrows(*items)
    return None


def _slice_narrows(start: Value, stop: Value, step: Value) -> bool:
    """``:n`` and ``a:b`` do; ``:``, ``1:`` and ``:-1`` do not."""
    if isinstance(stop, Absent) or must_be(stop, None):
        return False
    if isinstance(stop, Const) and isinstance(stop.value, int):
        return stop.value >= 0
    return True


def pinned_base(view: Made) -> Made | None:
    """The operation that made the array that a small view with constant bounds is a part of."""
    if not view.inputs or not _is_small_view(view):
        return None
    base = view.inputs[0]
    inner = made_of(base)
    while inner is not None and inner.name in SAME and inner.inputs:
        inner = made_of(inner.inputs[0])
    if inner is None or inner.name in SPLITS or inner.name == "operator.getitem":
        return None
    keys = view.inputs[1:]
    if not any(isinstance(key, Sequence) for key in keys) and inner.name in TUPLES:
        return None
    if any(key == Const(0) for key in keys) and _has_unit_axis(inner):
        return None
    is_array = isinstance(base, Tensor) or inner.name.startswith(("numpy.", "cv2."))
    sliced = len(keys) > 1 and any(isinstance(key, Sequence) for key in keys)
    known = is_array or sliced or view.name in NARROWING or inner.name in TENSOR_FUNCTIONS
    return inner if known and not _is_small(base) else None


def _has_unit_axis(made: Made, depth: int = 4) -> bool:
    """Whether an array is made of one that was given an axis of its own: its first position there
    is all of it."""
    if made.name in ("torch.unsqueeze", ".unsqueeze", "numpy.expand_dims"):
        return True
    if made.name == "operator.getitem" and Const(None) in made.inputs[1:]:
        return True
    found = (made_of(one) for one in made.inputs)
    return depth > 0 and any(_has_unit_axis(one, depth - 1) for one in found if one is not None)


def _is_small_view(made: Made) -> bool:
    """Whether an operation gives a view of constant size, and of little."""
    keys = made.inputs[1:]
    if made.name in NARROWING:
        return _is_count(made.get("length", 3))
    if made.name != "operator.getitem":
        return False
    return any(_is_small_key(key) for key in keys) and narrows(made) is not None


def _is_small_key(key: Value) -> bool:
    match key:
        case Const(int() as number):
            return type(number) is int
        case Sequence(kind="slice", items=(_, stop, _)):
            return _is_count(stop)
    return False


def _is_count(value: Value) -> bool:
    """Whether a number is known, and small."""
    return isinstance(value, Const) and type(value.value) is int and 0 <= value.value <= 1024
