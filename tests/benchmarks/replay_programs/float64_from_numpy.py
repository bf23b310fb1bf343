"""A scale from NumPy, in double precision."""

import numpy as np
import torch

scale = torch.from_numpy(np.linspace(0.5, 1.5, 1024))
x = torch.randn(2048, 1024)
for _ in range(3):
    y = x * scale  # expect-trace: MEM506
