"""Programs written for timing: a small clean one, a small one with findings, growing ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

# Imports what the gate looks for, so that it is parsed, and holds nothing to report.
CLEAN = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Head(nn.Module):
    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, classes)

    def forward(self, x):
        return self.out(self.norm(x))


def train(features, labels, steps: int) -> float:
    loader = DataLoader(TensorDataset(features, labels), batch_size=64, shuffle=True)
    head = Head(features.shape[1], int(labels.max()) + 1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    total = 0.0
    for _, (x, y) in zip(range(steps), loader):
        loss = nn.functional.cross_entropy(head(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / steps
"""

# One function and one class with a finding each of two families; `{n}` makes names unique.
FINDINGS = """\
import numba
import torch
from torch import nn
from torch.utils.data import DataLoader


@numba.njit
def rescale_{n}(image, gain, out):
    for column in range(image.shape[1]):
        for row in range(image.shape[0]):
            out[row, column] = image[row, column] * gain
    return out


class Trainer_{n}:
    def __init__(self, model, dataset):
        self.device = torch.device("cuda")
        self.model = model.to(self.device)
        self.loader = DataLoader(dataset, batch_size=32, num_workers=4, shuffle=True)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)

    def epoch(self):
        seen = 0
        for images, labels in self.loader:
            images = images.to(self.device)
            labels = labels.to(self.device)
            loss = self.criterion(self.model(images), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            seen += len(labels)
        return seen
"""


def findings(number: int = 0) -> str:
    """The small program with findings, its names made unique by ``number``."""
    return FINDINGS.replace("{n}", str(number))


def repeated(size: int) -> str:
    """The program with findings, over and over under new names, about ``size`` bytes."""
    copies = max(1, size // len(findings()))
    return "\n\n".join(findings(number) for number in range(copies))


def _pieces(modules: Sequence[Path]) -> Iterator[str]:
    for module in modules:
        lines = module.read_text(encoding="utf-8-sig").splitlines(keepends=True)
        # Only the first statement of a file may be a __future__ import.
        yield "".join(line for line in lines if not line.startswith("from __future__"))


def concatenated(modules: Sequence[Path], size: int) -> str:
    """Real modules one after the other in one file, about ``size`` bytes."""
    text = ""
    for piece in _pieces(modules):
        if len(text) + len(piece) > size:
            continue
        text += piece + "\n"
    return text
