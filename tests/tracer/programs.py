"""Small programs to be traced, as text: their findings need no timing to be told."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

HIDDEN_COPY = """\
import torch

images = torch.zeros(4, 16, 64, 32)


def flatten(batch):
    moved = batch.permute(0, 2, 3, 1)
    return moved.reshape(-1, 16)


def never(batch):
    return batch.permute(0, 2, 3, 1).reshape(-1, 16)


for _ in range(3):
    flatten(images)
"""
"""Three copies of 512 KiB, at line 8, which MEM312 reports of a run."""


def schema() -> Any:
    text = resources.files("memlint").joinpath("schemas/trace.schema.json").read_text("utf-8")
    return json.loads(text)


FACES = """\
import torch


def flatten(batch):
    return batch.permute(0, 2, 3, 1).reshape(-1, 16)


def never(batch):
    return batch.reshape(-1, 16)


def halfway(batch, wanted):
    total = batch.sum()
    if wanted:
        total = total.reshape(1)
    return total, batch.mean()


def make_array():
    return torch.zeros(64)


array = make_array()
images = torch.ones(4, 16, 64, 32)
for step in range(3):
    flatten(images)
    halfway(images, False)
    array.fill_(step)
"""
"""For the rules of ``seenpack``; its own rules have nothing to say of it."""
