"""Images in channels_last that are made row-major between two convolutions."""

import torch
from torch import nn

first = nn.Conv2d(16, 32, 3, padding=1).to(memory_format=torch.channels_last)
second = nn.Conv2d(32, 32, 3, padding=1).to(memory_format=torch.channels_last)
images = torch.randn(8, 16, 56, 56).to(memory_format=torch.channels_last)
with torch.no_grad():
    for _ in range(3):
        features = first(images).contiguous()  # expect-trace: MEM302
        out = second(features)
