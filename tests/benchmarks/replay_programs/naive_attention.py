"""Attention that writes its scores to memory."""

import torch


def attend(q, k, v):
    scores = q @ k.transpose(-2, -1) * 0.125
    weights = scores.softmax(-1)  # expect-trace: MEM508
    return weights @ v


q, k, v = torch.randn(3, 4, 8, 512, 64)
for _ in range(3):
    attend(q, k, v)
