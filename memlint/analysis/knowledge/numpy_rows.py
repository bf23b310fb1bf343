"""The tables of NumPy; those of CuPy are the same where it has the same function."""

from __future__ import annotations

from memlint.analysis.knowledge import compute as to
from memlint.analysis.knowledge import moves, views
from memlint.analysis.knowledge import numpy_table as np
from memlint.analysis.knowledge.model import Table, rows, table

_UNARY = "abs absolute negative positive square floor ceil trunc rint sign conjugate"
_FLOAT_UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan sinh cosh tanh arcsin arctan "
    "reciprocal deg2rad"
)
_BINARY = "add subtract multiply maximum minimum fmod remainder floor_divide"
_COMPARE = "equal not_equal less less_equal greater greater_equal"
_REDUCE_PROOFS = ("x", "x, 0", "x, axis=-1", "x, axis=1", "x, axis=(0, 1)")
_ROW_ORDERS = ("x", "x, order='F'", "x, order='C'")

FUNCTIONS: Table = table(
    rows(
        np.created,
        "zeros ones empty",
        "(2, 3)",
        "5",
        "(2, 3), order='F'",
        "(2, 3), dtype=np.float32",
        "shape=(2, 3, 4)",
        "(2, 3), np.int32",
        options=("float64", 1),
    ),
    rows(
        np.created,
        "full",
        "(2, 3), 1.5",
        "(2, 3), 1.5, order='F'",
        "4, 0.0, np.float32",
        options=(None, 2),
    ),
    rows(
        np.like,
        "zeros_like ones_like empty_like",
        "x",
        "x, dtype=np.float32",
        "x, order='C'",
        "x, order='F'",
        "x, order='A'",
        options=(1,),
    ),
    rows(np.like, "full_like", "x, 1.5", "x, 1.5, order='C'", options=(2,)),
    rows(np.arange, "arange", "5", "2, 9, 3", "5, dtype=np.float32"),
    rows(np.linspace, "linspace logspace", "0, 1", "0, 1, 7", "0, 1, num=4"),
    rows(np.eye, "eye", "3", "2, 4", "3, dtype=np.float32"),
    rows(np.random, "random.random random.random_sample", "(2, 3)", "size=(4, 2)", options=(0,)),
    rows(np.random, "random.normal random.uniform", "0, 1, (2, 3)", "size=(4, 2)", options=(2,)),
    rows(np.random, "random.randint", "0, 9, (2, 3)", "9, size=(2, 3)", options=(2,)),
    rows(np.random, "random.standard_normal", "(2, 3)", options=(0,)),
    rows(np.random_spread, "random.rand random.randn", "2, 3", "4"),
    rows(
        moves.in_order,
        "array",
        "x",
        "x, order='F'",
        "x, order='C'",
        "x, np.float32",
        "[[1, 2], [3, 4]]",
        "x, copy=True",
        options=("K", "always"),
    ),
    rows(
        moves.in_order,
        "asarray asanyarray",
        *_ROW_ORDERS,
        "x, np.float32",
        "[[1.0, 2.0]]",
        options=("K", "if needed"),
    ),
    rows(
        moves.in_order, "ascontiguousarray", "x", "x, dtype=np.float32", options=("C", "if needed")
    ),
    rows(moves.in_order, "asfortranarray", "x", "x, dtype=np.float32", options=("F", "if needed")),
    rows(moves.in_order, "copy", *_ROW_ORDERS, options=("K", "always")),
    rows(
        views.transpose,
        "transpose permute_dims",
        "x",
        "x, (1, 0)",
        "x, (0, 2, 1)",
        "x, axes=(2, 0, 1)",
    ),
    rows(views.last_two, "matrix_transpose", "x"),
    rows(views.swapaxes, "swapaxes", "x, 0, 1", "x, 0, -1", "x, axis1=0, axis2=1"),
    rows(np.moveaxis, "moveaxis", "x, 0, -1", "x, -1, 0", "x, 2, 0", "x, (0, 1), (1, 0)"),
    rows(
        views.reshape,
        "reshape",
        "x, -1",
        "x, (-1, 2)",
        "x, (6, -1)",
        "x, (3, 2, -1)",
        "x, (-1,), order='C'",
        "x, (6, -1), order='F'",
    ),
    rows(moves.ravel, "ravel", "x", "x, order='F'"),
    rows(views.squeeze, "squeeze", "x", "x, 0", "x, axis=-1"),
    rows(np.expand_dims, "expand_dims", "x, 0", "x, axis=-1", "x, 1"),
    rows(np.broadcast_to, "broadcast_to", "x, (7, *x.shape)", "x, (2, 3)"),
    rows(np.flip, "flip", "x", "x, 0", "x, axis=-1"),
    rows(np.flip, "flipud", "x", options=(0,)),
    rows(np.flip, "fliplr", "x", options=(1,)),
    rows(np.rotated, "rot90", "x", "x, 2", "x, k=3", "x, -4", "x, 1, (1, 0)"),
    rows(np.at_least, "atleast_1d", "x", options=(1,)),
    rows(np.at_least, "atleast_2d", "x", options=(2,)),
    rows(np.split, "split array_split", "x, 2", "x, 2, axis=1", "x, 1, -1"),
    rows(np.split, "vsplit", "x, 2", options=(0,)),
    rows(np.split, "hsplit", "x, 2", options=(1,)),
    rows(to.elementwise, _UNARY, "x"),
    rows(to.float_result, _FLOAT_UNARY, "x"),
    rows(to.elementwise, _BINARY, "x, y", "y, x", "x, np.ascontiguousarray(y)", "x, 2"),
    rows(to.float_result, "divide true_divide power arctan2 hypot", "x, y", "y, x"),
    rows(to.elementwise, _COMPARE, "x, y", "x, 0", options=("bool",)),
    rows(to.elementwise, "isnan isfinite isinf logical_not", "x", options=("bool",)),
    rows(to.elementwise, "logical_and logical_or", "x, y", options=("bool",)),
    rows(to.elementwise, "bitwise_not invert", "x > 0"),
    rows(to.elementwise, "bitwise_and bitwise_or bitwise_xor", "x > 0, y > 0"),
    rows(to.elementwise, "clip", "x, 0.0, 1.0"),
    rows(
        to.reduction,
        "sum prod mean max min amax amin std var median",
        *_REDUCE_PROOFS,
        options=(None,),
    ),
    rows(to.reduction, "argmax argmin", "x", "x, 0", "x, axis=-1", options=("int64",)),
    rows(to.reduction, "all any", *_REDUCE_PROOFS, options=("bool",)),
    rows(np.joined, "concatenate", "(x, y)", "[x, x], 1", "(x, y), axis=-1"),
    rows(np.joined, "hstack", "(x, y)", "[x, x]"),
    rows(np.joined_rows, "vstack", "(x, y)", "[x, x]"),
    rows(to.stack, "stack", "(x, y)", "[x, x], 1", "(x, y), axis=-1"),
    rows(np.product, "matmul", "x, np.swapaxes(y, -1, -2)"),
    rows(np.product, "dot", "x, y.T"),
    rows(to.unknown_layout, "outer", "x, y"),
    rows(to.unknown_layout, "cumsum cumprod", "x, 0", "x, axis=-1"),
    rows(to.unknown_layout, "where", "x > 0, x, y"),
    rows(to.unknown_layout, "sort argsort", "x", "x, 0"),
    rows(to.unknown_layout, "take", "x, [0, 1], 0"),
    rows(to.dense_unknown, "tile", "x, 2", "x, (2, 2)"),
    rows(to.unknown_layout, "repeat", "x, 2, 0", "x, 2"),
    rows(to.unknown_layout, "pad", "x, 1"),
    rows(to.unknown_layout, "roll", "x, 1, 0", "x, 1"),
    rows(to.nothing_known, "einsum", "'...ij->...ji', x"),
    rows(to.unknown_layout, "triu tril", "x"),
)
"""Functions by their name within ``numpy``."""

