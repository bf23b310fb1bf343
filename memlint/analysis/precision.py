"""Which arrays are float64, and whether anybody asked for that."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from memlint.analysis.knowledge import float64 as table
from memlint.analysis.knowledge.kinds import dtype_of
from memlint.analysis.values import (
    Absent,
    Const,
    Linear,
    Made,
    Object,
    Sequence,
    Tensor,
    Value,
    alternatives,
    made_of,
)

DEPTH = 12
# What opens pictures as integers.
PICTURES = frozenset(
    {"PIL.Image.open", "cv2.imread", "cv2.cvtColor", "cv2.imdecode", "imageio.imread",
     "imageio.v2.imread", "imageio.v3.imread", "skimage.io.imread"}
)  # fmt: skip
PICTURE_METHODS = frozenset({".convert", ".resize", ".crop", ".rotate", ".transpose"})
EXACT = {"float64": "ASKED", "float32": "SINGLE", "float16": "SINGLE", "bfloat16": "SINGLE"}


class Precision(Enum):
    """What is known of an array's numbers: float64 because it is the default, float64 that was
    asked for by name, a narrower float, integers, or a Python number, which adapts."""

    DEFAULT = "float64 by default"
    ASKED = "float64 by name"
    SINGLE = "narrower"
    INTEGER = "integer"
    WEAK = "a Python number"


def precision_of(value: Value, depth: int = 0) -> Precision | None:
    """The precision of an array of NumPy; ``None`` where it is not known on all paths."""
    found = {_of(one, depth) for one in alternatives(value)}
    return found.pop() if len(found) == 1 else None


def _of(value: Value, depth: int) -> Precision | None:
    if isinstance(value, Const):
        if type(value.value) in (int, bool):
            return Precision.WEAK
        return Precision.WEAK if type(value.value) is float else None
    if isinstance(value, Linear):
        return Precision.WEAK
    if isinstance(value, Sequence):
        return _of_items(value, depth)
    if isinstance(value, Object) and value.cls in PICTURES:
        return Precision.INTEGER
    made = made_of(value)
    known = None
    if isinstance(value, Tensor):
        if value.lib not in ("numpy", ""):
            return None
        known = _by_dtype(value.dtype)
    if made is None or depth > DEPTH:
        return known
    by_operation = _by_operation(made, depth + 1)
    if known is Precision.ASKED and by_operation is not Precision.ASKED:
        return Precision.DEFAULT if by_operation is Precision.DEFAULT else None
    return known or by_operation


def _by_dtype(dtype: str | None) -> Precision | None:
    if dtype is None:
        return None
    if dtype in EXACT:
        return Precision[EXACT[dtype]]
    return Precision.INTEGER if dtype.startswith(("int", "uint", "bool")) else None


def _of_items(value: Sequence, depth: int) -> Precision | None:
    """The precision of an array of these items."""
    items = value.items if value.items is not None else (value.element,)
    if items and all(isinstance(one, Const) for one in items):
        floats = any(isinstance(one, Const) and type(one.value) is float for one in items)
        return Precision.DEFAULT if floats else Precision.INTEGER
    return _widest(precision_of(one, depth + 1) for one in items)


def _by_operation(made: Made, depth: int) -> Precision | None:
    name = made.name
    asked = _asked_dtype(made)
    if asked is not None:
        return asked if isinstance(asked, Precision) else None
    if name in table.MAKERS or name in table.DRAWN:
        return Precision.DEFAULT
    if name in PICTURES or (name in PICTURE_METHODS and _is_picture(made)):
        return Precision.INTEGER
    if name == ".astype":
        return _by_dtype(dtype_of(made.get("dtype", 1)))
    if name == "numpy.full":
        return Precision.DEFAULT if _has_float(made.inputs[1:2]) else None
    if name == "numpy.arange":
        return Precision.DEFAULT if _has_float(made.inputs) else Precision.INTEGER
    if name in ("numpy.float64", "numpy.double"):
        return Precision.ASKED
    if name in ("numpy.float32", "numpy.single", "numpy.float16", "numpy.half"):
        return Precision.SINGLE
    if name == "operator.getitem":
        return precision_of(made.inputs[0], depth)
    if name in table.FLOATING or name in table.FLOATING_METHODS:
        return _floating(_widest(_operands(made, depth)))
    if name in table.DIVISIONS:
        found = list(_operands(made, depth))
        # Integers of 64 bits divided by whatever it is: mostly a number.
        quotient = _widest(found)
        return (
            Precision.DEFAULT
            if Precision.INTEGER in found and quotient is None
            else _floating(quotient)
        )
    if name in table.OPERATORS:
        return _combined(made, depth)
    if name in table.WIDEST or name in table.WIDEST_METHODS:
        return _widest(_operands(made, depth))
    return None


def _asked_dtype(made: Made) -> Precision | bool | None:
    """The precision of the dtype that an operation is given; ``False`` where that is not known,
    ``None`` where there is none."""
    given = made.get("dtype", table.DTYPE_AT.get(made.name))
    if isinstance(given, Absent) or made.name == ".astype":
        return None
    if given == Const(None):
        return None
    return _by_dtype(dtype_of(given)) or False


def _operands(made: Made, depth: int) -> Iterable[Precision | None]:
    inputs = made.inputs
    if made.name.startswith(".") or made.name == "operator.getitem":
        inputs = inputs[:1]
    if made.name == "numpy.where":
        inputs = inputs[1:]
    if made.name in ("numpy.concatenate", "numpy.stack", "numpy.array", "numpy.asarray"):
        inputs = inputs[:1]
    return [precision_of(one, depth) for one in inputs]


def _widest(found: Iterable[Precision | None]) -> Precision | None:
    """The precision of an array of these numbers: float64 stays, whatever it meets."""
    kinds = set(found)
    if Precision.ASKED in kinds:
        return Precision.ASKED
    if Precision.DEFAULT in kinds:
        return Precision.DEFAULT
    kinds.discard(Precision.WEAK)
    return kinds.pop() if len(kinds) == 1 else None


def _floating(found: Precision | None) -> Precision | None:
    return Precision.DEFAULT if found is Precision.INTEGER else found


def _combined(made: Made, depth: int) -> Precision | None:
    if any(isinstance(one, Sequence) for one in made.inputs) and not any(
        isinstance(one, Tensor) for one in made.inputs
    ):
        return None  # lists that are put together
    found = _widest(_operands(made, depth))
    if found is Precision.INTEGER and _has_float(made.inputs):
        return Precision.DEFAULT
    return found


def _has_float(values: Iterable[Value]) -> bool:
    return any(isinstance(one, Const) and type(one.value) is float for one in values)


def _is_picture(made: Made) -> bool:
    return bool(made.inputs) and any(
        (isinstance(one, Object) and one.cls in PICTURES)
        or (
            (inner := made_of(one)) is not None
            and (inner.name in PICTURES or (inner.name in PICTURE_METHODS and _is_picture(inner)))
        )
        for one in alternatives(made.inputs[0])
    )
