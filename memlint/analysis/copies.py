"""Dense copies that change nothing for those who take them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis import axes
from memlint.analysis.axes import Size
from memlint.analysis.axes.queries import fastest_from_end
from memlint.analysis.knowledge.model import Args
from memlint.analysis.knowledge.numbers import integer, shape_of
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
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern
from memlint.source.model import Source

_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
_NN = "torch.nn.functional."
# Views between a copy and its consumer, which change nothing of what is said here.
_VIEWS = frozenset({".t", ".transpose", ".permute", ".T", ".mT", "torch.transpose", "torch.t"})
_PERMUTED = frozenset({".transpose", ".permute", ".t", ".T", ".mT", ".movedim", ".swapaxes"})
_FOLLOWED = 3
# The word in a comment, not the name of a rule.
_EXPLAINED = late_pattern(r"(?<![-\w])contiguous")
# Whose results are dense, whatever they are computed from.
MAKERS = frozenset(
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
KEEPERS = frozenset({"torch.cat", "torch.concat", "torch.concatenate"})
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
        if axes.contiguous(value.layout) is True and 0 not in (value.sizes or ()):
            if not value.assumed or name in MAKERS:
                return True
            return None if name in KEEPERS or _picked(made) else False
    if made is not None and isinstance(value, Unknown) and _of_torch(made):
        return None
    return None if _picked(made) else False


def _of_torch(made: Made) -> bool:
    """Whether an operation on arrays that are not known gives a dense tensor of torch."""
    if made.name in KEEPERS or (made.name in MAKERS and made.name.startswith("torch.")):
        return True
    return made.name == "operator.matmul" and any(isinstance(one, Tensor) for one in made.inputs)


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


def made_in_scope_of(node: ast.AST, value: Value, uses: Uses) -> bool:
    """Whether a value is made in the function that ``node`` is in: what it is given may be
    another array when others call it."""
    scope = uses.scope_of(node)
    makers = [made_of(one) for one in alternatives(value)]
    return all(made is not None and uses.scope_of(made.node) is scope for made in makers)


def deliberate(call: ast.Call, source: Source) -> bool:
    """Whether a comment beside the call, or right above it, says what it is for."""
    first = call.end_lineno or call.lineno
    lines = source.lines[max(0, first - 2) : first]
    return any(_EXPLAINED.search(line.partition("#")[2]) for line in lines)


def reshape_copies(copy: Copy, name: str, args: Args) -> bool | None:
    """Whether ``reshape`` or ``flatten`` of what is copied copies anyway: surely, in all
    likelihood (``None``), or not as far as is known."""
    verdicts = [_one_copies(one, name, args) for one in alternatives(copy.source)]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _one_copies(value: Value, name: str, args: Args) -> bool | None:
    """One axis that is left takes all the others.  Where the number of axes falls, axes that
    were permuted right before are hardly ever those that can be merged in place."""
    layout = value.layout if isinstance(value, Tensor) else axes.OPAQUE
    rank: int | None
    if name == "flatten":
        start, end = integer(args.get("start_dim", 0), 0), integer(args.get("end_dim", 1), -1)
        if start is None or end is None:
            return False
        copies = axes.flatten(layout, start, end)[1]
        whole = (start, end) == (0, -1)
        rank = 1 if whole else None if layout.rank is None else layout.rank - 1
    else:
        sizes = _asked_shape(args)
        if sizes is None:
            return False
        copies = axes.reshape(layout, sizes)[1]
        rank = len(sizes)
    if copies is True:
        return True
    made = made_of(value)
    permuted = made is not None and made.name in _PERMUTED
    falls = rank is not None and layout.rank is not None and rank < layout.rank
    return None if rank == 1 or (copies is None and permuted and falls) else False


def _asked_shape(args: Args) -> tuple[Size, ...] | None:
    named = args.get("shape")
    return shape_of(args.positional if isinstance(named, Absent) else (named,))


def taken_in_place(value: Value, *, last: bool = False) -> bool:
    """Whether a matrix product can take a strided array as it is: its neighbours in memory lie
    along one of the last two axes (the ``last`` one, for attention), and no element is there
    twice."""
    for one in alternatives(value):
        if not isinstance(one, Tensor) or axes.contiguous(one.layout) is not False:
            return False
        lowest = -1 if last else -2
        rank = one.layout.rank
        if rank is None and _fastest_is_late(one, lowest):
            continue
        fastest = axes.fastest_axis(one.layout)
        if fastest is None or (rank is not None and rank < 2):
            return False
        if fastest >= 0:
            if rank is None or one.layout.axes is None or one.layout.axes[fastest].step != 1:
                return False
            fastest -= rank
        if fastest < lowest:
            return False
        if any(axis.memory is None and axis.size != 1 for axis in one.layout.axes or ()):
            return False
    return True


def _fastest_is_late(tensor: Tensor, lowest: int) -> bool:
    """The same of an array of unknown rank.  ``.T`` is one of matrices, and what attention
    is given has four axes where nothing else is known."""
    made = made_of(tensor)
    if made is not None and made.name == ".T" and lowest == -2:
        return True
    found = fastest_from_end(tensor.layout)
    if lowest == -1 and tensor.layout.loose is not None and tensor.layout.loose.swaps == ((1, 2),):
        return True
    return bool(found) and min(found) >= lowest


def mask_given(value: Value) -> bool:
    """Whether attention gets a mask."""
    return not isinstance(value, Absent) and value != Const(None)
