"""Operations that read an operand as well through a broadcast view as from a full copy of it."""

from __future__ import annotations

# Functions and methods of torch and functions of numpy, by their last names; of each, all
# operands count, also those in a list.
READS_BROADCAST = frozenset(
    {"add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide",
     "pow", "power", "fmod", "remainder", "maximum", "minimum", "fmax", "fmin", "atan2",
     "arctan2", "hypot", "lerp", "addcmul", "addcdiv", "eq", "ne", "lt", "le", "gt", "ge",
     "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and",
     "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "isclose", "where",
     "masked_fill", "clamp", "clip", "cat", "concat", "concatenate", "stack", "hstack", "vstack",
     "dstack", "column_stack", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
     "cosine_similarity", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div",
     "scaled_dot_product_attention", "cos",
     "sin", "exp", "log", "sqrt", "abs", "tanh", "sigmoid", "relu", "square",
     "gather", "scatter", "scatter_add", "take_along_dim", "take_along_axis", "grid_sample",
     "matmul", "bmm", "baddbmm", "softmax", "log_softmax", "sum", "mean", "prod", "amax", "amin",
     "any", "all", "logsumexp", "norm"}
)  # fmt: skip
# Of these, what copies all arrays of a list into a new one.
JOINS = frozenset(
    {"cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"}
)
# In-place forms read their second operand in the same way; the first is written.
INTO_ANOTHER = frozenset(
    {
        "add_",
        "sub_",
        "mul_",
        "div_",
        "copy_",
        "masked_fill_",
        "lerp_",
        "addcmul_",
        "addcdiv_",
        "scatter_",
        "scatter_add_",
    }
)
# Methods that give the operand itself where it has the type already, or else a copy.
CASTS = frozenset({"to", "float", "half", "double", "bfloat16", "long", "int", "bool", "type_as"})
# Methods of torch whose result is a view, so that what is read of it is read of the operand.
VIEWS = frozenset(
    {"unsqueeze", "squeeze", "transpose", "permute", "movedim", "swapaxes", "t", "mT", "T",
     "expand", "expand_as", "narrow", "select", "unbind", "chunk", "split", "detach"}
)  # fmt: skip
OPERATORS = frozenset(
    {"Add", "Sub", "Mult", "Div", "FloorDiv", "Mod", "Pow", "Eq", "NotEq", "Lt", "LtE", "Gt", "GtE",
     "BitAnd", "BitOr", "BitXor", "USub", "Invert", "MatMult"}
)  # fmt: skip
