"""Concatenations that take up what they have made the time before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from memlint.tracer.callsite import CallSites, SpotKey
from memlint.tracer.records import Growth
from memlint.tracer.signatures import Signature, has_strides, operand_of, signature

if TYPE_CHECKING:
    from memlint.tracer.recorder import Noted

_MOST_PLACES = 4096


class _Place:
    """One concatenation in the program."""

    __slots__ = (
        "began_with",
        "count",
        "elements",
        "first",
        "grows",
        "largest",
        "last",
        "most",
        "name",
        "nbytes",
        "records",
        "rounds",
        "step",
        "steps",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        # Weak: so long as it is held, no other storage has its identity.
        self.last: StorageWeakRef | None = None
        self.largest: Signature | None = None
        # What this growth began with, and the one that led to the largest result.
        self.began_with: Signature | None = None
        self.first: Signature | None = None
        self.most = self.rounds = 0
        self.grows = False
        self.records: dict[int, int] = {}
        self.count = self.steps = self.nbytes = self.elements = 0
        self.step = -1


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
        grows = _is_among(place.last, operands) and result.numel() > place.elements
        if grows:
            place.count += 1
            place.records[id(record)] = place.records.get(id(record), 0) + 1
            place.nbytes += result.numel() * result.element_size()
            if not place.grows:
                place.rounds += 1
                place.began_with = signature(result)
            if result.numel() > place.most:
                place.most = result.numel()
                place.largest, place.first = signature(result), place.began_with
            if place.step != step:
                place.step = step
                place.steps += 1
        place.grows = grows
        place.elements = result.numel()
        place.last = StorageWeakRef(result.untyped_storage())  # type: ignore[no-untyped-call]

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


def _is_among(last: StorageWeakRef | None, operands: list[torch.Tensor]) -> bool:
    if last is None or last.expired():  # type: ignore[no-untyped-call]
        return False
    return any(has_strides(one) and one.untyped_storage()._cdata == last.cdata for one in operands)
