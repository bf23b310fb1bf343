"""Torch: operations whose result is a tensor of its own."""

from __future__ import annotations

from memlint.analysis.knowledge import compute as to
from memlint.analysis.knowledge import views
from memlint.analysis.knowledge.model import Table, rows, table

_UNARY = "abs absolute neg negative sign sgn floor ceil round trunc frac square relu nan_to_num"
_FLOAT_UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan "
    "sigmoid erf erfc reciprocal logit lgamma digamma"
)
_BINARY = "add subtract sub mul multiply maximum minimum fmod remainder floor_divide"
_COMPARE = "eq ne lt le gt ge not_equal less less_equal greater greater_equal"

SHARED: Table = table(
    rows(to.elementwise, _UNARY, "x"),
    rows(to.float_result, _FLOAT_UNARY, "x"),
    rows(to.elementwise, _BINARY, "x, y", "y, x", "x, y.contiguous()"),
    rows(to.elementwise, "add mul", "x, 2", "x, y", "x, y[..., :1]", "y[:1], x", "y, x"),
    rows(to.float_result, "div divide true_divide atan2 pow hypot", "x, y", "y, x"),
    rows(to.float_result, "div pow", "x, 2.0", "x, y", "y, x"),
    rows(to.elementwise, _COMPARE, "x, y", "x, 0", options=("bool",)),
    rows(to.elementwise, "isnan isinf isfinite logical_not", "x", options=("bool",)),
    rows(to.elementwise, "logical_and logical_or logical_xor isclose", "x, y", options=("bool",)),
    rows(to.elementwise, "bitwise_not", "x > 0"),
    rows(to.elementwise, "bitwise_and bitwise_or bitwise_xor", "x > 0, y > 0"),
    rows(to.elementwise, "clamp clip", "x, 0.0, 1.0", "x, min=0.0"),
    rows(to.float_result, "lerp", "x, y, 0.5"),
    rows(to.float_result, "addcmul addcdiv", "x, y, y + 1"),
    rows(to.dense_same, "masked_fill", "x, x > 0, 0.5", options=("any",)),
    rows(to.reduction, "sum prod nansum", "x", "x, 0", "x, 1, True", "x, dim=-1"),
    rows(to.reduction, "mean amax amin std var norm", "x", "x, dim=-1", "x, dim=0"),
    rows(to.reduction, "mean sum amax", "x, dim=(0, 1)", "x, dim=1, keepdim=True", "x"),
    rows(to.reduction, "logsumexp", "x, 0", "x, dim=-1, keepdim=True"),
    rows(to.reduction, "argmax argmin", "x", "x, 0", "x, dim=-1", options=("int64",)),
    rows(to.reduction, "all any", "x", "x, 0", "x, dim=-1", options=("bool",)),
    rows(to.reduction, "count_nonzero", "x", "x, 0", options=("int64",)),
    rows(to.pair, "max min median", "x", "x, 0", "x, dim=-1, keepdim=True"),
    rows(to.matmul, "matmul", "x, y.transpose(-1, -2)"),
    rows(to.matmul, "mm", "x, y.t()"),
    rows(to.matmul, "bmm", "x, y.transpose(1, 2)"),
    rows(to.dense_unknown, "outer", "x.flatten(), y.flatten()"),
    rows(to.unknown_layout, "kron", "x, y"),
    rows(to.dense_same, "cumsum cumprod", "x, 0", "x, dim=-1"),
    rows(to.dense_same, "softmax log_softmax", "x, 0", "x, dim=-1"),
    rows(to.dense_same, "tril triu", "x", options=("any",)),
    rows(to.dense_unknown, "gather", "x, 0, torch.zeros(*x.shape, dtype=torch.int64)"),
    rows(to.dense_unknown, "index_select", "x, 0, torch.tensor([0, 1])"),
    rows(to.dense_unknown, "take_along_dim", "x, torch.zeros(*x.shape, dtype=torch.int64), 0"),
    rows(to.dense_unknown, "repeat_interleave", "x, 2", "x, 2, 0", "x, 2, dim=-1"),
    rows(to.dense_unknown, "tile", "x, (2, 1)", "x, (2, 2, 2)"),
    rows(to.unknown_layout, "flip", "x, (0,)", "x, (-1,)"),
    rows(to.unknown_layout, "roll", "x, 1", "x, 1, 0"),
    rows(to.dense_vector, "masked_select", "x, x > 0"),
    rows(to.unknown_layout, "nonzero argwhere", "x"),
    rows(to.unknown_layout, "argsort", "x", "x, 0"),
    rows(to.unknown_layout, "scatter", "x, 0, torch.zeros(1, 1, 1, dtype=torch.int64), 1.0"),
    rows(to.unknown_layout, "index_add", "x, 0, torch.tensor([0, 1]), y[:2]"),
    rows(to.unknown_layout, "rot90", "x"),
)
"""Functions of ``torch`` that are methods as well."""

