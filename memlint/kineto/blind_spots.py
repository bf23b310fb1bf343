"""What a trace cannot tell, said for each file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memlint.kineto.kernels import copy_kind
from memlint.kineto.reader import TraceFile
from memlint.kineto.timeline import Timeline

_MOST_NAMED = 5


def blind_spots(file: TraceFile, timeline: Timeline, missing: Sequence[str]) -> list[str]:
    """What was not seen, a sentence each; ``missing`` are files that could not be read."""
    return [*_of_file(file, timeline), *_of_events(timeline), *_of_source(timeline, missing),
            *_ALWAYS]  # fmt: skip


_ALWAYS = (
    "which arrays are the same one: no copies of the same numbers, no concatenation that grows, "
    "no graph that is kept, no reads before a wait",
    "calls that did nothing, and what was not profiled",
)


def _of_file(file: TraceFile, timeline: Timeline) -> Iterator[str]:
    if file.cut_short:
        yield f"the end: the file breaks off after {timeline.events:,} events"
    if timeline.unread:
        yield f"{sum(timeline.unread.values())} events that are malformed"


def _of_events(timeline: Timeline) -> Iterator[str]:
    if not timeline.shaped:
        yield "shapes and layouts of arrays: record with `record_shapes=True`"
    elif not timeline.strided:
        yield "layouts of arrays: the version of PyTorch that recorded wrote down no strides"
    if not timeline.steps:
        yield (
            "steps, so what recurs in each of them: none is marked; call `profiler.step()`, with a "
            "`schedule`"
        )
    host = [one for one in timeline.copies if _leaves_host(one.name)]
    untold = [one for one in host if copy_kind(one.name).pinned is None]
    if untold:
        yield f"whether memory was pinned, for {len(untold)} of {len(host)} copies to the device"


def _leaves_host(name: str) -> bool:
    return copy_kind(name).to_device


def _of_source(timeline: Timeline, missing: Sequence[str]) -> Iterator[str]:
    if timeline.operators and not (timeline.python or timeline.stacked):
        yield "lines of source: there are no Python stacks; record with `with_stack=True`"
    if missing:
        yield f"lines in {_named(missing)}: not there; is `--root` right?"


def _named(paths: Sequence[str]) -> str:
    more = len(paths) - _MOST_NAMED
    shown = ", ".join(paths[:_MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown
