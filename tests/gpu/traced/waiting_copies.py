"""Pinned batches whose copies the host waits for."""

import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
rows = TensorDataset(torch.randn(512, 3, 64, 64))
for (images,) in DataLoader(rows, batch_size=64, pin_memory=device.type == "cuda"):
    images = images.to(device)  # expect-trace: MEM202
    images.mean()
