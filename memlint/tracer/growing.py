"""Concatenations that take up what they have made before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from memlint.tracer.callsite import CallSites, SpotKey
from memlint.tracer.records import Growth
from memlint.tracer.signatures import Signature, has_strides, operand_of, signature, storage_of

if TYPE_CHECKING:
    from memlint.tracer.recorder import Noted

_MOST_PLACES, _MOST_CHAINS = 4096, 256


class _Chain:
    """An array that grows: its last state, and what the growth began with."""

    __slots__ = ("began_with", "elements", "storage")

    def __init__(self, result: torch.Tensor, began_with: Signature | None) -> None:
        # Weak: so long as it is held, no other storage has its identity.
        self.storage = StorageWeakRef(result.untyped_storage())  # type: ignore[no-untyped-call]
        self.elements = result.numel()
        self.began_with = began_with


class _Place:
    """One concatenation in the program; several arrays may grow there in turns."""

    __slots__ = ("chains", "count", "first", "largest", "most", "name", "nbytes", "records",
                 "rounds", "step", "steps")  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.chains: dict[int, _Chain] = {}
        self.largest: Signature | None = None
        # What the growth began with that led to the largest result.
        self.first: Signature | None = None
        self.most = self.rounds = 0
        self.records: dict[int, int] = {}
        self.count = self.steps = self.nbytes = 0
        self.step = -1

    def grown(self, operands: list[torch.Tensor], result: torch.Tensor) -> _Chain | None:
        """The array that a result is longer than, which it takes up; it is the last state now of
        that, or of another array."""
        found = None
        for one in operands:
            chain = self.chains.get(storage_of(one)) if has_strides(one) else None
            if chain is not None and result.numel() > chain.elements:
                found = self.chains.pop(storage_of(one))
                break
        began = None if found is None else found.began_with or signature(result)
        self.chains[storage_of(result)] = _Chain(result, began)
        if len(self.chains) > _MOST_CHAINS:
            del self.chains[next(iter(self.chains))]
        return found


class Growing:
    """The concatenations of a run, by their places."""

    def __init__(self) -> None:
        self._places: dict[SpotKey, _Place] = {}

    def note(
        self,
        record: Noted,
        operands: list[torch.Tensor],
        results: list[torch.Tensor],
        step: int,
    ) -> None:
        """A concatenation has run."""
        place = self._places.get(record.spot)
        if place is None:
            if len(self._places) >= _MOST_PLACES:
                return
            place = self._places[record.spot] = _Place(record.operator.name)
        if not results or not has_strides(results[0]):
            return
        result = results[0]
        chain = place.grown(operands, result)
        if chain is None:
            return
        place.count += 1
        place.records[id(record)] = place.records.get(id(record), 0) + 1
        place.nbytes += result.numel() * result.element_size()
        place.rounds += chain.began_with is None
        if result.numel() > place.most:
            place.most = result.numel()
            place.largest = signature(result)
            place.first = chain.began_with or place.largest
        if place.step != step:
            place.step = step
            place.steps += 1

    def count(self, record: Noted) -> int:
        """How often a record's first operand was what its place had made before."""
        place = self._places.get(record.spot)
        return 0 if place is None else place.records.get(id(record), 0)

    def records(self, sites: CallSites) -> Iterator[Growth]:
        """The places where something grew."""
        for spot, place in self._places.items():
            if place.largest is not None and place.first is not None:
                yield Growth(
                    sites.site(spot),
                    place.name,
                    operand_of(place.largest),
                    place.count,
                    place.steps,
                    place.nbytes,
                    operand_of(place.first),
                    place.rounds,
                )
