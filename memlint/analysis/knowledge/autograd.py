"""What library calls do to the graph of autograd: which carry it on, which leave it behind."""

from __future__ import annotations

from memlint.analysis.values import OUTSIDE_GRAPHS

LEAVING_ATTRIBUTES = OUTSIDE_GRAPHS

# Layers with parameters, as ``torch.nn`` makes them by default.
WITH_PARAMETERS = frozenset(
    f"torch.nn.{lazy}{name}"
    for lazy, names in {
        "": (
            "Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
            "ConvTranspose2d", "ConvTranspose3d", "Embedding", "EmbeddingBag", "BatchNorm1d",
            "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LayerNorm", "GroupNorm", "RMSNorm",
            "RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell", "MultiheadAttention", "PReLU",
            "Transformer", "TransformerEncoderLayer", "TransformerDecoderLayer",
        ),
        "Lazy": (
            "Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d",
            "ConvTranspose3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d",
        ),
    }.items()
    for name in names
)  # fmt: skip
# Methods of a tensor that hand its graph on; functions of the same name in ``torch`` do too.
CARRYING = frozenset(
    {"abs", "add", "amax", "amin", "bfloat16", "broadcast_to", "chunk", "clamp", "clamp_max",
     "clamp_min", "clip", "clone", "contiguous", "cos", "cpu", "cumprod", "cumsum", "diag",
     "diagonal", "diff", "div", "divide", "double", "erf", "exp", "expand", "expand_as", "flatten",
     "flip", "float", "gather", "half", "index_select", "log", "log10", "log1p", "log2",
     "log_softmax", "logsumexp", "masked_select", "matmul", "max", "maximum", "mean", "median",
     "min", "minimum", "mm", "mul", "multiply", "nan_to_num", "nanmean", "nansum", "neg",
     "negative", "norm", "permute", "pow", "prod", "quantile", "reciprocal", "relu", "repeat",
     "repeat_interleave", "reshape", "roll", "rsqrt", "select", "sigmoid", "sin", "softmax",
     "sort", "split", "sqrt", "square", "squeeze", "std", "sub", "subtract", "sum", "t", "tanh",
     "to", "topk", "transpose", "tril", "triu", "true_divide", "type_as", "unbind", "unsqueeze",
     "var", "view_as"}
)  # fmt: skip
# Those that need another kind of argument than the tests can make up for all at once.
CARRYING_OTHERS = frozenset(
    {"bmm", "cuda", "dot", "masked_fill", "narrow", "outer", "pin_memory", "unflatten", "unfold",
     "view", "where", "addmm", "baddbmm", "take_along_dim", "type"}
)  # fmt: skip
# Functions of ``torch`` that join several.
JOINING = frozenset({"cat", "concat", "stack", "hstack", "vstack", "einsum", "bmm", "matmul"})
# Methods whose result is no part of the graph of their tensor.
LEAVING = frozenset(
    {"all", "allclose", "any", "argmax", "argmin", "argsort", "argwhere", "backward", "bool",
     "byte", "count_nonzero", "data_ptr", "detach", "detach_", "dim", "element_size", "eq",
     "equal", "ge", "get_device", "greater", "greater_equal", "gt", "histc", "int",
     "is_contiguous", "isclose", "isfinite", "isinf", "isnan", "item", "le", "less", "less_equal",
     "logical_and", "logical_not", "logical_or", "logical_xor", "long", "lt", "multinomial", "ne",
     "nelement", "new_empty", "new_ones", "new_zeros", "nonzero", "not_equal", "numel", "numpy",
     "short", "size", "stride", "tolist"}
)  # fmt: skip
# Methods that give a value and its place: the place is no part of the graph.
WITH_PLACES = frozenset({"max", "min", "topk", "sort", "median", "mode", "kthvalue", "cummax",
                         "cummin"})  # fmt: skip
OPERATORS = frozenset(
    f"operator.{name}"
    for name in ("add", "subtract", "multiply", "true_divide", "pow", "matmul", "negative",
                 "getitem", "iadd", "isubtract", "imultiply", "itrue_divide")
)  # fmt: skip
LEAVING_OPERATORS = frozenset(
    f"operator.{name}"
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "not", "in", "is", "bitwise_not")
)
# Python's own functions that make a number or a text of what they are given.
NUMBERS = frozenset(
    f"builtins.{name}"
    for name in ("float", "int", "bool", "str", "round", "len", "repr", "format", "print", "type",
                 "isinstance", "id", "hasattr", "range")
)  # fmt: skip
