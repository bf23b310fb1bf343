"""How often something was written into the arrays of a run.

torch counts that as well, but not what is written through ``.data``, nor into tensors of inference
mode.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

import torch

from memlint.layout import Strided, span
from memlint.tracer.recent import Recent
from memlint.tracer.signatures import has_strides, storage_of

_MOST_STORAGES = 20_000
_SAMPLED = 512


class Writes:
    """The writes into storages, by their identities.

    One that takes the place of another goes on from its count: whoever compares counts has to
    hold on to the storage."""

    def __init__(self) -> None:
        self._counts: Recent[int, int] = Recent(_MOST_STORAGES)

    def note(self, tensors: Iterable[torch.Tensor]) -> None:
        """Something is written into these."""
        for one in tensors:
            if has_strides(one):
                storage = storage_of(one)
                self._counts.put(storage, (self._counts.get(storage) or 0) + 1)

    def count(self, tensor: torch.Tensor) -> int:
        """How often something was written into a tensor's storage."""
        return self._counts.get(storage_of(tensor)) or 0


def sample(tensor: torch.Tensor) -> bytes:
    """Some bytes of an array in host memory, spread over it; of others none.

    NumPy can write into what a tensor holds, which no operation tells of."""
    if not tensor.is_cpu or not tensor.numel():
        return b""
    size = tensor.element_size()
    nbytes = span(Strided(tuple(tensor.shape), tuple(tensor.stride()), size)) * size
    every = (ctypes.c_char * nbytes).from_address(tensor.data_ptr())
    # An odd step meets each byte of the elements in turn.
    return memoryview(every).cast("B")[:: max(nbytes // _SAMPLED, 1) | 1].tobytes()
