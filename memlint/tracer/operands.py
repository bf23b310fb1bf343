"""What the layouts of an operation's operands mean for it: questions that several rules ask."""

from __future__ import annotations

from memlint.late_dataclass import dataclass
from memlint.layout import Form, classify, fastest_axis
from memlint.tracer.records import Maker, Opaque, Operand, Operation

LEAST_BYTES = 1 << 16
"""Smaller operands stay in the nearest caches, where the order of reading costs little."""

ELEMENTWISE = frozenset(
    {"add", "sub", "mul", "div", "maximum", "minimum", "pow", "where", "relu", "gelu", "silu",
     "sigmoid", "tanh", "exp", "neg", "abs", "clamp", "lerp"}
)  # fmt: skip
REDUCTIONS = frozenset(
    {"sum", "mean", "amax", "amin", "var_mean", "std_mean", "logsumexp", "max", "min", "argmax",
     "argmin", "var", "std"}
)  # fmt: skip
NORMALISING = frozenset({"native_layer_norm", "_softmax", "_log_softmax", "native_group_norm"})
LOOKUPS = frozenset({"embedding", "index_select"})


def work_of(operation: Operation) -> str:
    """The name of what an operation computes, be it in place or not: "add"."""
    return operation.short.removesuffix("_") or operation.short


def is_large(operand: Operand) -> bool:
    """Whether an operand outgrows the nearest caches."""
    return operand.array.nbytes >= LEAST_BYTES


def is_reordered(operand: Operand) -> bool:
    """Whether all axes of an operand are stored, in another order than row-major: axes of size 1
    and broadcast ones do not count."""
    form = classify(operand.array)
    if form in (Form.PERMUTED, Form.CHANNELS_LAST):
        return True
    return form is Form.GAPPED and is_crossed(operand)


def is_crossed(operand: Operand) -> bool:
    """Whether reading along the last axis is not reading neighbours in memory."""
    return fastest_axis(operand.array) != _last_axis(operand)


def is_format(operand: Operand) -> bool:
    """Whether an operand is channels_last, a format that is chosen, not left over."""
    return classify(operand.array) is Form.CHANNELS_LAST


def _last_axis(operand: Operand) -> int | None:
    moving = [n for n, size in enumerate(operand.array.shape) if size > 1]
    return moving[-1] if moving else None


def reordered(operation: Operation) -> tuple[int, ...]:
    """The large operands of an operation that are not stored in the order of their axes."""
    found = enumerate(operation.operands)
    return tuple(index for index, one in found if is_large(one) and is_reordered(one))


ITEMSIZES = {
    "bool": 1, "uint8": 1, "int8": 1, "float16": 2, "bfloat16": 2, "int16": 2, "float32": 4,
    "int32": 4, "float64": 8, "int64": 8,
}  # fmt: skip
"""Bytes per element, by dtype."""
FACTORIES = frozenset(
    {"empty", "zeros", "ones", "full", "rand", "randn", "randint", "arange", "linspace", "eye",
     "randperm", "tri", "scalar_tensor", "lift_fresh"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Move:
    """A copy from one device to another, and what is known of the array that it copies."""

    source: Operand
    target: Operand
    waits: bool
    maker: Maker | None

    @property
    def to_device(self) -> bool:
        """Whether the copy goes from host memory to a device's."""
        return self.source.kind == "cpu"

    @property
    def to_host(self) -> bool:
        """Whether it goes from a device's memory to the host's."""
        return self.target.kind == "cpu"

    @property
    def made_by(self) -> str:
        """What made its source, without namespace and overload; empty if that is not known."""
        return self.maker.name.split(".")[1] if self.maker is not None else ""


def move_of(operation: Operation) -> Move | None:
    """What an operation brings from one device to another."""
    match operation.short:
        case "_to_copy" if operation.operands and operation.results:
            index, source, target = 0, operation.operands[0], operation.results[0]
        case "copy_" if len(operation.operands) == 2:
            index, target, source = 1, *operation.operands
        case _:
            return None
    if source.kind == target.kind:
        return None
    given = dict(operation.keywords).get("non_blocking", False)
    if operation.short == "copy_" and len(operation.arguments) > 2:
        given = operation.arguments[2]
    return Move(source, target, given is not True, operation.makers.get(index))


def is_dense_copy(operation: Operation) -> bool:
    """Whether an operation is a copy that was asked for to have an array row-major."""
    asked = dict(operation.keywords).get("memory_format")
    return (
        operation.short == "clone"
        and not operation.hidden
        and isinstance(asked, Opaque)
        and asked.text == "torch.contiguous_format"
        and not operation.operands[0].is_contiguous
    )


def spell(operand: Operand) -> str:
    """``float32[2048, 2048] with strides (1, 2048)``, as far as they are known."""
    shape = ", ".join(map(str, operand.array.shape))
    if not operand.array.has_strides:
        return f"{operand.dtype}[{shape}]"
    strides = ", ".join(map(str, operand.array.strides))
    return f"{operand.dtype}[{shape}] with strides ({strides})"


def megabytes(nbytes: float) -> str:
    """``16.8 MB``, in units of a million bytes; ``32.8 kB`` and ``1.20 GB`` beyond."""
    if nbytes < 1e5:
        return f"{nbytes / 1e3:,.1f} kB"
    return f"{nbytes / 1e6:,.1f} MB" if nbytes < 1e9 else f"{nbytes / 1e9:,.2f} GB"
