"""Functions of torch that make tensors of nothing but numbers, and so could make them anywhere."""

from __future__ import annotations

EXACT = frozenset(
    f"torch.{name}"
    for name in ("zeros", "ones", "empty", "full", "eye", "arange", "tril_indices", "triu_indices")
)
"""Those that give the same numbers on each device."""

ROUNDED = frozenset(
    f"torch.{name}"
    for name in ("linspace", "logspace", "range", "hann_window", "hamming_window", "kaiser_window")
)
"""Those whose last digit may depend on the device."""

RANDOM = frozenset(f"torch.{name}" for name in ("rand", "randn", "randint", "randperm", "normal"))
"""Those that draw numbers; each kind of device has a generator of its own."""

COUNTING = frozenset({"torch.arange", "torch.range"})
"""Those that give integers: made in another dtype at once, they may round otherwise."""

FACTORIES = EXACT | ROUNDED | RANDOM
"""All of them take ``device``."""
