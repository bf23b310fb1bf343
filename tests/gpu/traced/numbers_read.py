"""A number that is read from the device in each step."""

import torch

device = torch.device("cuda")
weight = torch.randn(512, 512, device=device, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1e-3)
total = 0.0
for _ in range(6):
    loss = (weight @ weight).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()  # expect-trace: MEM205
