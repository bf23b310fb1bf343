"""What workers copy of what they read."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from itertools import cycle
from typing import Any

from memlint.bench.child import in_child
from memlint.bench.experiment import Experiment, Found
from memlint.bench.judging import standing
from memlint.bench.lab import Forms, Lab
from memlint.bench.pair import PROCESS_GRAIN, Weighed
from memlint.bench.quantities import amount
from memlint.bench.results import Answer, Unit

_QUICK, _FULL = 200_000, 1_000_000
_ROUNDS_QUICK, _ROUNDS_FULL = 1, 3
_METHODS = ("fork", "forkserver")
_LIST, _ARRAY = "list", "array"
_COPIED, _SHARED = 0.5, 0.1
_LEAST = 256 << 10
"""Bytes that workers differ by anyway."""


class WorkerGrowth(Experiment):
    """Private memory of a worker that reads a list of strings, or an array of them.

    A fresh process makes the records and starts a worker, which reads all of them and tells how
    many bytes it shares with no other process, less what a worker has that is given nothing. A
    forked worker shares all at first, and gets a copy of each page that it writes to: reading an
    object writes its count of references. Workers of a fork server are sent everything."""

    name = "worker-growth"
    needs = ("numpy", "linux", "fork")

    def run(self, lab: Lab) -> Found:
        """Compare list and array with each way to start workers."""
        count = lab.plan.size or (_FULL if lab.plan.full else _QUICK)
        rounds = _ROUNDS_FULL if lab.plan.full else _ROUNDS_QUICK
        rows = []
        grown: dict[tuple[str, str], float] = {}
        for method in _METHODS:
            found: dict[str, list[float]] = {}
            for kind in (_LIST, _ARRAY):
                lab.require_time()
                found[kind] = [in_child(growth, method, kind, count) for _ in range(rounds)]
                grown[method, kind] = sorted(found[kind])[rounds // 2]
            stated = Weighed(
                cycle(found[_LIST]).__next__,
                cycle(found[_ARRAY]).__next__,
                "private memory of a worker",
                f"{count} strings, {method}",
                PROCESS_GRAIN,
            )
            forms = Forms(self.name, "list", "array", method, count)
            rows.append(lab.compare(stated, forms))
        return Found(rows=tuple(rows), answers=(copies_answer(grown, count * _RECORD),))


_RECORD = 24
"""Bytes of the text of a record."""


def records(kind: str, count: int) -> Any:
    """So many strings, as a list or as an array."""
    texts = [f"images/train/{number:08}.jpg"[:_RECORD] for number in range(count)]
    if kind == _LIST:
        return texts
    import numpy as np

    return np.array(texts, "S")


def growth(method: str, kind: str, count: int) -> float:
    """Bytes that a worker has for itself after it read all, more than one that is given nothing."""
    data = records(kind, count)
    grown = _private(method, data) - _private(method, data[:0])
    return float(max(grown, _LEAST))


def _private(method: str, data: Any) -> int:
    context: Any = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    worker = context.Process(target=_read, args=(data, sender))
    worker.start()
    sender.close()
    found = receiver.recv()
    worker.join()
    return int(found)


def _read(data: Any, sender: Any) -> None:
    from memlint.tracer.worker_memory import own_bytes

    total = 0
    for text in data:
        total += len(text)
    sender.send(own_bytes(multiprocessing.current_process().pid or 0))


def copies_answer(grown: Mapping[tuple[str, str], float], nbytes: float) -> Answer:
    """What workers have for themselves, by the way they are started and what they read;
    ``nbytes`` is what the text of all records takes."""
    parts = [
        grown["fork", _LIST] > _COPIED * nbytes,
        *(grown[method, _ARRAY] < _SHARED * nbytes for method in _METHODS),
    ]
    told = "; ".join(
        f"{method}: list {amount(grown[method, _LIST], Unit.BYTES)}, "
        f"array {amount(grown[method, _ARRAY], Unit.BYTES)}"
        for method in _METHODS
    )
    return Answer(
        "copy-on-write", standing(parts), f"a worker's own memory by start method: {told}"
    )
