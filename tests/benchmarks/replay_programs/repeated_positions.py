"""Positions that are copied for every image of the batch."""

import torch

positions = torch.randn(1, 64, 56, 56)
grid = torch.randn(16, 64, 56, 56)
for _ in range(3):
    moved = grid + positions.repeat(16, 1, 1, 1)  # expect-trace: MEM307
