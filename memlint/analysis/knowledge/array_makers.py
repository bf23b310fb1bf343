"""Calls that give a NumPy array of at least one axis, whatever is known of their arguments.

The tables of array functions speak of layouts; these names say no more than that the result
is an array and not a number.  ``asarray`` of a number has no axis, but a list of such arrays
is nothing that ``torch.tensor`` takes.
"""

from __future__ import annotations

import ast

from memlint.analysis.values import Absent, Const, Made, Tensor, Unknown, Value, alternatives

# Functions that make arrays of what they are given, whatever that is.
ARRAY_FUNCTIONS = frozenset(
    {f"numpy.{name}" for name in (
        "array", "asarray", "ascontiguousarray", "asfortranarray", "atleast_1d", "atleast_2d",
        "stack", "vstack", "hstack", "concatenate", "frombuffer", "fromfile", "fromstring",
        "loadtxt", "genfromtxt", "zeros", "ones", "empty", "full", "arange", "linspace",
    )}
    | {"cv2.imread", "imageio.imread", "imageio.v2.imread", "imageio.v3.imread",
       "skimage.io.imread", "tifffile.imread"}
)  # fmt: skip
# Random numbers: an array where ``size`` is given, by its position.
SIZED = {
    "numpy.random.rand": 0, "numpy.random.randn": 0, "numpy.random.random": 0,
    "numpy.random.random_sample": 0, "numpy.random.standard_normal": 0,
    "numpy.random.normal": 2, "numpy.random.uniform": 2, "numpy.random.randint": 2,
    "numpy.random.choice": 1,
}  # fmt: skip
# Methods of generators that take ``size`` by name.
SIZED_METHODS = frozenset(
    {".random", ".normal", ".uniform", ".standard_normal", ".integers", ".choice"}
)
# What gives an array where its first operand is one, of as many axes or more.
KEEP_RANK = frozenset(
    {".astype", ".copy", ".clip", ".byteswap", ".round", ".transpose", ".T"}
    | {f"numpy.{name}" for name in (
        "abs", "clip", "cos", "exp", "expand_dims", "fabs", "flip", "float32", "float64", "log",
        "log1p", "nan_to_num", "negative", "pad", "round", "sin", "sqrt", "square", "transpose",
        "fft.fft", "fft.ifft", "fft.rfft", "fft.fft2",
    )}
)  # fmt: skip
# Operators that give an array where an operand is one.
OPERATORS = frozenset(
    f"operator.{name}"
    for name in ("add", "subtract", "multiply", "true_divide", "floor_divide", "remainder", "pow")
)
# Methods of tensors and data frames that give an array.
ARRAY_METHODS = frozenset({".numpy", ".to_numpy"})


def is_array(value: Value) -> bool:
    """Whether a value is a NumPy array with an axis on every path."""
    options = alternatives(value)
    return bool(options) and all(map(_is_one, options))


def _is_one(value: Value) -> bool:
    made: Made | None = getattr(value, "made", None)
    if isinstance(value, Tensor):
        if value.lib not in ("numpy", "") or value.dtype == "object":
            return False
        if value.lib and value.sizes is not None:
            return len(value.sizes) > 0
    if made is None or _of_objects(made):
        return False
    if isinstance(value, Unknown) and made.name not in OPERATORS and value.origin != "call":
        return False  # an entry of what was made
    if made.name in KEEP_RANK:
        return bool(made.inputs) and is_array(made.inputs[0])
    if made.name == "operator.getitem":
        return _keeps_an_axis(made.node) and bool(made.inputs) and is_array(made.inputs[0])
    if made.name in OPERATORS:
        return any(map(is_array, made.inputs))
    if made.name in SIZED_METHODS:
        return not is_nothing_given(made.get("size"))
    if made.name in SIZED:
        return not is_nothing_given(made.get("size", SIZED[made.name]))
    return made.name in ARRAY_FUNCTIONS | ARRAY_METHODS | {"numpy.load"}


def _keeps_an_axis(node: ast.AST) -> bool:
    """``x[a:b]``, ``x[:, k]``: what a slice is taken of stays an axis."""
    if not isinstance(node, ast.Subscript):
        return False
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(item, ast.Slice) for item in items)


def is_nothing_given(value: Value) -> bool:
    """Whether an argument is left out, or may be ``None``."""
    return any(isinstance(one, Absent) or one == Const(None) for one in alternatives(value))


def _of_objects(made: Made) -> bool:
    """Whether ``dtype=object`` is asked for, which no tensor can hold."""
    dtype = made.get("dtype", 1) if made.name.startswith("numpy.") else made.get("dtype")
    named = {getattr(one, "name", getattr(one, "value", None)) for one in alternatives(dtype)}
    return not named.isdisjoint({"builtins.object", "builtins.str", "object", "O", "str"})
