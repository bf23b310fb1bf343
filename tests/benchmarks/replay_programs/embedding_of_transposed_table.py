"""Lookups in a table that is stored by columns."""

import torch

table = torch.randn(256, 20_000).t()
words = torch.randint(0, 20_000, (32, 128))
for _ in range(4):
    found = torch.nn.functional.embedding(words, table)  # expect-trace: MEM311
