"""A convolution whose weight is channels_last and whose images are not."""

import torch
from torch import nn

torch.set_num_threads(1)
model = nn.Conv2d(32, 32, 3, padding=1).to(memory_format=torch.channels_last)
images = torch.randn(8, 32, 56, 56)
with torch.no_grad():
    for _ in range(3):
        out = model(images)  # expect-trace: MEM302
