"""A softmax along the slow axis."""

import torch

x = torch.randn(2048, 2048).t()
for _ in range(3):
    y = torch.softmax(x, dim=-1)  # expect-trace: MEM311
