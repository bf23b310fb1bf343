"""Takes what the modes see and keeps it as records, within bounds.

One recorder serves one traced block on one thread.  All that is per operation is done here in
a few microseconds; what can wait until the block has ended is not done here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from memlint.layout import Strided
from memlint.tracer.callsite import CallSites, SpotKey
from memlint.tracer.records import (
    BACKWARD,
    FORWARD,
    Argument,
    Asked,
    Hole,
    Opaque,
    Operand,
    Operation,
)

MOST_RECORDS = 20_000
_MOST_SEQUENCES = 50_000
_MOST_STORAGES = 50_000
_LONGEST_LIST = 64

# Shape, strides, dtype, device and pinning of a tensor.
Signature = tuple[Any, ...]
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_CLONE, _UNSAFE_VIEW, _CAT = (
    torch.ops.aten.clone.default,
    torch.ops.aten._unsafe_view.default,
    torch.ops.aten.cat.default,
)


class _Record:
    """An operation while the program runs: call sites as keys, operands as signatures."""

    __slots__ = ("arguments", "births", "count", "fresh", "grown", "hidden", "keywords",
                 "last_odd", "last_step", "name", "operands", "phase", "replayable", "results",
                 "spot", "steps", "versions")  # fmt: skip

    def __init__(self, spot: SpotKey, name: str, phase: str) -> None:
        self.spot, self.name, self.phase = spot, name, phase
        self.operands: tuple[Signature, ...] = ()
        self.results: tuple[Signature, ...] = ()
        self.arguments: tuple[Argument, ...] = ()
        self.keywords: tuple[tuple[str, Argument], ...] = ()
        self.count = self.steps = self.fresh = self.hidden = self.grown = self.versions = 0
        self.last_step, self.last_odd = -1, (0, 0)
        self.replayable = False
        self.births: dict[int, SpotKey] = {}


class Recorder:
    """Aggregates operations by place, name and layout."""

    def __init__(self, sites: CallSites) -> None:
        self.sites = sites
        self.step = 0
        self.phase = FORWARD
        self.seen = 0
        self.dropped = 0
        self._records: dict[tuple[Any, ...], _Record] = {}
        self._asked: dict[tuple[Any, ...], list[int]] = {}
        # The place of the forward operation that a node of autograd was made by.
        self._forward: OrderedDict[int, SpotKey] = OrderedDict()
        # Where the layout of what lies at an address, with these strides, was born.
        self._born: OrderedDict[tuple[int, tuple[int, ...]], SpotKey] = OrderedDict()
        # What a concatenation at a place has made last, by its address.
        self._joined: dict[SpotKey, int] = {}
        self._before: tuple[Any, _Record] | None = None

    def operation(
        self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """Note one operation and its result."""
        self.seen += 1
        node = None
        if torch._C._current_graph_task_id() != -1:
            node = torch._C._current_autograd_node()
        spot = self._spot(node)
        operands = tensors_in((*args, *kwargs.values()))
        key = (spot, func, *map(signature, operands))
        record = self._records.get(key)
        if record is None:
            if len(self._records) >= MOST_RECORDS:
                self.dropped += 1
                return
            record = self._records[key] = self._new(spot, func, node, operands, args, kwargs)
        results = tensors_in(result if isinstance(result, (tuple, list)) else (result,))
        if not record.results:
            record.results = tuple(map(signature, results))
        record.count += 1
        if record.last_step != self.step:
            record.last_step = self.step
            record.steps += 1
        self._follow(record, operands, results)
        if func is _UNSAFE_VIEW and self._before is not None and self._before[0] is _CLONE:
            # ``reshape`` copies so; a copy that was asked for is followed by a plain view.
            self._before[1].hidden += 1
        elif func is _CAT and operands and results:
            record.grown += self._joined.get(spot) == _address(operands[0])
            self._joined[spot] = _address(results[0])
        self._before = (func, record)

    def asked(self, name: str, tensor: torch.Tensor, *, idle: bool) -> None:
        """Note a call of a method that may do nothing."""
        key = (self.sites.here(4), name, signature(tensor))
        counts = self._asked.get(key)
        if counts is None:
            if len(self._asked) >= MOST_RECORDS:
                self.dropped += 1
                return
            counts = self._asked[key] = [0, 0, 0, -1]
        counts[0] += 1
        counts[1] += idle
        if counts[3] != self.step:
            counts[3] = self.step
            counts[2] += 1

    def _spot(self, node: Any) -> SpotKey:
        if node is not None:
            known = self._forward.get(node._sequence_nr())
            return known if known is not None else self.sites.here(5)
        spot = self.sites.here(5)
        sequence = torch._C._autograd._get_sequence_nr() - 1
        if sequence not in self._forward:
            self._forward[sequence] = spot
            if len(self._forward) > _MOST_SEQUENCES:
                self._forward.popitem(last=False)
        return spot

    def _new(
        self,
        spot: SpotKey,
        func: Any,
        node: Any,
        operands: list[torch.Tensor],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> _Record:
        record = _Record(spot, str(func), BACKWARD if node is not None else self.phase)
        record.operands = tuple(map(signature, operands))
        holes = iter(range(len(operands)))
        record.arguments = tuple(_plain(value, holes) for value in args)
        record.keywords = tuple((name, _plain(value, holes)) for name, value in kwargs.items())
        record.replayable = not func._schema.is_mutable
        return record

    def _follow(
        self, record: _Record, operands: list[torch.Tensor], results: list[torch.Tensor]
    ) -> None:
        """Hand on where odd layouts were born."""
        inherited: SpotKey | None = None
        odd: tuple[int, int] | None = None
        addresses = set()
        for index, operand in enumerate(operands):
            if not _has_strides(operand):
                continue
            address = _address(operand)
            addresses.add(address)
            if not operand.is_contiguous():
                odd = odd or (address, 0 if operand.is_inference() else operand._version)
                born = self._born.get((address, operand.stride()))
                if born is not None:
                    inherited = inherited or born
                    record.births.setdefault(index, born)
        if odd is not None and odd != record.last_odd:
            # Other numbers than the time before: a dense copy of them would be another one.
            record.last_odd = odd
            record.versions += 1
        for result in results:
            if not _has_strides(result):
                continue
            address = _address(result)
            fresh = address not in addresses
            record.fresh += fresh
            if result.is_contiguous():
                continue
            key = (address, result.stride())
            if fresh or key not in self._born:
                self._born[key] = inherited if fresh and inherited is not None else record.spot
                if len(self._born) > _MOST_STORAGES:
                    self._born.popitem(last=False)

    def operations(self) -> Iterator[Operation]:
        """The operations that were noted, with their places worked out."""
        for one in self._records.values():
            yield Operation(
                self.sites.site(one.spot),
                one.name,
                one.phase,
                tuple(map(operand_of, one.operands)),
                tuple(map(operand_of, one.results)),
                one.arguments,
                one.keywords,
                one.count,
                one.steps,
                one.fresh,
                one.hidden,
                one.grown,
                one.versions,
                one.replayable,
                {index: self.sites.site(spot) for index, spot in one.births.items()},
            )

    def requests(self) -> Iterator[Asked]:
        """The calls of methods that may do nothing."""
        for (spot, name, made), (count, idle, steps, _) in self._asked.items():
            yield Asked(self.sites.site(spot), name, operand_of(made), count, idle, steps)


def tensors_in(values: Sequence[Any]) -> list[torch.Tensor]:
    """The tensors among arguments, and in the lists among them, in their order."""
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(one for one in value[:_LONGEST_LIST] if isinstance(one, torch.Tensor))
    return found


def signature(tensor: torch.Tensor) -> Signature:
    """What records tell operands apart by."""
    strides = tensor.stride() if tensor.layout is torch.strided else ()
    pinned = tensor.device.type == "cpu" and torch.cuda.is_available() and tensor.is_pinned()
    return (tuple(tensor.shape), strides, tensor.dtype, tensor.device, pinned)


def operand_of(made: Signature) -> Operand:
    """A signature as plain data."""
    shape, strides, dtype, device, pinned = made
    array = Strided(shape, tuple(strides), dtype.itemsize)
    return Operand(array, str(dtype).removeprefix("torch."), str(device), pinned)


def _has_strides(tensor: torch.Tensor) -> bool:
    return type(tensor) in _PLAIN and tensor.layout is torch.strided


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _plain(value: Any, holes: Iterator[int]) -> Argument:
    """An argument as plain data."""
    if isinstance(value, torch.Tensor):
        return Hole(next(holes))
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(_plain(one, holes) for one in value[:_LONGEST_LIST])
    return Opaque(type(value).__name__, str(value))
