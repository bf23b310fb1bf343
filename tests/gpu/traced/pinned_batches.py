"""Batches that are pinned and copied without waiting."""

import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
rows = TensorDataset(torch.randn(512, 3, 64, 64), torch.arange(512) % 7)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64 * 64, 7)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for images, labels in DataLoader(rows, batch_size=64, pin_memory=device.type == "cuda"):
    images = images.to(device, non_blocking=True)
    labels = labels.to(device, non_blocking=True)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
