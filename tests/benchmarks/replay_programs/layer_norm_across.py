"""A normalization along the slow axis."""

import torch

x = torch.randn(2048, 2048).t()
for _ in range(3):
    y = torch.nn.functional.layer_norm(x, (2048,))  # expect-trace: MEM311
