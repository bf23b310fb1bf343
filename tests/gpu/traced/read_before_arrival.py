"""A result that is read on the host before its copy has arrived."""

import torch

device = torch.device("cuda")
weight = torch.randn(2048, 2048, device=device)
optimizer = torch.optim.SGD([torch.nn.Parameter(weight)], lr=1e-3)
for _ in range(4):
    host = (weight @ weight).to("cpu", non_blocking=True)  # expect-trace: MEM203
    host.sum()
    optimizer.step()
