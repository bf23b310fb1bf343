"""Where layouts came up, what took them as they were, and what copied them to another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memlint.tracer.evidence import layout_of
from memlint.tracer.observe import streams_of
from memlint.tracer.operands import is_large, is_reordered
from memlint.tracer.records import Operation, Site, Stream
from memlint.tracer.sightings import Claim, Sighting
from memlint.tracer.step_profile import Shown, line_of

if TYPE_CHECKING:
    from memlint.tracer.replay import Measured

MOST_JOURNEYS = 100
MOST_STOPS = 200

# They take of an array its shape and strides, and do not read it.
_SHAPES_ONLY = frozenset(
    {"new_empty", "new_empty_strided", "new_zeros", "new_ones", "new_full", "empty_like",
     "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like"}
)  # fmt: skip

_Stop = tuple[str, str, int, str]


def journeys_of(
    operations: Sequence[Operation],
    sightings: Sequence[Sighting],
    measured: Sequence[Measured | None],
    shown: Shown,
) -> list[Mapping[str, Any]]:
    """The layouts of a run that large arrays had, those with most uses first."""
    streams = [one for one in streams_of(operations) if is_large(one.largest)]
    told = [one for one in streams if is_reordered(one.largest)]
    told.sort(key=lambda one: -one.uses)
    costs = dict(_costs(sightings, measured))
    found = (_journey(one, costs.get(one.born), shown) for one in told)
    return [one for one in found if one is not None and _goes_on(one)][:MOST_JOURNEYS]


def _goes_on(journey: Mapping[str, Any]) -> bool:
    return bool(journey["uses"] or journey["converted"])


def _costs(
    sightings: Sequence[Sighting], measured: Sequence[Measured | None]
) -> Iterator[tuple[Site, tuple[float, float]]]:
    """One copy, and what is lost in a step without it, in milliseconds, by birthplaces."""
    for sighting, one in zip(sightings, measured, strict=True):
        claim = sighting.claims[0] if sighting.claims else None
        if one is None or not isinstance(claim, Claim) or claim.born != sighting.site:
            continue
        lost = one.as_is - one.alternative
        per_step = sighting.count / max(sighting.steps, 1)
        yield sighting.site, (one.conversion * 1e3, lost * per_step * 1e3)


def _journey(
    stream: Stream, cost: tuple[float, float] | None, shown: Shown
) -> Mapping[str, Any] | None:
    born = line_of(stream.born, shown)
    if born is None:
        return None
    uses: Counter[_Stop] = Counter()
    converted: Counter[_Stop] = Counter()
    nbytes: Counter[_Stop] = Counter()
    for taker in stream.takers:
        line = line_of(taker.site, shown)
        if line is None or taker.short in _SHAPES_ONLY:
            continue
        stop = (line["path"], line["function"], line["line"], taker.name)
        if _converts(taker):
            converted[stop] += taker.count
            nbytes[stop] += taker.count * taker.results[0].array.nbytes
        else:
            uses[stop] += taker.count
    return {
        "born": born,
        "layout": layout_of(stream.largest),
        "births": max(stream.births, 1),
        "uses": [_stop(stop, count) for stop, count in uses.most_common(MOST_STOPS)],
        "converted": [
            {**_stop(stop, count), "bytes": nbytes[stop]}
            for stop, count in converted.most_common(MOST_STOPS)
        ],
        "copy_ms": None if cost is None else cost[0],
        "sum_ms": None if cost is None else cost[1],
    }


def _stop(stop: _Stop, count: int) -> dict[str, Any]:
    path, function, line, operation = stop
    site = {"path": path, "function": function, "line": line}
    return {"site": site, "operation": operation, "count": count}


def _converts(taker: Operation) -> bool:
    """Whether an operation copies what it takes to a row-major array."""
    copies = taker.short in ("clone", "_to_copy", "copy_")
    return copies and bool(taker.results) and taker.results[0].is_contiguous
