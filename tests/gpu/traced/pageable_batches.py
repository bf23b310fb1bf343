"""Batches that go to the device from pageable memory."""

import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
rows = TensorDataset(torch.randn(512, 3, 64, 64), torch.arange(512) % 7)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64 * 64, 7)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for images, labels in DataLoader(rows, batch_size=64):
    images = images.to(device)  # expect-trace: MEM201
    labels = labels.to(device)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
