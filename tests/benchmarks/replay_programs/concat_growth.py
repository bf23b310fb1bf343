"""Rows that are collected by joining them to what there is."""

import torch

rows = torch.randn(400, 256)
bank = torch.empty(0, 256)
for row in rows:
    bank = torch.cat([bank, row[None]])  # expect-trace: MEM501
