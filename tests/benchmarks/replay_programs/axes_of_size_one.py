"""Strides of axes of size 1 say nothing: batches of one, single channels, single rows."""

import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.Conv2d(32, 64, 1), nn.Conv2d(64, 32, 3))
model.to(memory_format=torch.channels_last)
images = torch.randn(4, 1, 96, 96)
rows = torch.randn(65536, 1).t()
with torch.no_grad():
    for image in images:
        model(image.unsqueeze(0).to(memory_format=torch.channels_last))
        torch.softmax(rows, -1)
        nn.functional.layer_norm(torch.randn(256, 1, 256).transpose(0, 1), (256,))
        rows + torch.randn(1, 65536)