METHODS: Table = table(
    rows(views.transpose, "transpose", "x", "x, 1, 0", "x, (0, 2, 1)", "x, 2, 0, 1"),
    rows(views.swapaxes, "swapaxes", "x, 0, 1", "x, 0, -1"),
    rows(views.reshape, "reshape", "x, -1", "x, (-1, 2)", "x, 6, -1", "x, 6, -1, order='F'"),
    rows(moves.ravel, "ravel", "x", "x, 'F'", "x, order='C'"),
    rows(moves.flat_copy, "flatten", "x"),
    rows(views.squeeze, "squeeze", "x", "x, 0", "x, axis=-1"),
    rows(views.diagonal, "diagonal", "x", "x, 0, 0, 1"),
    rows(
        moves.in_order,
        "astype",
        "x, np.float32",
        "x, 'float64'",
        "x, np.float32, order='C'",
        "x, np.float64, copy=False",
        options=("K", "always"),
    ),
    rows(moves.in_order, "copy", "x", "x, order='F'", "x, order='K'", options=("C", "always")),
    rows(views.same, "conj conjugate", "x"),
    rows(to.elementwise, "clip", "x, 0.0, 1.0"),
    rows(to.elementwise, "round", "x"),
    rows(to.reduction, "sum prod mean max min std var", *_REDUCE_PROOFS, options=(None,)),
    rows(to.reduction, "argmax argmin", "x", "x, 0", "x, axis=-1", options=("int64",)),
    rows(to.reduction, "all any", *_REDUCE_PROOFS, options=("bool",)),
    rows(np.product, "dot", "x, y.T"),
    rows(to.unknown_layout, "cumsum cumprod", "x, 0", "x, axis=-1"),
    rows(to.unknown_layout, "take", "x, [0, 1], 0"),
    rows(to.unknown_layout, "repeat", "x, 2, 0"),
    rows(to.unknown_layout, "argsort", "x"),
    rows(views.reshape, "view", "x, np.int64"),
)
"""Methods of arrays."""

UNPROVED: Table = table(
    rows(np.loaded, "numpy.load numpy.loadtxt numpy.genfromtxt numpy.fromfile numpy.frombuffer"),
    rows(np.loaded, "cupy.load"),
    rows(np.to_host, "cupy.asnumpy"),
)
"""Functions by full name that read files, or need a GPU."""
