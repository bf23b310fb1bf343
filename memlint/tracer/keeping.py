"""Results that outlive their step together with their graph."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from memlint.tracer.callsite import CallSites, SpotKey
from memlint.tracer.operators import Operator
from memlint.tracer.records import Retained
from memlint.tracer.signatures import Signature, has_strides, operand_of, signature

if TYPE_CHECKING:
    from memlint.tracer.recorder import Noted

_LEAST_BYTES = 1 << 16
_MOST_HELD = 4096
_MOST_NODES = 5000
_SUMS = frozenset({"add", "add_"})
_FIRST_STEPS, _LATER_RESULTS = 8, 32
"""Steps whose results are all looked after, and how many of each later step are: what grows does so
from the start, but the loop that it grows in may come late."""
_MOST_SEARCHES = 32


class Keeping:
    """Large results, held weakly until the end.

    What is alive at the end of a later step and still has its node is kept by somebody.  A
    result that is only referred to by the graph itself is alive as well: such a graph is kept.
    What a node saves of its own result is a tensor of its own, and is not seen.
    """

    def __init__(self) -> None:
        self._held: list[tuple[weakref.ref[torch.Tensor], Noted, int]] = []
        self._step, self._noted, self._searches = 0, 0, 0
        # The last result of a sum at a place, and the steps in which it went on.
        self._sums: dict[SpotKey, tuple[weakref.ref[torch.Tensor] | None, frozenset[int]]] = {}
        self._kept: dict[tuple[SpotKey, str], dict[int, tuple[int, int, Signature]]] = {}
        # The sums whose graphs results belong to, by the places of the results.
        self._holders: dict[tuple[SpotKey, str], set[SpotKey]] = {}

    def concerns(self, operator: Operator, results: Sequence[torch.Tensor]) -> bool:
        """Whether results of such an operation are worth looking after: large ones, and sums of
        single numbers."""
        if not results or not has_strides(results[0]):
            return False
        if operator.short in _SUMS and not results[0].dim():
            return True
        return operator.fresh and results[0].numel() * results[0].element_size() >= _LEAST_BYTES

    def note(self, record: Noted, operands: Sequence[torch.Tensor], result: Any, step: int) -> None:
        """Such a result was made, along with a node of autograd."""
        if record.operator.short in _SUMS and not result.dim():
            self._add(record.spot, operands, result, step)
            return
        if len(self._held) >= _MOST_HELD:
            return
        if step != self._step:
            self._step, self._noted = step, 0
        self._noted += 1
        if step >= _FIRST_STEPS and self._noted > _LATER_RESULTS:
            return
        first = result[0] if isinstance(result, (tuple, list)) else result
        if isinstance(first, torch.Tensor):
            self._held.append((weakref.ref(first), record, step))

    def _add(
        self, spot: SpotKey, operands: Sequence[torch.Tensor], result: torch.Tensor, step: int
    ) -> None:
        """A number was added: perhaps to the sum of a step before."""
        last, steps = self._sums.get(spot, (None, frozenset()))
        if last is not None and any(last() is one for one in operands):
            steps = frozenset({*steps, step}) if len(steps) < _FIRST_STEPS else steps
        if len(self._sums) < _MOST_HELD or spot in self._sums:
            self._sums[spot] = (weakref.ref(result), steps)

    def sweep(self, step: int) -> None:
        """At the end of a step: forget what is gone, and note what earlier steps have left."""
        alive = []
        kept: dict[tuple[SpotKey, str], dict[int, tuple[int, int, Signature]]] = {}
        graphs: dict[SpotKey, set[Any]] | None = None
        for ref, record, made in self._held:
            tensor = ref()
            if tensor is None:
                continue
            alive.append((ref, record, made))
            if made == step or tensor.grad_fn is None:
                continue
            place = (record.spot, record.operator.name)
            if graphs is None:
                graphs = self._graphs_of_sums()
            holders = {spot for spot, nodes in graphs.items() if tensor.grad_fn in nodes}
            self._holders.setdefault(place, set()).update(holders)
            by_step = kept.setdefault(place, {})
            count, nbytes, _ = by_step.get(made, (0, 0, ()))
            size = tensor.numel() * tensor.element_size()
            by_step[made] = (count + 1, nbytes + size, signature(tensor))
        self._held = alive
        for place, by_step in kept.items():
            if len(by_step) >= len(self._kept.get(place, ())):
                self._kept[place] = by_step

    def _graphs_of_sums(self) -> dict[SpotKey, set[Any]]:
        """The nodes that the sums which go on over steps can be traced back to."""
        found: dict[SpotKey, set[Any]] = {}
        if self._searches >= _MOST_SEARCHES:
            return found
        self._searches += 1
        for spot, (ref, steps) in self._sums.items():
            last = ref() if ref is not None and steps else None
            if last is not None and last.grad_fn is not None:
                found[spot] = _behind(last.grad_fn)
        return found

    def records(self, sites: CallSites) -> Iterator[Retained]:
        """The places whose results outlived their steps."""
        going_on = {spot for spot, (_, steps) in self._sums.items() if len(steps) > 1}
        for (spot, name), by_step in self._kept.items():
            holders = self._holders.get((spot, name), set()) & going_on
            sums = tuple(sorted(sites.site(one) for one in holders))
            count = sum(one[0] for one in by_step.values())
            nbytes = sum(one[1] for one in by_step.values())
            made = max(by_step.values(), key=lambda one: one[1])[2]
            yield Retained(
                sites.site(spot), name, operand_of(made), count, len(by_step), nbytes, sums
            )


def _behind(node: Any) -> set[Any]:
    """The nodes that a node of autograd holds, up to a number of them."""
    found, waiting = {node}, [node]
    while waiting and len(found) < _MOST_NODES:
        for after, _ in waiting.pop().next_functions:
            if after is not None and after not in found:
                found.add(after)
                waiting.append(after)
    return found
