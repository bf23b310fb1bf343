"""Where odd layouts and arrays of a run come from, by the storage that they lie in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from memlint.tracer.callsite import SpotKey
from memlint.tracer.recent import Recent
from memlint.tracer.signatures import has_strides, is_odd, storage_of

if TYPE_CHECKING:
    from memlint.tracer.recorder import Noted

_MOST_STORAGES = 50_000
_MOST_MADE = 5000
_MOST_REPEATED = 1000

_free_weak_ref = torch.UntypedStorage._free_weak_ref


class Made(NamedTuple):
    """What made an array: operator, place, phase, and the dtype of the first operand."""

    name: str
    spot: SpotKey
    phase: str
    took: Any


class Odd:
    """Numbers in an odd layout: a part of a storage, and how often it has been written to.

    The storage is held on to weakly, so that no other takes its place unnoticed; ``writes`` is how
    often the tracer has seen that something was written into it."""

    __slots__ = ("_offset", "_storage", "_version", "_writes")

    def __init__(self, tensor: torch.Tensor, writes: int) -> None:
        # What torch's own ``StorageWeakRef`` does, at half its cost.
        self._storage: Any = tensor.untyped_storage()._weak_ref()
        self._offset = tensor.storage_offset()
        self._version = _version_of(tensor)
        self._writes = writes

    def __del__(self, free: Callable[[int], None] = _free_weak_ref) -> None:
        free(self._storage)

    def is_same(self, tensor: torch.Tensor, storage: int, writes: int) -> bool:
        """Whether a tensor, which lies in ``storage``, has the same numbers."""
        return (
            writes == self._writes
            and storage == self._storage
            and tensor.storage_offset() == self._offset
            and _version_of(tensor) == self._version
        )


def _version_of(tensor: torch.Tensor) -> int:
    """How often torch has counted a write into a tensor: it counts none in inference mode."""
    try:
        return tensor._version
    except RuntimeError:
        return 0


class Origins:
    """Where layouts were born, and what made arrays."""

    def __init__(self) -> None:
        self._born: Recent[tuple[int, tuple[int, ...]], SpotKey] = Recent(_MOST_STORAGES)
        # Storages are held weakly: so long as they are, no others have their identities.
        self._made: Recent[int, tuple[StorageWeakRef, Made]] = Recent(_MOST_MADE)
        self._repeated: Recent[int, tuple[StorageWeakRef, Noted]] = Recent(_MOST_REPEATED)

    def follow(
        self, record: Noted, operands: list[torch.Tensor], results: list[torch.Tensor]
    ) -> None:
        """Hand on where odd layouts were born, and what made arrays."""
        operator = record.operator
        if operator.repeats and results:
            held = StorageWeakRef(results[0].untyped_storage())  # type: ignore[no-untyped-call]
            self._repeated.put(storage_of(results[0]), (held, record))
        if record.traces:
            self._trace(record, operands, results)
        is_handed_on = operator.fresh or not operator.mutable
        odd = [one for one in results if is_odd(one)] if is_handed_on else []
        # Where the layouts of the operands were born is known from the first time they came.
        if len(record.births) < len(record.odd) or (odd and not operator.reorders):
            inherited = self._births_among(record, operands)
        else:
            inherited = None
        born = record.spot if operator.reorders or inherited is None else inherited
        for result in odd:
            self._born.put((storage_of(result), result.stride()), born)

    def _births_among(self, record: Noted, operands: list[torch.Tensor]) -> SpotKey | None:
        """Note where the layouts of the operands were born; gives the first such place."""
        inherited = None
        for index in record.odd:
            operand = operands[index]
            born = self._born.get((storage_of(operand), operand.stride()))
            if born is not None:
                inherited = inherited or born
                record.births.setdefault(index, born)
        return inherited

    def written(self, tensors: Iterable[torch.Tensor]) -> None:
        """Something is written into these."""
        if not len(self._repeated):
            return
        for one in tensors:
            repeated = self.repeated(one)
            if repeated is not None:
                repeated.written += 1

    def repeated(self, tensor: torch.Tensor) -> Noted | None:
        """The ``repeat`` that made a tensor, if one did."""
        if not len(self._repeated) or not has_strides(tensor):
            return None
        found = self._repeated.get(storage_of(tensor))
        return None if found is None else found[1]

    def _trace(
        self, record: Noted, operands: list[torch.Tensor], results: list[torch.Tensor]
    ) -> None:
        """Note what made the operands, and that this has made the results."""
        maker = self._maker_among(record, operands)
        if record.operator.fresh:
            for result in filter(has_strides, results):
                self._note_maker(record, storage_of(result), result, maker)

    def _maker_among(self, record: Noted, operands: list[torch.Tensor]) -> Made | None:
        """What made the operands that rules ask this of."""
        doubles = None
        for index, operand in enumerate(operands):
            double = operand.dtype is torch.float64
            if not (double or record.operator.moves) or not has_strides(operand):
                continue
            made = self._made.get(storage_of(operand))
            if made is not None:
                record.makers.setdefault(index, made[1])
                if double:
                    doubles = doubles or made[1]
        return doubles

    def _note_maker(
        self,
        record: Noted,
        storage: int,
        result: torch.Tensor,
        inherited: Made | None,
    ) -> None:
        took = record.operands[0][2] if record.operands else None
        own = Made(record.operator.name, record.spot, record.phase, took)
        if result.dtype is torch.float64 and inherited is not None:
            own = inherited
        held = StorageWeakRef(result.untyped_storage())  # type: ignore[no-untyped-call]
        self._made.put(storage, (held, own))
