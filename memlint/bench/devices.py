"""Devices of torch."""

from __future__ import annotations

from collections.abc import Callable


def settling(device: str) -> Callable[[], object]:
    """What waits until a device has done what it was given."""
    import torch

    return torch.cuda.synchronize if device.startswith("cuda") else lambda: None
