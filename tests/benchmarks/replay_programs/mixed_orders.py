"""The sum of a contiguous and a transposed matrix."""

import torch

a = torch.randn(2048, 2048)
b = torch.randn(2048, 2048).t()
for _ in range(3):
    total = a + b  # expect-trace: MEM310
