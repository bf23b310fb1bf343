"""One-hot matrices, however they are made."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.analysis.chains import given, integer, mades, short
from memlint.analysis.values import Absent, Const, Linear, Made, Sequence, Tensor, Value

_SAME = frozenset(
    {"to", "float", "double", "half", "bfloat16", "astype", "cuda", "type", "type_as", "contiguous",
     "view", "reshape", "flatten", "detach", "long", "squeeze"}
)  # fmt: skip
FEW = 16


@dataclass(frozen=True, slots=True)
class OneHot:
    """A matrix with a single one in each row: ``indices`` say where, ``classes`` how wide."""

    maker: Made
    indices: Value
    classes: Value


def one_hot(value: Value) -> OneHot | None:
    """The one-hot matrix that a value is, up to casts and reshapes."""
    for _ in range(6):
        made = next(mades(value), None)
        if made is None:
            return None
        found = maker(made)
        if found is not None:
            return found
        if short(made.name) not in _SAME or not given(made):
            return None
        value = given(made)[0]
    return None


def maker(made: Made) -> OneHot | None:
    """``F.one_hot(i, n)``, ``np.eye(n)[i]`` and ``torch.zeros(b, n).scatter_(1, i, 1)``."""
    name = short(made.name)
    if name == "one_hot":
        return OneHot(made, made.get("tensor", 0), made.get("num_classes", 1))
    if name == "getitem" and len(made.inputs) == 2:
        identity = next(mades(made.inputs[0]), None)
        index = made.inputs[1]
        if identity is None or short(identity.name) not in ("eye", "identity"):
            return None
        if len(given(identity)) != 1 or isinstance(index, (Const, Linear, Sequence)):
            return None
        return OneHot(made, index, given(identity)[0])
    if name == "scatter" and made.name in (".scatter_", ".scatter"):
        return _scattered(made)
    return None


def _scattered(made: Made) -> OneHot | None:
    base = next(mades(made.inputs[0]), None)
    value = made.get("value", 3)
    if isinstance(value, Absent):
        value = made.get("src", 3)
    if base is None or short(base.name) != "zeros" or value not in (Const(1), Const(1.0)):
        return None
    if integer(made.get("dim", 1)) not in (1, -1):
        return None
    sizes = given(base)
    if len(sizes) == 1 and isinstance(sizes[0], Sequence):
        sizes = sizes[0].items or ()
    return OneHot(made, made.get("index", 2), sizes[-1]) if len(sizes) == 2 else None


def is_narrow(found: OneHot, other: Value) -> bool:
    """Whether there are known to be few classes."""
    classes = integer(found.classes)
    if classes is not None:
        return classes <= FEW
    if isinstance(other, Tensor) and other.sizes and len(other.sizes) > 1:
        rows = other.sizes[-2]
        return isinstance(rows, int) and rows <= FEW
    return False
