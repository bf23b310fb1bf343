"""MEM401: workers that store into elements of the same cache line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from memlint.analysis.events import ProgramEnd, ProgramStart, SlotStore
from memlint.analysis.places.slot import may_store_again
from memlint.analysis.slots import Slot, one_per_worker, slot_of, stored_each_time
from memlint.findings import Confidence, Severity
from memlint.rule import Draft, Needs, Related, Rule

LINE = 64


class FalseSharing(Rule):
    """Threads store on every iteration into slots that share a cache line.

    ## What it does

    Finds arrays with one slot for each worker into which the workers store in their inner
    loops, although the slots of two workers lie less than a cache line (64 bytes) apart:
    `hits[w] += 1` under Numba's `prange`, slots numbered by `get_thread_id()`, threads,
    thread pools, joblib threads, and processes on memory that is known to be shared.

    ## Why it is slow

    A core that stores must own the whole line, so that every store takes the line away from the
    other cores, although no two of them touch the same element. Measured with Numba 0.68 on two
    cores of an AMD Zen 3, one float64 slot for each thread to which every element is added: 160
    to 292 ms, against 38 ms with a line between the slots and 75 ms in a serial loop; a
    histogram with the thread as the last axis was 7 to 8 times slower than a padded one. Slots
    less than a line apart need not always hurt: rows of 32 bytes took 10.5 ms in one run and 30
    ms in another, against 10.3 ms padded, as the allocator happened to place them. Python
    threads that hold the GIL, and processes that run Python code, spend far more on the update
    itself; these are told as information only.

    ## When it is silent

    - where a line or more lies between the slots, by padding, by a second axis or by a stride;
    - where each worker counts in a local variable and stores once after its loop;
    - where compiled code stores unconditionally into a slot that does not change in the
      loop: the compiler keeps it in a register;
    - where the iterations of a `prange` are the elements of a long result, not workers:
      neighbouring elements then belong to one thread, except at the borders;
    - on scalar reductions, of which Numba gives each thread its own copy, and on arrays that
      each worker makes itself;
    - without `parallel=True`, on GPUs, under a lock, and where one worker is alive at a time.

    ## Example

    ```python
    import numpy as np
    from numba import njit, prange

    @njit(parallel=True)
    def count_above(samples, threshold, workers):
        hits = np.zeros(workers, dtype=np.int64)
        share = samples.size // workers
        for w in prange(workers):
            for k in range(w * share, (w + 1) * share):
                if samples[k] > threshold:
                    hits[w] += 1
        return hits.sum()
    ```

    ## Use instead

    ```python
    import numpy as np
    from numba import njit, prange

    @njit(parallel=True)
    def count_above(samples, threshold, workers):
        hits = np.zeros(workers, dtype=np.int64)
        share = samples.size // workers
        for w in prange(workers):
            own = 0
            for k in range(w * share, (w + 1) * share):
                if samples[k] > threshold:
                    own += 1
            hits[w] = own
        return hits.sum()
    ```

    ## Fix safety

    There is no automatic fix: a local accumulator changes the order of floating-point sums,
    and a padded array changes the shape that its readers see.

    ## How to confirm

    Time the function with the slots a line apart (`np.zeros((n, 8))[:, 0]` for 8-byte
    elements) and as they are, several times each, in fresh processes; on Linux,
    `perf c2c record` shows the lines that cores take from each other.

    ## References

    - Linux kernel documentation, "False sharing", and `perf c2c`
    - Numba documentation, "Automatic parallelization with @jit": reductions
    - Numba issue 8686, per-thread slots of `get_thread_id()`
    """

    code, name = "MEM401", "false-sharing"
    severity = Severity.WARNING
    needs = Needs(
        {"numba", "threading", "multiprocessing", "concurrent", "joblib"},
        {"prange", "pndindex", "Thread", "Process", "Pool", "Parallel", "spawn", "Executor"},
        {"] +=", "] -=", "] = ", "] |=", "] *="},
        {"for ", "while "},
        units=[
            {re.compile(r"\]\s*(?:[-+*/|&^]|//|<<|>>)?=(?!=)")},
            {
                "prange",
                "pndindex",
                re.compile(r"Thread\b"),
                "ThreadPool",
                "Process(",
                "Process as",
                "Process)",
                "Process,",
                "ProcessPool",
                "Pool(",
                "Pool as",
                "spawn(",
                "Executor",
                "delayed(",
                "delayed as",
            },
            {"for ", "while "},
        ],
        places=may_store_again,
    )

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self._stores: dict[tuple[str, str], list[tuple[SlotStore, Slot]]] = {}
        # The stores that calls in the program reach.
        self._called: set[tuple[str, str]] = set()

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Forget the program before."""
        self._stores, self._called = {}, set()
        yield from ()

    def check_store(self, store: SlotStore) -> Iterator[Draft]:
        """Collect stores; where a function is called decides which of them count."""
        slot = slot_of(store)
        key = (store.function, store.access.array)
        if store.called:
            self._called.add(key)
        if slot is not None:
            self._stores.setdefault(key, []).append((store, slot))
        yield from ()

    def check_end(self, end: ProgramEnd) -> Iterator[Draft]:
        """One finding per array and worker function, at the first store that counts."""
        for key, seen in self._stores.items():
            # Calls in the program tell more than what any other caller might hand over.
            told = [pair for pair in seen if pair[0].called or key not in self._called]
            counted = [pair for pair in told if _counts(*pair)]
            if counted:
                yield self._finding(*min(counted, key=_place))

    def _finding(self, store: SlotStore, slot: Slot) -> Draft:
        compiled = store.compiled is not None
        array = store.access.array
        sure = slot.seen and slot.exact
        return self.finding(
            store.access.node,
            _message(store, slot),
            "count in a local variable and store once after the loop, or leave a line between "
            f"slots: `np.zeros((n, {max(1, LINE // slot.itemsize)}))[:, 0]`",
            severity=Severity.WARNING if compiled else Severity.INFO,
            confidence=Confidence.HIGH if sure else Confidence.MEDIUM,
            related=_related(store, array),
        )


