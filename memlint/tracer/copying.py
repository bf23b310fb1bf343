"""Dense copies of arrays that are copied again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from memlint.tracer.callsite import SpotKey
from memlint.tracer.origins import Odd
from memlint.tracer.writes import sample

if TYPE_CHECKING:
    from memlint.tracer.recorder import Noted

_MOST_ARRAYS = 256


class Copying:
    """Which arrays have been copied last, and where."""

    def __init__(self) -> None:
        self._copied: dict[tuple[Any, ...], tuple[Odd, bytes, SpotKey]] = {}

    def note(self, record: Noted, source: torch.Tensor, storage: int, writes: int) -> None:
        """A copy was made of an array that is not row-major; ``writes`` is how often something was
        written into its storage."""
        key = (storage, source.storage_offset(), source.shape, source.stride())
        known, taken = self._copied.pop(key, None), sample(source)
        if known is not None and known[0].is_same(source, storage, writes) and known[1] == taken:
            record.again += 1
            record.copied_at = known[2]
            self._copied[key] = known
            return
        self._copied[key] = (Odd(source, writes), taken, record.spot)
        if len(self._copied) > _MOST_ARRAYS:
            del self._copied[next(iter(self._copied))]
