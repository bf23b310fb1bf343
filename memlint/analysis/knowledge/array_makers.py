"""Calls that give a NumPy array of at least one axis, whatever is known of their arguments.

The tables of array functions speak of layouts; these names say no more than that the result
is an array and not a number.  ``asarray`` of a number has no axis, but a list of such arrays
is nothing that ``torch.tensor`` takes.
"""

from __future__ import annotations

import ast

from memlint.analysis.values import (
    Absent,
    Const,
    Made,
    Sequence,
    Tensor,
    Unknown,
    Value,
    alternatives,
)

# Functions that make arrays of what they are given, whatever that is.
ARRAY_FUNCTIONS = frozenset(
    {f"numpy.{name}" for name in (
        "array", "asarray", "ascontiguousarray", "asfortranarray", "atleast_1d", "atleast_2d",
        "stack", "vstack", "hstack", "concatenate", "frombuffer", "fromfile", "fromstring",
        "loadtxt", "genfromtxt", "zeros", "ones", "empty", "full", "arange", "linspace",
        "eye", "identity", "bincount", "convolve", "cumsum", "diff", "ediff1d", "flatnonzero",
        "logspace", "random.permutation", "repeat", "tile", "tri",
    )}
    | {f"cv2.{name}" for name in (
        "imdecode", "resize", "cvtColor", "normalize", "calcHist", "warpAffine",
        "warpPerspective", "GaussianBlur", "medianBlur", "copyMakeBorder", "flip", "rotate",
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
    {".astype", ".copy", ".clip", ".byteswap", ".round", ".transpose", ".T", ".swapaxes"}
    | {f"numpy.{name}" for name in (
        "abs", "clip", "cos", "exp", "expand_dims", "fabs", "flip", "float32", "float64", "log",
        "log1p", "nan_to_num", "negative", "pad", "round", "sin", "sqrt", "square", "transpose",
        "fft.fft", "fft.ifft", "fft.rfft", "fft.fft2", "flipud", "fliplr", "roll", "rot90", "sort",
        "argsort", "tanh", "log2", "log10", "empty_like", "full_like", "ones_like", "zeros_like",
        "float16", "int32", "int64", "uint8",
    )}
)  # fmt: skip
# Functions that give a pair of arrays of different lengths.
PAIRS = frozenset({"numpy.histogram", "numpy.linalg.eigh", "numpy.linalg.eig"})
# What makes one axis or more of an array, however many it has.
FLAT = frozenset({".flatten", ".ravel", ".reshape", ".repeat", ".cumsum", ".argsort"})
# Functions of several operands that give an array where one of them is an array.
ELEMENTWISE = frozenset(
    f"numpy.{name}"
    for name in ("where", "maximum", "minimum", "fmax", "fmin", "add", "subtract", "multiply",
                 "divide", "power", "arctan2", "hypot", "mod")
)  # fmt: skip
# Functions that take away the axes they are given, and the methods of arrays of that name.
REDUCTIONS = frozenset(
    {f"numpy.{name}" for name in (
        "sum", "mean", "median", "std", "var", "max", "min", "amax", "amin", "prod", "argmax",
        "argmin", "all", "any", "linalg.norm",
    )}
    | {f".{name}" for name in (
        "sum", "mean", "std", "var", "max", "min", "prod", "argmax", "argmin", "all", "any",
    )}
)  # fmt: skip
# Functions that give several arrays, in a tuple or list.
SEVERAL = frozenset(
    f"numpy.{name}"
    for name in ("meshgrid", "nonzero", "where", "tril_indices", "triu_indices", "diag_indices",
                 "ix_", "indices", "unravel_index", "array_split", "split")
)  # fmt: skip
# Operators that give an array where an operand is one.
OPERATORS = frozenset(
    f"operator.{name}"
    for name in ("add", "subtract", "multiply", "true_divide", "floor_divide", "remainder", "pow")
)
# Methods of tensors and data frames that give an array.
ARRAY_METHODS = frozenset({".numpy", ".to_numpy", ".toarray", ".get_fdata"})


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
    if made.name in ("builtins.next", "operator.getitem") and _is_of_several(made):
        return True
    if isinstance(value, Unknown) and made.name not in OPERATORS and value.origin != "call":
        return False  # an entry of what was made
    if made.name in KEEP_RANK | FLAT:
        return bool(made.inputs) and is_array(made.inputs[0])
    if made.name == "operator.getitem":
        return bool(made.inputs) and is_array(made.inputs[0]) and _keeps_an_axis(made)
    if made.name in OPERATORS:
        return any(map(is_array, made.inputs))
    if made.name in ELEMENTWISE:
        return any(map(is_array, made.inputs)) and not gives_several(made)
    if made.name in REDUCTIONS:
        return _leaves_an_axis(made)
    if made.name == "numpy.unique":
        return not any(key.startswith("return_") for key, _ in made.keywords)
    if made.name in SIZED_METHODS:
        return not is_nothing_given(made.get("size"))
    if made.name in SIZED:
        return not is_nothing_given(made.get("size", SIZED[made.name]))
    return made.name in ARRAY_FUNCTIONS | ARRAY_METHODS | {"numpy.load"}


def gives_several(made: Made) -> bool:
    """Whether an operation gives several arrays, in a tuple or list."""
    if made.name == ".nonzero":
        return bool(made.inputs) and is_array(made.inputs[0])
    return made.name in SEVERAL and (made.name != "numpy.where" or len(made.inputs) == 1)


def _is_of_several(made: Made) -> bool:
    whole: Made | None = getattr(made.inputs[0], "made", None) if made.inputs else None
    return whole is not None and (gives_several(whole) or whole.name in PAIRS)


def _keeps_an_axis(made: Made) -> bool:
    """``x[a:b]``, ``x[:, k]``: what a slice is taken of stays an axis; so does one of two axes
    where one number is given."""
    if not isinstance(made.node, ast.Subscript):
        return False
    keys = made.node.slice
    items = keys.elts if isinstance(keys, ast.Tuple) else [keys]
    if any(isinstance(item, ast.Slice) or _is_none(item) for item in items):
        return True
    bases = alternatives(made.inputs[0])
    known = [one.sizes for one in bases if isinstance(one, Tensor) and one.sizes is not None]
    return len(known) == len(bases) and all(len(made.inputs) - 1 < len(one) for one in known)


def _is_none(item: ast.expr) -> bool:
    return (isinstance(item, ast.Constant) and item.value is None) or (
        isinstance(item, ast.Attribute) and item.attr == "newaxis"
    )


def _leaves_an_axis(made: Made) -> bool:
    """Whether a reduction over given axes leaves one: ``axis=1`` leaves the first."""
    if made.name.startswith(".") and not (made.inputs and is_array(made.inputs[0])):
        return False
    axis = made.get("axis", 2 if made.name == "numpy.linalg.norm" else 1)
    given = axis.items if isinstance(axis, Sequence) else (axis,)
    axes = [one.value for one in given or () if isinstance(one, Const)]
    numbers = [one for one in axes if type(one) is int and one >= 0]
    if not numbers or len(numbers) < len(given or ()):
        return False
    return max(numbers) >= len(numbers)


def is_nothing_given(value: Value) -> bool:
    """Whether an argument is left out, or may be ``None``."""
    return any(isinstance(one, Absent) or one == Const(None) for one in alternatives(value))


def _of_objects(made: Made) -> bool:
    """Whether ``dtype=object`` is asked for, which no tensor can hold."""
    dtype = made.get("dtype", 1) if made.name.startswith("numpy.") else made.get("dtype")
    named = {getattr(one, "name", getattr(one, "value", None)) for one in alternatives(dtype)}
    return not named.isdisjoint({"builtins.object", "builtins.str", "object", "O", "str"})