def _counts(store: SlotStore, slot: Slot) -> bool:
    if store.locked or not 0 < slot.distance < LINE:
        return False
    if store.workers.kind == "process" and not store.shared:
        return False
    compiled = store.compiled
    if store.workers.kind == "thread" and compiled is not None and not compiled.nogil:
        return False
    return one_per_worker(store, slot) and stored_each_time(store, slot)


def _place(pair: tuple[SlotStore, Slot]) -> tuple[int, int, bool]:
    node = pair[0].access.node
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0), not pair[1].seen)


def _message(store: SlotStore, slot: Slot) -> str:
    who = "processes" if store.workers.kind == "process" else "threads"
    text = ast.unparse(store.access.node)
    shared = -(-LINE // slot.distance)
    message = (
        f"{who} store into `{text}` on many iterations; their elements lie {slot.distance} bytes "
        f"apart, so that up to {shared} {who} share a {LINE}-byte cache line"
    )
    if not slot.exact:
        message += f" (with elements of {slot.itemsize} bytes)"
    if store.compiled is None:
        where = (
            "each update in shared memory costs far more than the line here"
            if who == "processes"
            else "each update costs far more than the line here; it counts where the GIL is "
            "released or absent"
        )
        message += f" ({where})"
    return message


def _related(store: SlotStore, array: str) -> list[Related]:
    related = []
    if store.made_at is not None and hasattr(store.made_at, "lineno"):
        related.append(Related(store.made_at, f"`{array}` is made here"))
    node = getattr(store.workers.node, "iter", store.workers.node)
    if hasattr(node, "lineno"):
        related.append(Related(node, "the workers start here"))
    return related
