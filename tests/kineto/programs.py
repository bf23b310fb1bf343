"""Programs with known faults, as text: what is told of them must stand on the same lines whether
the tracer or a profiler has watched them."""

from __future__ import annotations

FAULTS = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.GELU())

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Encoder(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.proj = nn.Conv2d(3, width, 16, stride=16)
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])

    def forward(self, image):
        x = self.proj(image).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return x


def softmaxed(table):
    view = table.t()
    probs = torch.softmax(view, dim=-1)
    total = probs.sum()
    if total > 3:
        total = total + 1
    return total


def attention(q, k, v):
    scores = q @ k.transpose(-2, -1)
    weights = scores.softmax(-1)
    out = weights @ v
    return out.transpose(1, 2).reshape(out.shape[0], out.shape[2], -1)


model = Encoder(96, 3)
table = torch.randn(512, 512)
index = torch.randint(0, 512, (1024,))
q = torch.randn(2, 4, 128, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def main():
    for step in range(2):
        optimizer.zero_grad()
        image = torch.randn(4, 3, 128, 128)
        loss = model(image).square().mean()
        loss.backward()
        optimizer.step()
        total = softmaxed(table)
        found = F.embedding(index, table.t()).sum()
        attention(q, q, q)
        mixed = table + table.t()
        other = table.t() * table
        wide = torch.ones(512, 512, dtype=torch.float64)
        narrow = table * wide
        for number in range(3):
            found.item()
            float(total)
"""
"""A transposed stream, strided operands, mixed orders, a copy of ``reshape``, stored scores,
float64 entering, numbers read three times a step."""

CONVOLUTIONS = """\
import functools

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        y = F.relu(self.norm(self.first(x)))
        y = y.contiguous()
        return self.second(y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.body = nn.Sequential(Residual(16), Residual(16))
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = self.body(self.stem(x))
        return self.head(x.mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.heads = heads

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = (q @ k.transpose(-2, -1)) * 0.1
        attn = attn.softmax(dim=-1)
        x = (attn @ v).transpose(1, 2).reshape(B, N, C)
        return self.out(x)


def decorated(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)

    return inner


@decorated
def helper(a, b):
    if a.shape[0] > 3:
        return a * b.t()
    return a - b.t()


@torch.no_grad()
def evaluate(a):
    parts = [torch.relu(a.t()) + a for _ in range(2)]
    return torch.stack(parts)


def lambdas(a):
    f = lambda x: torch.softmax(x.t(), -1)
    g = lambda x: x.t().softmax(-1)
    return f(a) + g(a)


big = torch.randn(300, 300)
net = Net().to(memory_format=torch.channels_last)
attention = Attention(64, 4)
optimizer = torch.optim.AdamW([*net.parameters(), *attention.parameters()], lr=1e-3)
images = TensorDataset(torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,)))
loader = DataLoader(images, batch_size=8)


def train():
    losses = []
    for x, y in loader:
        x = x.to(memory_format=torch.channels_last)
        optimizer.zero_grad()
        out = net(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        tokens = torch.randn(4, 128, 64)
        attention(tokens).sum().backward()
    return losses


def main():
    train()
    helper(big, big)
    evaluate(big)
    lambdas(big)
"""
"""channels_last that is lost, copies of ``reshape`` in attention, decorators, comprehensions."""

AMBIGUOUS = """\
import torch

big = torch.randn(300, 300)


def main():
    for number in range(3):
        try:
            if number == 1:
                raise ValueError
            one = big.t() + big
            two = big.t().clone() + big
        except ValueError:
            one = big + big.t()
"""
"""Sums of which a profiler does not tell one from the other."""

WATCH = """\
import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile

import memlint
import {name} as program

with memlint.trace(warmup=0, replay=False, quiet=True, output="live.json"):
    program.main()
with profile(
    activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True
) as profiler:
    program.main()
profiler.export_chrome_trace("profile.json.gz")
"""
"""Runs a program under the tracer, then under a profiler."""
