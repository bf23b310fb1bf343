"""Attention whose heads are split and joined by reshapes that have to copy."""

import torch


def split(x, heads):
    batch, length, width = x.shape
    x = x.view(batch, length, heads, width // heads)
    x = x.permute(0, 2, 1, 3)
    return x.reshape(batch * heads, length, width // heads)  # expect-trace: MEM312


def join(x, batch):
    _, length, width = x.shape
    x = x.view(batch, -1, length, width).transpose(1, 2)
    return x.reshape(batch, length, -1)  # expect-trace: MEM312


q, k, v = torch.randn(3, 8, 256, 512)
for _ in range(3):
    heads = [split(one, 8) for one in (q, k, v)]
    mixed = torch.nn.functional.scaled_dot_product_attention(*[one[None] for one in heads])[0]
    out = join(mixed, 8)
