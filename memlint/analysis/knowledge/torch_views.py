"""Torch: operations that look at the same storage, and moves between formats and places."""

from __future__ import annotations

from memlint.analysis.knowledge import moves, views
from memlint.analysis.knowledge.model import Table, rows, table

_CASTS = {
    "float": "float32",
    "half": "float16",
    "bfloat16": "bfloat16",
    "double": "float64",
    "int": "int32",
    "long": "int64",
    "short": "int16",
    "bool": "bool",
}

SHARED: Table = table(
    rows(views.transpose, "transpose swapaxes swapdims", "x, 0, 1", "x, 1, 2", "x, -1, -2"),
    rows(views.transpose, "transpose", "x, dim0=0, dim1=-1"),
    rows(views.permute, "permute", "x, (1, 0)", "x, (0, 2, 1)", "x, (0, 2, 3, 1)"),
    rows(views.reverse, "t", "x"),
    rows(views.last_two, "adjoint", "x"),
    rows(views.movedim, "movedim moveaxis", "x, 0, -1", "x, 2, 0", "x, 1, 2", "x, (0, 1), (1, 0)"),
    rows(views.expand, "broadcast_to", "x, (7, *x.shape)", "x, (3, 2, 4, 5)"),
    rows(views.narrow, "narrow", "x, 0, 0, 2", "x, 1, 0, 2", "x, dim=-1, start=1, length=1"),
    rows(views.select, "select", "x, 0, 0", "x, 1, 1", "x, -1, 0"),
    rows(views.squeeze, "squeeze", "x", "x, 0", "x, 1", "x, dim=-1", "x, (0, 1)"),
    rows(views.unsqueeze, "unsqueeze", "x, 0", "x, 1", "x, dim=-1"),
    rows(views.reshape, "reshape", "x, (-1,)", "x, (6, -1)", "x, (2, -1, 2)", "x, (3, 2, -1)"),
    rows(views.flatten, "flatten", "x", "x, 1", "x, 0, 1", "x, start_dim=-2"),
    rows(moves.ravel, "ravel", "x"),
    rows(views.unflatten, "unflatten", "x, 0, (1, -1)", "x, -1, (2, 2)", "x, 1, (-1, 3)"),
    rows(views.diagonal, "diagonal", "x", "x, 0, 1, 2", "x, dim1=0, dim2=-1"),
    rows(views.strided, "as_strided", "x, (2, 2), (2, 1)", "x, (2, 3), (1, 2)"),
    rows(views.chunk, "chunk", "x, 2", "x, 2, 1", "x, 2, dim=-1"),
    rows(views.split, "split", "x, 2", "x, 1, 1", "x, 2, dim=-1"),
    rows(views.split, "split_with_sizes", "x, [1, 1]", "x, [1, 2], 1"),
    rows(views.tensor_split, "tensor_split", "x, 2", "x, 2, 1", "x, (1,), dim=-1", "x, 3, dim=-1"),
    rows(views.unbind, "unbind", "x", "x, 1", "x, dim=-1"),
    rows(views.same, "detach", "x"),
    rows(views.same, "positive resolve_conj resolve_neg", "x"),
    rows(moves.clone, "clone", "x", "x, memory_format=torch.contiguous_format"),
    rows(moves.clone, "clone", "x", "x, memory_format=torch.channels_last"),
)
"""Functions of ``torch`` that are methods as well."""

METHODS: Table = table(
    rows(views.permute, "permute", "x, 1, 0", "x, 2, 0, 1", "x, 0, 2, 3, 1", "x, 0, 3, 1, 2"),
    rows(views.expand, "expand", "x, 7, -1, -1, -1", "x, 4, 3", "x, (3, 2, 4, 5)", "x, -1, 5"),
    rows(views.expand_as, "expand_as", "x, y"),
    rows(views.unfold, "unfold", "x, 0, 2, 1", "x, 1, 2, 2", "x, -1, 2, 1"),
    rows(views.reshape, "view", "x, -1", "x, 6, -1", "x, (2, -1, 2)", "x, 3, 2, -1"),
    rows(views.reshape, "reshape", "x, -1", "x, 6, -1", "x, (2, -1, 2)", "x, 2, 3, 2, -1"),
    rows(views.reshape_as, "view_as reshape_as", "x, y"),
    rows(moves.contiguous, "contiguous", "x", "x, memory_format=torch.channels_last"),
    rows(moves.to, "to", "x, torch.float16", "x, 'cpu'", "x, dtype=torch.float32", "x, y"),
    rows(moves.as_type, "type", "x, torch.float16", "x, torch.float32"),
    rows(moves.as_type, "type_as", "x, y"),
    rows(moves.to_device, "cpu", "x", options=("cpu",)),
    rows(moves.to_device, "cuda", options=("cuda",)),
    rows(moves.pin, "pin_memory"),
    rows(moves.shared_with, "numpy", "x", options=("numpy",)),
    rows(views.same, "requires_grad_ share_memory_ detach_", "x"),
    rows(views.same, "abs_ neg_ exp_ sqrt_ sigmoid_ tanh_ relu_ zero_ floor_ round_", "x"),
    rows(views.same, "reciprocal_ rsqrt_ log_ sin_ cos_", "x"),
    rows(views.same, "normal_ uniform_ random_ bernoulli_ exponential_", "x"),
    rows(views.same, "add_ sub_ mul_ div_ copy_ fill_ pow_", "x, 2"),
    rows(views.same, "clamp_", "x, 0, 1"),
    rows(views.same, "clamp_min_ clamp_max_", "x, 1"),
    rows(views.same, "masked_fill_", "x, x > 0, 0.5"),
    rows(views.same, "lerp_", "x, y, 0.5"),
    rows(views.same, "addcmul_ addcdiv_", "x, y, y + 1"),
    rows(views.same, "index_fill_", "x, 0, torch.tensor([0]), 1.0"),
)
"""Methods of tensors that are no functions, or take their arguments otherwise."""
for _name, _dtype in _CASTS.items():
    METHODS |= rows(moves.cast, _name, "x", options=(_dtype,))
