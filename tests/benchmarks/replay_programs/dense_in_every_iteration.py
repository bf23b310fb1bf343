"""A weight that is made dense again in every iteration."""

import torch

weight = torch.randn(1024, 1024)
state = torch.randn(16, 1024)
for _ in range(6):
    state = torch.tanh(state @ weight.t().contiguous())  # expect-trace: MEM306