METHODS: Table = table(
    rows(to.dense_unknown, "repeat", "x, 2, 1", "x, 2, 1, 1, 1"),
    rows(to.dense_unknown, "tile", "x, 2, 1", "x, 2, 1, 1, 1"),
    rows(to.unknown_layout, "inverse", "x @ x.mT + 1"),
)
"""Methods of tensors that are no functions, or take their arguments otherwise."""

FUNCTIONS: Table = table(
    rows(to.complex_result, "torch.polar torch.complex", "x, y", "y, x"),
    rows(views.as_complex, "torch.view_as_complex", "x", "x.reshape(-1, 2)"),
    rows(views.as_real, "torch.view_as_real", "torch.complex(x, x)", "torch.complex(x, x).mT"),
    rows(to.elementwise, "torch.where", "x > 0, x, y", "x > 0, x, 0.0", options=(None,)),
    rows(to.dense_unknown, "torch.tensordot", "x, y, x.dim()"),
    rows(to.unknown_layout, "torch.addmm", "x @ x.mT, x, y.t()"),
    rows(
        to.join_along,
        "torch.cat torch.concat torch.concatenate",
        "(x, y)",
        "[x, x], 1",
        "(x, y), dim=-1",
    ),
    rows(to.stack, "torch.stack", "(x, y)", "[x, x], 1", "(x, y), dim=-1"),
    rows(to.dense_unknown, "torch.cdist", "x, y"),
    rows(to.nothing_known, "torch.einsum", "'...ij->...ji', x"),
)
"""Functions by their full names."""

_NN = "torch.nn.functional."


def _functional(names: str) -> str:
    return " ".join(_NN + name for name in names.split())


FUNCTIONS |= table(
    rows(to.elementwise, _functional("relu relu6 hardtanh"), "x"),
    rows(
        to.float_result,
        _functional(
            "gelu silu elu selu celu softplus mish hardswish hardsigmoid "
            "leaky_relu tanh sigmoid softsign tanhshrink"
        ),
        "x",
    ),
    rows(to.dropout, _NN + "dropout", "x, 0.5", "x, p=0.1, training=False", "x, 0.5, True"),
    rows(to.dense_same, _functional("softmax log_softmax"), "x, 0", "x, dim=-1"),
    rows(to.dense_same, _NN + "layer_norm", "x, (x.shape[-1],)"),
    rows(to.unknown_layout, _functional("normalize"), "x", "x, dim=-1"),
    rows(to.dense_unknown, _NN + "linear", "x, y.reshape(-1, x.shape[-1])"),
    rows(to.dense_unknown, _NN + "embedding", "torch.tensor([0, 1]), x.reshape(-1, 2)"),
    rows(to.unknown_layout, _NN + "one_hot", "(x > 0).long()"),
    rows(to.unknown_layout, _NN + "pad", "x, (1, 1)"),
    rows(to.unknown_layout, _NN + "interpolate", "x, scale_factor=2"),
    rows(to.unknown_layout, _functional("max_pool2d avg_pool2d adaptive_avg_pool2d"), "x, 1"),
    rows(to.unknown_layout, _NN + "conv2d", "x, torch.ones(2, x.shape[1], 1, 1)"),
    rows(to.unknown_layout, _NN + "scaled_dot_product_attention", "x, y, y"),
    rows(to.scalar, _functional("mse_loss l1_loss smooth_l1_loss huber_loss"), "x, y"),
    rows(to.scalar, _NN + "cross_entropy", "x, torch.zeros_like(x)"),
)
