"""A meter that holds the graphs of all losses."""

import torch
from torch import nn


class Meter:
    def __init__(self):
        self.total = 0.0

    def update(self, value):
        self.total = self.total + value  # expect-trace: MEM502


model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
data = torch.utils.data.TensorDataset(torch.randn(1024, 512))
meter = Meter()
for (batch,) in torch.utils.data.DataLoader(data, batch_size=128):
    meter.update(model(batch).square().mean())
