"""A mask that is made on the host in each step, and moved."""

import torch

device = torch.device("cuda")
weight = torch.nn.Parameter(torch.randn(1024, 1024, device=device))
optimizer = torch.optim.SGD([weight], lr=1e-3)
for _ in range(4):
    mask = torch.ones(1024, 1024).to(device)  # expect-trace: MEM204
    optimizer.zero_grad()
    (weight * mask).square().mean().backward()
    optimizer.step()
