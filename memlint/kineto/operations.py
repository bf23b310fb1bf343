"""Runs of operators as the records that rules observe."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from memlint.kineto.arguments import Given, Tensor
from memlint.kineto.homes import Homes
from memlint.kineto.kernels import CopyKind
from memlint.kineto.results import REORDERING, result_of
from memlint.kineto.walk import Run
from memlint.layout import Strided
from memlint.tracer.inner_copies import CONVOLVING
from memlint.tracer.records import Argument, Hole, Opaque, Operand, Operation, Site

_FORMATS = {0: "torch.contiguous_format", 1: "torch.preserve_format", 2: "torch.channels_last",
            3: "torch.channels_last_3d"}  # fmt: skip
"""The memory formats by their numbers in PyTorch, ``c10::MemoryFormat``."""
_FORMAT_AT = {"clone": 1}
_READ = "_local_scalar_dense"
_NUMBER = Tensor(Strided((), (), 1), "")
"""What is read as a number, where its type is not told."""


@dataclass(slots=True)
class _Counted:
    """An operation that is being counted."""

    run: Run
    site: Site
    operands: tuple[Operand, ...]
    results: tuple[Operand, ...]
    count: int = 0
    hidden: int = 0
    seconds: float = 0.0
    copies: dict[tuple[Tensor, Tensor], list[float]] = field(default_factory=dict)
    steps: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Timed:
    """An operation, and the seconds that all its runs took: those of the device where that did
    the work, else those of the host.  ``clear`` tells that its operands are all known; ``copies``
    are the seconds of each copy that its kernel has made, by what came of it and what it took."""

    operation: Operation
    seconds: float
    clear: bool
    copies: Mapping[tuple[Operand, Operand], list[float]]


@dataclass(frozen=True, slots=True)
class Device:
    """What is known of the devices of a run: ``kind`` is that of the accelerator, ``copies`` the
    kinds of the copies that a run made, ``step`` the number of the step of a time, ``None``
    outside of all."""

    kind: str
    copies: Callable[[Run], Sequence[CopyKind]]
    step: Callable[[float], int | None]


def operations_of(runs: Iterable[Run], homes: Homes, device: Device) -> list[Timed]:
    """The operations of a trace, counted by place and layout."""
    counted: dict[tuple[object, ...], _Counted] = {}
    for run in runs:
        short = _short(run)
        tensors = [one for one in run.given.tensors if one is not None]
        if not tensors and short == _READ:
            tensors = [_NUMBER]
        site = homes.of(run)
        result = result_of(run, short)
        operands, results = _on_devices(run, short, tensors, result, device)
        key = (site, run.name, run.phase, operands, results, _key(run.given), run.waits)
        one = counted.get(key)
        if one is None:
            one = counted[key] = _Counted(run, site, operands, results)
        one.count += 1
        one.hidden += run.hidden
        on_device = bool(run.kernels or run.device)
        one.seconds += run.device if on_device else run.host
        if short in CONVOLVING:
            for copied, operand, seconds in _copies_in(run, on_device=on_device):
                one.copies.setdefault((copied, operand), []).append(seconds)
        step = device.step(run.began)
        if step is not None:
            one.steps.add(step)
    births = _births(counted.values())
    return [
        Timed(
            _operation(one, births),
            one.seconds,
            one.run.given.clear or (one.run.name == f"aten::{_READ}" and bool(one.operands)),
            {
                (_like(copied, one.operands), _like(operand, one.operands)): seconds
                for (copied, operand), seconds in one.copies.items()
            },
        )
        for one in counted.values()
    ]


def _like(tensor: Tensor, operands: Sequence[Operand]) -> Operand:
    """A tensor on the device of the operands."""
    return _operand(tensor, operands[0].device if operands else "cpu", pinned=False)


def _copies_in(run: Run, *, on_device: bool) -> Iterator[tuple[Tensor, Tensor, float]]:
    """The copies that a kernel made: what came of it, what it took, the seconds."""
    for part in run.inner:
        if part.name == "aten::copy_" and len(part.given.tensors) > 1:
            copied, operand = part.given.tensors[:2]
            if copied is not None and operand is not None:
                yield copied, operand, part.device if on_device else part.host


def _key(given: Given) -> tuple[str, ...]:
    return given.values


def _short(run: Run) -> str:
    short = run.name.partition("::")[2]
    if short in ("max", "min"):
        # Of two arrays they are elementwise: the dispatcher calls ``maximum`` then.
        pair = [one for one in run.given.tensors[:2] if one is not None]
        return f"{short}imum" if len(pair) == 2 else short
    return short


def _on_devices(
    run: Run, short: str, tensors: Sequence[Tensor], result: Tensor | None, device: Device
) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
    """Operands and results where they lie: between devices for copies, else on the one that
    did the work."""
    kinds = device.copies(run)
    crossing = next((one for one in kinds if one.to_device or one.to_host), None)
    here = device.kind if run.kernels or run.device else "cpu"
    places = [here] * len(tensors)
    target, source = here, here
    pinned = False
    if crossing is not None:
        source, target = ("cpu", device.kind) if crossing.to_device else (device.kind, "cpu")
        pinned = bool(crossing.pinned)
        if short == "copy_" and len(tensors) == 2:
            places = [target, source]
        elif short == _READ or short == "_to_copy":
            places = [source] * len(tensors)
    operands = tuple(
        _operand(one, place, pinned=pinned and place == "cpu")
        for one, place in zip(tensors, places, strict=True)
    )
    if result is None:
        return operands, ()
    return operands, (_operand(result, target, pinned=False),)


def _operand(tensor: Tensor, place: str, *, pinned: bool) -> Operand:
    return Operand(tensor.array, tensor.dtype, place, pinned)


def _births(counted: Iterable[_Counted]) -> dict[tuple[object, ...], set[Site]]:
    """Where views in another order than row-major came up, by shape, strides and type."""
    found: defaultdict[tuple[object, ...], set[Site]] = defaultdict(set)
    for one in counted:
        if _short(one.run) in REORDERING:
            for result in one.results:
                if result.array.has_strides and not result.is_contiguous:
                    found[_layout(result)].add(one.site)
    return found


def _layout(operand: Operand) -> tuple[object, ...]:
    return (operand.array, operand.dtype)


def _operation(one: _Counted, births: dict[tuple[object, ...], set[Site]]) -> Operation:
    run, short = one.run, _short(one.run)
    arguments, keywords = _arguments(run, short)
    born: dict[int, Site] = {}
    for index, operand in enumerate(one.operands):
        places = births.get(_layout(operand), ()) if operand.array.strides else ()
        # A trace does not tell which array is which.
        inside = [place for place in places if _is_within(place, one.site)] or [*places]
        if len(inside) == 1:
            born[index] = inside[0]
    return Operation(
        one.site, f"{run.name.partition('::')[0]}.{short}", run.phase, one.operands, one.results,
        arguments, keywords, one.count, len(one.steps), hidden=one.hidden, births=born,
        fresh=one.count if short in _FRESH else 0,
    )  # fmt: skip


def _is_within(place: Site, site: Site) -> bool:
    """Whether an expression is a part of another one."""
    if place.path != site.path or place == site or not place.column:
        return False
    start, end = (place.line, place.column), (place.end_line, place.end_column)
    return (site.line, site.column) <= start and end <= (site.end_line, site.end_column)


_FRESH = frozenset({"clone", "_to_copy"})


def _arguments(
    run: Run, short: str
) -> tuple[tuple[Argument, ...], tuple[tuple[str, Argument], ...]]:
    arguments: list[Argument] = []
    holes = 0
    for index, tensor in enumerate(run.given.tensors):
        if tensor is not None:
            arguments.append(Hole(holes))
            holes += 1
        else:
            arguments.append(run.given.value(index))
    keywords: list[tuple[str, Argument]] = []
    if short == "copy_" and len(arguments) > 1:
        arguments[2:] = [not run.waits]
    elif short == "_to_copy":
        keywords.append(("non_blocking", not run.waits))
    at = _FORMAT_AT.get(short)
    if at is not None and run.given.value(at).isdigit():
        text = _FORMATS.get(int(run.given.value(at)), "")
        keywords.append(("memory_format", Opaque("memory_format", text)))
    return tuple(arguments), tuple(keywords)


def mark_hidden(runs: Sequence[Run]) -> None:
    """Tell of copies that ``reshape`` made: the next operator of the thread takes the copy as
    ``_unsafe_view``.  ``runs`` are in the order of each thread."""
    for before, run in itertools.pairwise(runs):
        if run.name == "aten::_unsafe_view" and before.name == "aten::clone":
            first = before.given.tensors[0] if before.given.tensors else None
            before.hidden = first is not None and first.array.has_strides
