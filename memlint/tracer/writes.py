"""How often something was written into the arrays of a run.

torch counts that as well, but not what is written through ``.data``, nor into tensors of inference
mode.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from functools import lru_cache

import torch

from memlint.layout import Strided, span
from memlint.tracer.recent import Recent
from memlint.tracer.signatures import has_strides, storage_of

_MOST_STORAGES = 20_000
_SAMPLED = 512
# All memory from an address on, to be read where there is an array: making a type of each size
# would cost more than the reading.
_Memory = ctypes.c_char * (sys.maxsize >> 1)


class Writes:
    """The writes into storages, by their identities.

    One that takes the place of another goes on from its count: whoever compares counts has to
    hold on to the storage."""

    def __init__(self) -> None:
        self._counts: Recent[int, int] = Recent(_MOST_STORAGES)

    def note(self, tensors: Iterable[torch.Tensor]) -> None:
        """Something is written into these."""
        counts = self._counts
        for storage in map(storage_of, filter(has_strides, tensors)):
            counts.put(storage, (counts.get(storage) or 0) + 1)

    def count(self, storage: int) -> int:
        """How often something was written into a storage."""
        return self._counts.get(storage) or 0


def sample(tensor: torch.Tensor) -> bytes:
    """Some bytes of an array in host memory, spread over it; of others none.

    NumPy can write into what a tensor holds, which no operation tells of."""
    if not tensor.is_cpu or not tensor.numel():
        return b""
    nbytes = _span(tensor.shape, tensor.stride()) * tensor.element_size()
    every = memoryview(_Memory.from_address(tensor.data_ptr())).cast("B")
    # An odd step meets each byte of the elements in turn.
    return every[: nbytes : max(nbytes // _SAMPLED, 1) | 1].tobytes()


@lru_cache(maxsize=1024)
def _span(shape: torch.Size, strides: tuple[int, ...]) -> int:
    """The elements between the first and the last one of an array."""
    return span(Strided(shape, strides, 1))
