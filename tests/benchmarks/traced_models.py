"""The models whose training steps are timed with and without the tracer."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Step = Callable[[], object]


class Block(nn.Module):
    """A transformer block with normalization first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.between(x))  # type: ignore[no-any-return]


class Transformer(nn.Module):
    """Words in, scores of the next word out."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(1000, width)
        self.blocks = nn.Sequential(*[Block(width, 4) for _ in range(depth)])
        self.head = nn.Linear(width, 1000)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.embed(words)))  # type: ignore[no-any-return]


class ViT(nn.Module):
    """Patches of images through the same blocks."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, stride=16)
        self.blocks = nn.Sequential(*[Block(width, 4) for _ in range(depth)])
        self.head = nn.Linear(width, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2).contiguous()
        return self.head(self.blocks(x).mean(1))  # type: ignore[no-any-return]


class Residual(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.body(x))


def _training(model: nn.Module, inputs: torch.Tensor, classes: int) -> Step:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, foreach=True)
    out = model(inputs)
    target = torch.randint(0, classes, out.shape[:-1]).flatten()

    def step() -> None:
        loss = nn.functional.cross_entropy(model(inputs).flatten(0, -2), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def tiny_transformer() -> Step:
    """Operations of a few microseconds: the dearest case for any tracer."""
    return _training(Transformer(32, 8), torch.randint(0, 1000, (2, 16)), 1000)


def transformer() -> Step:
    """As many operations, of the usual length: 0.14 s of processor time in all."""
    return _training(Transformer(128, 8), torch.randint(0, 1000, (12, 64)), 1000)


def cnn() -> Step:
    """A residual network of convolutions."""
    layers = [Residual(32) for _ in range(6)]
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(32, 10),
    )  # fmt: skip
    return _training(model, torch.randn(4, 3, 48, 48), 10)


def vit() -> Step:
    """A vision transformer."""
    return _training(ViT(128, 8), torch.randn(4, 3, 128, 128), 10)


MODELS: dict[str, Callable[[], Step]] = {
    "tiny transformer": tiny_transformer,
    "transformer": transformer,
    "CNN": cnn,
    "ViT": vit,
}
