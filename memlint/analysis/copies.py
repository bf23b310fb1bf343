"""Dense copies that change nothing for those who take them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from memlint.analysis import axes
from memlint.analysis.uses import Uses
from memlint.analysis.values import (
    Absent,
    Const,
    Made,
    Ref,
    Sequence,
    Tensor,
    Unknown,
    Value,
    alternatives,
    made_of,
)

_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
_NN = "torch.nn.functional."
# Views between a copy and its consumer, which change nothing of what is said here.
_VIEWS = frozenset({".t", ".transpose", ".permute", ".T", ".mT", "torch.transpose", "torch.t"})
_FOLLOWED = 3
# Whose results are dense, whatever they are computed from.
_MAKERS = frozenset(
    {f"torch.{name}" for name in (
        "zeros", "ones", "full", "empty", "rand", "randn", "randint", "randperm", "arange",
        "linspace", "eye", "tensor", "stack", "matmul", "mm", "bmm", "softmax", "log_softmax",
        "gather", "index_select", "repeat_interleave", "cumsum", "tril", "triu", "cdist",
    )}
    | {f".{name}" for name in (
        "matmul", "mm", "bmm", "softmax", "log_softmax", "gather", "index_select",
        "repeat_interleave", "repeat", "cumsum", "contiguous", "new_zeros", "new_ones",
        "new_full", "new_empty", "masked_select",
    )}
    | {f"{_NN}softmax", f"{_NN}log_softmax", f"{_NN}linear", f"{_NN}embedding"}
    | {"operator.matmul"}
)  # fmt: skip
# Whose results are dense where what they are computed from is.
_KEEPERS = frozenset({"torch.cat", "torch.concat", "torch.concatenate"})
_INDICES = frozenset(
    {f"{owner}{name}" for owner in (".", "torch.") for name in (
        "argsort", "nonzero", "topk", "randperm", "multinomial", "argwhere", "where", "randint",
    )}
)  # fmt: skip
_MASKS = frozenset(f"operator.{name}" for name in ("eq", "ne", "lt", "le", "gt", "ge"))


def is_plain_copy(made: Made | None) -> bool:
    """Whether this is ``.contiguous()`` to row-major."""
    if made is None or made.name != ".contiguous":
        return False
    asked = made.get("memory_format", 1)
    return isinstance(asked, Absent) or asked == Ref("torch.contiguous_format")


def already_dense(value: Value) -> bool | None:
    """Whether a value is row-major before it is copied: surely, by the one assumption
    (``None``), or not as far as is known."""
    verdicts = [_dense(one) for one in alternatives(value)]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _dense(value: Value) -> bool | None:
    made = made_of(value)
    name = made.name if made is not None else ""
    if isinstance(value, Tensor):
        if value.lib not in ("torch", "") or axes.contiguous(value.layout) is False:
            return False
        if axes.contiguous(value.layout) is True:
            if not value.assumed or name in _MAKERS:
                return True
            return None if name in _KEEPERS or _picked(made) else False
    if isinstance(value, Unknown) and name in _KEEPERS:
        return None
    return None if _picked(made) else False


def _picked(made: Made | None) -> bool:
    """``x[index]`` with an array of numbers or a mask, which gathers into a dense tensor."""
    if made is None or made.name != "operator.getitem" or len(made.inputs) != 2:
        return False
    base, index = made.inputs
    if isinstance(base, Tensor) and axes.contiguous(base.layout) is not True:
        return False
    return isinstance(base, (Tensor, Unknown)) and _is_index(index)


def _is_index(value: Value, depth: int = 0) -> bool:
    if isinstance(value, Tensor) and value.layout.rank not in (0, None):
        return True
    made = made_of(value)
    if made is None or depth > _FOLLOWED:
        return False
    if made.name in _INDICES or made.name in _MASKS:
        return True
    keeps = made.name in ("operator.getitem", ".to", ".long", ".cuda", ".cpu", ".bool", ".flatten")
    return keeps and bool(made.inputs) and _is_index(made.inputs[0], depth + 1)


@dataclass(frozen=True, slots=True)
class Copy:
    """A dense copy, and the expressions through which it reaches who takes it."""

    made: Made
    through: tuple[ast.AST, ...]

    @property
    def source(self) -> Value:
        """What is copied."""
        return self.made.inputs[0]


def copies_among(values: tuple[Value, ...]) -> Iterator[Copy]:
    """The dense copies among the operands of an operation."""
    for value in values:
        items = value.items if isinstance(value, Sequence) and value.items else (value,)
        for item in items:
            if (copy := _copy_of(item)) is not None:
                yield copy


def _copy_of(value: Value) -> Copy | None:
    through: list[ast.AST] = []
    for _ in range(_FOLLOWED):
        made = made_of(value)
        if made is None or not made.inputs:
            return None
        through.append(made.node)
        if is_plain_copy(made):
            return Copy(made, tuple(reversed(through)))
        if made.name not in _VIEWS:
            return None
        value = made.inputs[0]
    return None


def only_taken_by(copy: Copy, consumer: ast.AST, uses: Uses) -> bool:
    """Whether nothing but ``consumer`` ever sees a copy, and as often as it is made."""
    for node, following in zip(copy.through, (*copy.through[1:], consumer), strict=True):
        if not isinstance(node, ast.expr):
            return False
        taken = uses.of(node)
        if len(taken) != 1 or taken[0].node is not following:
            return False
    return _loops(copy.through[0], uses) == _loops(consumer, uses)


def _loops(node: ast.AST, uses: Uses) -> list[int]:
    return [
        id(above)
        for above in uses.ancestors(node)
        if isinstance(above, (*_LOOPS, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp))
    ]


def taken_in_place(value: Value) -> bool:
    """Whether a matrix product can take a strided array as it is: its neighbours in memory lie
    along one of the last two axes, and no element is there twice."""
    for one in alternatives(value):
        if not isinstance(one, Tensor) or axes.contiguous(one.layout) is not False:
            return False
        fastest = axes.fastest_axis(one.layout)
        rank = one.layout.rank
        if fastest is None or (rank is not None and rank < 2):
            return False
        if fastest >= 0:
            if rank is None or one.layout.axes is None or one.layout.axes[fastest].step != 1:
                return False
            fastest -= rank
        if fastest < -2:
            return False
        if any(axis.memory is None and axis.size != 1 for axis in one.layout.axes or ()):
            return False
    return True


def mask_given(value: Value) -> bool:
    """Whether attention gets a mask."""
    return not isinstance(value, Absent) and value != Const(None)
