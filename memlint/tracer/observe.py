"""Records to the rules that ask for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from memlint.rule import Rule, observers
from memlint.tracer.chains import attentions, lost_formats, mixed_formats, repeated_arrays
from memlint.tracer.records import InnerCopy, Operation, Record, Site, StoredScores, Stream
from memlint.tracer.sightings import Sighting

_VIEWS = frozenset(
    {"view", "t", "transpose", "permute", "expand", "detach", "alias", "as_strided", "select",
     "slice", "unsqueeze", "squeeze", "split", "unbind", "_unsafe_view", "chunk", "unfold"}
)  # fmt: skip


def streams_of(operations: Sequence[Operation]) -> list[Stream]:
    """The odd layouts of a run, by where they were born, with the operations that took them."""
    births = _births(operations)
    streams: dict[Site, Stream] = {}
    for operation in operations:
        if operation.short in _VIEWS:
            continue
        for index, born in operation.births.items():
            operand = operation.operands[index]
            stream = streams.setdefault(born, Stream(born, operand, births.get(born, 1)))
            if operand.array.nbytes > stream.largest.array.nbytes:
                stream.largest = operand
            if operation not in stream.takers:
                stream.takers.append(operation)
    return list(streams.values())


def _births(operations: Iterable[Operation]) -> dict[Site, int]:
    """How often something came up in an odd layout, by places."""
    found: dict[Site, int] = {}
    for one in operations:
        if any(it.array.has_strides and not it.is_contiguous for it in one.results):
            found[one.site] = max(found.get(one.site, 0), one.count)
    return found


def _without_inner_copies(
    operations: Sequence[Operation], attended: Iterable[StoredScores]
) -> list[Operation]:
    """All but what torch's own attention copies where no kernel takes it: nobody at its call has
    a hand in that, and it goes when the fallback goes."""
    fallen_back = {one.softmax.site for one in attended if one.is_fallback}
    return [one for one in operations if not (one.hidden and one.site in fallen_back)]


def observe(
    rules: Sequence[Rule], operations: Sequence[Operation], others: Sequence[Record]
) -> Iterator[Sighting]:
    """What the rules say to the records of a run; raises what they raise."""
    for _, sighting in observed(rules, operations, others):
        yield sighting


def observed(
    rules: Sequence[Rule], operations: Sequence[Operation], others: Sequence[Record]
) -> Iterator[tuple[Record, Sighting]]:
    """The same with the record that each is said to."""
    inside = [one.operation for one in others if isinstance(one, InnerCopy)]
    attended = list(attentions(operations))
    operations = _without_inner_copies(operations, attended)
    records: list[Record] = [
        *operations,
        *others,
        *streams_of(operations),
        *attended,
        *repeated_arrays(operations),
        *(lost := list(lost_formats(operations))),
        *mixed_formats(operations, [*inside, *(paid for one in lost for paid in one.paid)]),
    ]
    for rule in rules:
        for kind, name in observers(type(rule)):
            method = getattr(rule, name)
            for record in records:
                if isinstance(record, kind):
                    for sighting in method(record):
                        yield record, sighting
