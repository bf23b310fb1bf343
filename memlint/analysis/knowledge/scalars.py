"""Functions of single numbers."""

from __future__ import annotations

# NumPy functions that compiled code calls on single numbers.
_SCALAR = (
    "abs absolute fabs sqrt cbrt square exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin "
    "arccos arctan arctan2 sinh cosh tanh hypot sign floor ceil rint trunc round mod fmod power "
    "isnan isinf isfinite minimum maximum fmin fmax add subtract multiply divide floor_divide "
    "bitwise_and bitwise_or bitwise_xor left_shift right_shift logical_and logical_or logical_not "
    "bool_ int8 int16 int32 int64 intp uint8 uint16 uint32 uint64 float16 float32 float64 "
    "complex64 complex128 deg2rad rad2deg real imag conj ndindex arange"
)
SCALAR_FUNCTIONS = frozenset(_SCALAR.split())
