"""Copies between devices that nobody has waited for yet.

Waiting dispatches nothing: it is heard of through the callbacks that torch has for its own
sanitizer.  Whatever waits is taken to wait for everything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from memlint.tracer.operands import move_of
from memlint.tracer.records import Operation
from memlint.tracer.signatures import has_strides, storage_of

if TYPE_CHECKING:
    from memlint.tracer.recorder import Noted

_MOST_PENDING = 1000


class Pending:
    """Host memory that is being copied, by storage: from it, or into it."""

    def __init__(self) -> None:
        # Storages are held weakly: so long as they are, no others have their identities.
        self._read: dict[int, tuple[StorageWeakRef, Noted]] = {}
        self._written: dict[int, tuple[StorageWeakRef, Noted]] = {}

    def __bool__(self) -> bool:
        return bool(self._read or self._written)

    def note(self, record: Noted, operands: list[torch.Tensor], made: Operation,
             result: torch.Tensor) -> None:  # fmt: skip
        """A copy has been started; ``made`` is what is known of it as plain data."""
        move = move_of(made)
        if move is None or move.waits:
            self.clear()
            return
        if len(self._read) + len(self._written) >= _MOST_PENDING:
            self.clear()
        if move.to_device and move.source.pinned:
            self._read[storage_of(operands[-1])] = _held(operands[-1], record)
        elif move.to_host:
            self._written[storage_of(result)] = _held(result, record)

    def touch(self, record: Noted, operands: list[torch.Tensor]) -> None:
        """Another operation has run on these operands."""
        if record.operator.short == "_local_scalar_dense" and operands[0].is_cuda:
            self.clear()
            return
        for index, one in enumerate(operands):
            if not has_strides(one) or one.is_cuda:
                continue
            storage = storage_of(one)
            found = self._written.get(storage)
            if found is None and record.operator.mutable and not index:
                found = self._read.get(storage)
            if found is not None and not record.operator.views:
                copy = found[1]
                copy.conflicts += 1
                copy.conflict_at = copy.conflict_at or record.spot

    def clear(self, *_: object) -> None:
        """Something has waited."""
        self._read.clear()
        self._written.clear()

    def listen(self) -> Callable[[], None]:
        """Hear of it when something waits; gives what ends that."""
        from torch.cuda import _gpu_trace as trace

        torch._C._activate_gpu_trace()
        registries = (
            trace.DeviceSynchronizationCallbacks,
            trace.StreamSynchronizationCallbacks,
            trace.EventSynchronizationCallbacks,
        )
        for one in registries:
            one.callback_list.append(self.clear)

        def stop() -> None:
            for one in registries:
                one.callback_list.remove(self.clear)

        return stop


def _held(tensor: torch.Tensor, record: Noted) -> tuple[StorageWeakRef, Noted]:
    return StorageWeakRef(tensor.untyped_storage()), record  # type: ignore[no-untyped-call]
