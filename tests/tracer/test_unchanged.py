"""The traced program computes the same, bit by bit, as without the tracer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from torch import nn

from tests.tracer.tracing import traced


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.2, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 50)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.body(self.embed(words)))
        return out


def transformer() -> tuple[nn.Module, torch.Tensor]:
    return Transformer(), torch.randint(0, 50, (4, 16))


def convolutions() -> tuple[nn.Module, torch.Tensor]:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout2d(0.3),
        nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(16, 5),
    )  # fmt: skip
    return model, torch.randn(4, 3, 24, 24)


def channels_last() -> tuple[nn.Module, torch.Tensor]:
    model, x = convolutions()
    return model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


Make = Callable[[], tuple[nn.Module, torch.Tensor]]


def _train(make: Make, *, watched: bool) -> list[torch.Tensor]:
    torch.manual_seed(3)
    model, x = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    kept = []
    with traced(warmup=1, profile_step=True) if watched else nullcontext():
        for _ in range(4):
            out = model(x)
            loss = out.square().mean() + torch.rand(()) * 0.1
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            kept.append(out.detach())
    return [*kept, *(one.detach() for one in model.parameters()), torch.get_rng_state()]


@pytest.mark.parametrize("make", [transformer, convolutions, channels_last])
def test_training_with_dropout_gives_the_same_bits(make: Make) -> None:
    bare, watched = _train(make, watched=False), _train(make, watched=True)
    for one, other in zip(bare, watched, strict=True):
        assert one.stride() == other.stride()
        assert torch.equal(one, other)


@pytest.mark.parametrize("make", [transformer, convolutions, channels_last])
def test_evaluation_gives_the_same_bits_under_inference_mode(make: Make) -> None:
    torch.manual_seed(3)
    model, x = make()
    model.eval()
    with torch.inference_mode():
        bare = model(x)
        with traced():
            watched = model(x)
    assert bare.stride() == watched.stride()
    assert torch.equal(bare, watched)
