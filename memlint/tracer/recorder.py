"""Takes what the modes see and keeps it as records, within bounds.

One recorder serves one traced block on one thread.  What every operation costs is spent in
:meth:`Recorder.operation`; whatever can wait until the block has ended is not done there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from memlint.layout import broadcast, can_be_viewed
from memlint.tracer.callsite import CallSites, SpotKey
from memlint.tracer.copying import Copying
from memlint.tracer.growing import Growing
from memlint.tracer.keeping import Keeping
from memlint.tracer.loading import Loading
from memlint.tracer.operands import LEAST_BYTES
from memlint.tracer.operators import Operator, Operators
from memlint.tracer.origins import Made, Odd, Origins
from memlint.tracer.pending import Pending
from memlint.tracer.recent import Recent
from memlint.tracer.records import (
    BACKWARD,
    FORWARD,
    LOADING,
    OPTIMIZER,
    Argument,
    Asked,
    Growth,
    Maker,
    Operation,
    Retained,
    Waiting,
    WorkerMemory,
)
from memlint.tracer.signatures import (
    PLAIN,
    Signature,
    is_odd,
    is_stand_in,
    operand_of,
    plain,
    signature,
    storage_of,
    tensors_in,
)
from memlint.tracer.writes import Writes

MOST_RECORDS = 20_000
MOST_LAYOUTS = 512
"""So many different layouts are told apart of one operator at one place."""
_MOST_SEQUENCES = 50_000

_FOLDING = frozenset({"view", "_unsafe_view", "_reshape_alias"})
_SCALARS = frozenset(
    {int, float, bool, type(None), str, torch.dtype, torch.device, torch.layout,
     torch.memory_format}
)  # fmt: skip
_NUMBERS = frozenset({int, float, bool})
_STRIDED = torch.strided
_task = torch._C._current_graph_task_id
_grad_enabled = torch.is_grad_enabled
_sequence = torch._C._autograd._get_sequence_nr
_node = torch._C._current_autograd_node


class Noted:
    """An operation while the program runs: call sites as keys, operands as signatures."""

    __slots__ = (
        "again", "arguments", "attends", "births", "conflict_at", "conflicts", "copied_at",
        "count", "folds", "hidden", "keeps", "keywords", "large", "last_odd", "last_step", "makers",
        "odd", "operands", "operator", "phase", "pinned", "results", "spot", "steps", "traces",
        "versions", "written",
    )  # fmt: skip

    def __init__(self, spot: SpotKey, operator: Operator, phase: str) -> None:
        self.spot, self.operator, self.phase = spot, operator, phase
        self.operands: tuple[Signature, ...] = ()
        self.results: tuple[Signature, ...] = ()
        self.pinned: tuple[bool, ...] = ()
        self.arguments: tuple[Argument, ...] = ()
        self.keywords: tuple[tuple[str, Argument], ...] = ()
        self.count = self.steps = self.hidden = self.versions = self.again = self.written = 0
        self.copied_at: SpotKey | None = None
        self.last_step = -1
        self.last_odd: Odd | None = None
        self.odd: tuple[int, ...] = ()
        self.attends = self.folds = self.keeps = self.large = self.traces = False
        self.births: dict[int, SpotKey] = {}
        self.makers: dict[int, Made] = {}
        self.conflicts = 0
        self.conflict_at: SpotKey | None = None


class Recorder:
    """Aggregates operations by place, name and layout."""

    def __init__(self, sites: CallSites) -> None:
        self.sites = sites
        self.step = 0
        self.phase = FORWARD
        self.seen = 0
        self.dropped = 0
        self.loading = Loading(sites)
        self._here, self._in_pass = sites.here, sites.within_backward
        self._noted: dict[tuple[Any, ...], Noted] = {}
        self._layouts: dict[tuple[SpotKey, int], int] = {}
        self._asked: dict[tuple[Any, ...], list[int]] = {}
        self._operators = Operators()
        # The place of the forward operation that a node of autograd was made by.
        self._forward: Recent[int, SpotKey] = Recent(_MOST_SEQUENCES)
        self._sequence = _sequence()
        self._origins = Origins()
        self._growing = Growing()
        self._keeping = Keeping()
        self._copying = Copying()
        self._writes = Writes()
        self._pending = Pending()
        self._before: Noted | None = None
        self._asks_pins = torch.cuda.is_available()

    def operation(
        self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """Note one operation and its result."""
        self.seen += 1
        number = _sequence()
        made_node = number != self._sequence
        phase = self.phase
        if phase is OPTIMIZER and _grad_enabled():
            # Optimizers work without gradients: this is a closure that they call.
            phase = FORWARD
        task = _task()
        if task == -1:
            spot = self._here(3)
            if made_node:
                self._forward.put(number - 1, spot)
                self._sequence = number
        else:
            spot, phase = self._in_backward(number, task), BACKWARD
        operands = []
        key: list[Any] = [spot, id(func), phase]
        for value in args:
            kind = type(value)
            if kind in PLAIN:
                operands.append(value)
            elif kind in _SCALARS:
                continue
            elif kind is list or kind is tuple:
                # Sizes, axes and factors are lists of numbers alone.
                if value and type(value[0]) not in _NUMBERS:
                    operands += tensors_in(value)
            elif isinstance(value, torch.Tensor):
                operands.append(value)
        for value in kwargs.values():
            if type(value) not in _SCALARS:
                operands += tensors_in((value,))
        for one in operands:
            # The signature, spelled out: a call for each operand would cost half as much again.
            try:
                if one.layout is not _STRIDED:
                    key += signature(one)
                elif one.is_cpu:
                    key += one.shape, one.stride(), one.dtype
                else:
                    key += one.shape, one.stride(), one.dtype, one.device
            except RuntimeError:  # it has no shape: asking each for that beforehand takes longer
                key += signature(one)
        whole = tuple(key)
        record = self._noted.get(whole)
        if record is None:
            record = self._new(whole, func, operands, args, kwargs, result)
            if record is None:
                self._before = None
                return
        record.count += 1
        if record.last_step != self.step:
            record.last_step = self.step
            record.steps += 1
        if record.attends:
            self._attend(record, operands, args, kwargs, result)
        if self._asks_pins and self._pending:
            self._pending.touch(record, operands)
        if record.keeps and made_node:
            self._keeping.note(record, operands, result, self.step)
        self._before = record

    @property
    def latest(self) -> Noted | None:
        """What the last operation was noted as; ``None`` where it was not."""
        return self._before

    def asked(self, name: str, tensor: torch.Tensor, *, idle: bool) -> None:
        """Note a call of a method that may do nothing, by the program itself."""
        if not self.sites.is_own(4):
            return  # a function of torch calls it: there is nothing to be left out
        key = (self.sites.here(4), name, signature(tensor))
        counts = self._asked.get(key)
        if counts is None:
            if len(self._asked) >= MOST_RECORDS:
                self.dropped += 1
                return
            counts = self._asked[key] = [0, 0, 0, -1, 0]
        counts[0] += 1
        counts[1] += idle
        before = self._before
        if before is not None and before.operator.reorders and key[2] in before.results:
            counts[4] += 1
        if counts[3] != self.step:
            counts[3] = self.step
            counts[2] += 1

    def end_step(self) -> None:
        """A step has ended."""
        self._keeping.sweep(self.step)
        self.step += 1
        self.phase = FORWARD

    def _in_backward(self, number: int, task: int) -> SpotKey:
        """The forward operation's place; code of the program that runs within backward, a hook
        or a checkpointed function, stands for itself."""
        spot, own = self._in_pass(task, 4)
        if own:
            if number != self._sequence:
                self._forward.put(number - 1, spot)
                self._sequence = number
            return spot
        self._sequence = number
        node = _node()
        known = self._forward.get(node._sequence_nr()) if node is not None else None
        return spot if known is None else known

    def _new(
        self,
        key: tuple[Any, ...],
        func: Any,
        operands: list[torch.Tensor],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
    ) -> Noted | None:
        results = tensors_in(result if isinstance(result, (tuple, list)) else (result,))
        if not operands and any(is_stand_in(type(one)) for one in results):
            return None
        place = (key[0], key[1])
        layouts = self._layouts.get(place, 0)
        if len(self._noted) >= MOST_RECORDS or layouts >= MOST_LAYOUTS:
            self.dropped += 1
            return None
        self._layouts[place] = layouts + 1
        operator = self._operators.get(func)
        record = Noted(key[0], operator, key[2])
        record.operands = tuple(map(signature, operands))
        record.results = tuple(map(signature, results))
        if operator.moves and self._asks_pins:
            record.pinned = tuple(one.is_pinned() for one in (*operands, *results))
        holes = iter(range(len(operands)))
        record.arguments = tuple(plain(value, holes) for value in args)
        record.keywords = tuple((name, plain(value, holes)) for name, value in kwargs.items())
        record.odd = tuple(n for n, one in enumerate(operands) if is_odd(one))
        record.large = bool(record.odd) and _bytes_of(operands[record.odd[0]]) >= LEAST_BYTES
        # Rules have nothing to say of small arrays: where their layouts come from is not followed.
        large_odd = record.large or any(
            is_odd(one) and _bytes_of(one) >= LEAST_BYTES for one in (*results, *operands)
        )
        record.traces = (
            operator.moves
            or (operator.fresh and (not operands or self.phase == LOADING))
            or any(one.dtype is torch.float64 and one.dim() for one in (*operands, *results))
        )
        record.folds = operator.short in _FOLDING and self._folds(operands, results)
        record.attends = bool(
            large_odd
            or record.folds
            or operator.joins
            or operator.reshapes
            or operator.repeats
            or operator.mutable
            or record.traces
        )
        record.keeps = self._keeping.concerns(operator, results)
        self._noted[key] = record
        return record

    def _attend(
        self,
        record: Noted,
        operands: list[torch.Tensor],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
    ) -> None:
        """What only some operations need: where layouts and arrays come from, what grows."""
        if type(result) in PLAIN:
            results = [result]
        else:
            results = tensors_in(result if isinstance(result, (tuple, list)) else (result,))
        operator = record.operator
        if record.large:
            self._compare(record, operands[record.odd[0]])
        elif record.odd:
            record.versions += 1
        if operator.mutable:
            written = operator.written(args, kwargs)
            self._writes.note(written)
            self._origins.written(written)
        elif record.folds:
            self._origins.written(operands)
        if operator.moves and self._asks_pins and results:
            self._pending.note(record, operands, self.operation_of(record), results[0])
        self._origins.follow(record, operands, results)
        if operator.joins:
            self._growing.note(record, operands, results, self.step)
        elif operator.reshapes and self._before is not None and self._before.operator.copies:
            # ``reshape`` copies so; a copy that was asked for is followed by a plain view.
            self._before.hidden += 1

    def _compare(self, record: Noted, odd: torch.Tensor) -> None:
        """Whether a large operand that is not row-major is another one than before, or was copied
        before."""
        storage = storage_of(odd)
        writes = self._writes.count(storage)
        last = record.last_odd
        if last is None or not last.is_same(odd, storage, writes):
            # Other numbers than before: a dense copy of them would be another one.
            record.last_odd = Odd(odd, writes)
            record.versions += 1
        if record.operator.copies:
            self._copying.note(record, odd, storage, writes)

    def _folds(self, operands: list[torch.Tensor], results: list[torch.Tensor]) -> bool:
        """Whether a view needs the memory that a ``repeat`` has made."""
        repeat = self._origins.repeated(operands[0]) if operands and results else None
        if repeat is None or repeat.results[0][0] != operands[0].shape:
            return False
        source, shape = operand_of(repeat.operands[0]).array, tuple(operands[0].shape)
        return not can_be_viewed(broadcast(source, shape), tuple(results[0].shape))

    def listen(self) -> Callable[[], None]:
        """Hear of what waits for devices; gives what ends that."""
        return self._pending.listen() if self._asks_pins else lambda: None

    def operations(self) -> Iterator[Operation]:
        """The operations that were noted, with their places worked out."""
        for one in self._noted.values():
            yield self.operation_of(one)

    def operation_of(self, one: Noted) -> Operation:
        """One of them."""
        site = self.sites.site
        pinned = one.pinned or (False,) * (len(one.operands) + len(one.results))
        every = [
            operand_of(made, pinned=pins)
            for made, pins in zip((*one.operands, *one.results), pinned, strict=True)
        ]
        count = len(one.operands)
        return Operation(
            site(one.spot),
            one.operator.name,
            one.phase,
            tuple(every[:count]),
            tuple(every[count:]),
            one.arguments,
            one.keywords,
            one.count,
            one.steps,
            one.count if one.operator.fresh else 0,
            one.hidden,
            self._growing.count(one),
            one.versions,
            not one.operator.mutable,
            {index: site(spot) for index, spot in one.births.items()},
            {index: self._maker(made) for index, made in one.makers.items()},
            one.again,
            None if one.copied_at is None else site(one.copied_at),
            one.written,
            one.conflicts,
            None if one.conflict_at is None else site(one.conflict_at),
        )

    def _maker(self, made: Made) -> Maker:
        took = "" if made.took is None else str(made.took).removeprefix("torch.")
        return Maker(made.name, self.sites.site(made.spot), made.phase, took)

    def requests(self) -> Iterator[Asked]:
        """The calls of methods that may do nothing."""
        busy = {(spot, name) for (spot, name, _), counts in self._asked.items()
                if counts[1] < counts[0]}  # fmt: skip
        for (spot, name, made), (count, idle, steps, _, exchanged) in self._asked.items():
            yield Asked(
                self.sites.site(spot), name, operand_of(made), count, idle, steps,
                (spot, name) not in busy, exchanged,
            )  # fmt: skip

    def others(self) -> Iterator[Growth | Retained | Waiting | WorkerMemory]:
        """What else is known of the run: what grew, what was kept, what was waited for."""
        yield from self._growing.records(self.sites)
        yield from self._keeping.records(self.sites)
        yield from self.loading.records()


def _bytes_of(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()
