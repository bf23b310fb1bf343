"""What NumPy functions give by their dtypes: where float64 comes from, and what keeps it."""

from __future__ import annotations


def _names(names: str) -> frozenset[str]:
    return frozenset(f"numpy.{name}" for name in names.split())


# Functions that give float64 unless they are asked for another dtype, and where they are asked.
MAKERS = _names(
    "zeros ones empty eye identity linspace logspace geomspace tri loadtxt genfromtxt "
    "hanning hamming blackman bartlett kaiser "
    "random.rand random.randn random.random random.random_sample random.sample random.ranf "
    "random.normal random.uniform random.standard_normal random.beta random.gamma "
    "random.exponential random.laplace random.lognormal random.rayleigh random.dirichlet "
    "random.multivariate_normal random.standard_exponential random.triangular random.vonmises"
)
# Methods of generators that do.
DRAWN = frozenset(
    f".{name}"
    for name in (
        "rand", "randn", "random", "random_sample", "normal", "uniform", "standard_normal", "beta",
        "gamma", "exponential", "laplace", "lognormal", "dirichlet", "multivariate_normal",
    )
)  # fmt: skip
DTYPE_AT = {
    "numpy.zeros": 1, "numpy.ones": 1, "numpy.empty": 1, "numpy.identity": 1, "numpy.loadtxt": 1,
    "numpy.genfromtxt": 1, "numpy.array": 1, "numpy.asarray": 1, "numpy.asanyarray": 1,
    "numpy.ascontiguousarray": 1, "numpy.full": 2, "numpy.eye": 3, "numpy.arange": 3,
}  # fmt: skip
# Of integers these give float64, of floats what they are given.
FLOATING = _names(
    "sin cos tan arcsin arccos arctan sinh cosh tanh exp exp2 expm1 log log2 log10 log1p sqrt "
    "cbrt deg2rad rad2deg radians degrees sinc mean std var average median true_divide divide "
    "arctan2 hypot"
)
# Methods that do.
FLOATING_METHODS = frozenset({".mean", ".std", ".var"})
# The widest of what these are given is what they give.
WIDEST = _names(
    "add subtract multiply power maximum minimum outer inner dot matmul vdot kron tensordot cross "
    "concatenate stack hstack vstack dstack column_stack append where clip abs absolute negative "
    "square sort flip flipud fliplr roll pad tile repeat take cumsum cumprod diff gradient "
    "reshape ravel transpose swapaxes moveaxis squeeze expand_dims broadcast_to rot90 meshgrid "
    "copy ascontiguousarray asfortranarray asarray asanyarray array nan_to_num interp "
    "atleast_1d atleast_2d tril triu diag sum prod max min amax amin zeros_like ones_like "
    "empty_like"
)
WIDEST_METHODS = frozenset(
    f".{name}"
    for name in (
        "T", "reshape", "ravel", "flatten", "transpose", "swapaxes", "squeeze", "copy", "clip",
        "repeat", "take", "cumsum", "dot", "sum", "prod", "max", "min", "round",
    )
)  # fmt: skip
# Operators of arrays: of integers, the first ones give float64.
DIVISIONS = frozenset({"operator.true_divide"})
OPERATORS = frozenset(
    f"operator.{name}"
    for name in ("add", "subtract", "multiply", "pow", "negative", "matmul", "floor_divide",
                 "getitem")
)  # fmt: skip
# What gives a NumPy scalar of 64 bits for a Python number: float32 arrays become float64 with it
# (NumPy 2).
STRONG_SCALARS = _names("sqrt exp log log2 log10 sin cos tan tanh float64 int64 power prod")
