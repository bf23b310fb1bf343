"""Tokens of a vision transformer that stay as the patches left them."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + self.linear(self.norm(x))  # expect-trace: MEM310, MEM311


class Tokens(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, stride=16)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)  # expect-trace: MEM308
        return self.blocks(x)


model = Tokens(384, 6)
images = torch.randn(8, 3, 224, 224)
with torch.no_grad():
    for _ in range(3):
        model(images)
