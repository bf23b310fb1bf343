"""MEM401: workers that store into elements of the same cache line."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from memlint.analysis.events import ProgramEnd, ProgramStart, SlotStore
from memlint.analysis.places.slot import may_store_again
from memlint.analysis.slots import Slot, one_per_worker, slot_of, stored_each_time
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Confidence, Severity
from memlint.late_pattern import late_pattern
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
    `perf c2c record` shows the lines that cores take from each other. `memlint bench
    false-sharing` does the former with slots of its own.

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
            {late_pattern(r"\]\s*(?:[-+*/|&^]|//|<<|>>)?=(?!=)")},
            {
                "prange",
                "pndindex",
                late_pattern(r"Thread\b"),
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

    @bench(
        "each thread counts the numbers above a limit, all of them, in its slot",
        as_is="slots side by side",
        alternative="slots a line apart",
        needs=("numba", "cpus"),
        sizes=Sizes("numbers", quick=1_000_000, full=(100_000, 1_000_000, 10_000_000)),
    )
    def bench_slots(self, size: Size) -> Pair:
        """Stores under a condition that always holds: one for each number."""
        return _compiled(_count_in_slots(), size, -1.0, "all of them counted")

    @bench(
        "each thread counts the numbers above a limit, half of them, in its slot",
        as_is="slots side by side",
        alternative="slots a line apart",
        needs=("numba", "cpus"),
        sizes=Sizes("numbers", quick=1_000_000, full=(100_000, 1_000_000, 10_000_000)),
        quick=False,
    )
    def bench_random(self, size: Size) -> Pair:
        """Stores under a condition that nobody can foresee, which costs time of its own."""
        return _compiled(_count_in_slots(), size, 0.5, "half of them counted")

    @bench(
        "each thread counts the numbers above a limit, all of them",
        as_is="in its slot, the slots side by side",
        alternative="in a variable that it stores once",
        needs=("numba", "cpus"),
        sizes=Sizes("numbers", quick=1_000_000, full=(100_000, 1_000_000, 10_000_000)),
    )
    def bench_local(self, size: Size) -> Pair:
        """The remedy, which spares the stores as well."""
        pair = _compiled(_count_in_slots(), size, -1.0, "all of them counted")
        return replace(pair, alternative=_into_slots(_count_in_variables(), size, 1, -1.0))

    @bench(
        "each thread adds up numbers in its slot, without a condition: kept in a register",
        as_is="slots side by side",
        alternative="slots a line apart",
        needs=("numba", "cpus"),
        sizes=Sizes("numbers", quick=1_000_000, full=(100_000, 1_000_000, 10_000_000)),
    )
    def bench_unconditional(self, size: Size) -> Pair:
        """Stores that the compiler takes out of the loop: here the rule is silent."""
        return _compiled(_sum_in_slots(), size, 0.0, "no condition")

    @bench(
        "each Python thread counts in its slot: the update costs more than the line",
        as_is="slots side by side",
        alternative="slots a line apart",
        needs=("numpy", "cpus"),
        sizes=Sizes("updates of each thread", quick=10_000, full=(10_000, 100_000)),
        quick=False,
    )
    def bench_python_threads(self, size: Size) -> Pair:
        """Threads of the interpreter."""
        from concurrent.futures import ThreadPoolExecutor

        workers = _workers(size)
        pool = ThreadPoolExecutor(workers)

        def count(slots: Any, worker: int) -> None:
            for _ in range(size.number):
                slots[worker, 0] += 1  # memlint: ignore[false-sharing]

        def counted(width: int) -> Callable[[], Any]:
            def run() -> Any:
                slots = _slots(workers, width)
                list(pool.map(count, [slots] * workers, range(workers)))
                return slots[:, 0]

            return run

        what = f"{size.number} updates, Python threads"
        return Pair(
            counted(1), counted(LINE // _ITEMSIZE), tuple, what, close=lambda: pool.shutdown()
        )


_ITEMSIZE = 8


def _workers(size: Size) -> int:
    return max(2, size.threads)


def _slots(workers: int, width: int) -> Any:
    """A slot for each worker, the first of so many elements of 8 bytes."""
    import numpy as np

    return np.zeros((workers, width), dtype=np.int64)


def _compiled(kernel: Callable[..., Any], size: Size, above: float, counted: str) -> Pair:
    import numpy as np

    def operands() -> tuple[Any, ...]:
        return (np.random.default_rng(0).random(size.number),)

    return Pair(
        _into_slots(kernel, size, 1, above),
        _into_slots(kernel, size, LINE // _ITEMSIZE, above),
        operands,
        f"{size.number} numbers, {counted}",
        # The stores are in question, not the numbers on their way from memory.
        rotate=False,
    )


def _into_slots(
    kernel: Callable[..., Any], size: Size, width: int, above: float
) -> Callable[[Any], Any]:
    workers = _workers(size)

    def run(samples: Any) -> Any:
        slots = _slots(workers, width)
        kernel(samples, above, slots)
        return slots[:, 0]

    return run


@cache
def _count_in_slots() -> Callable[..., Any]:
    from numba import njit, prange

    @njit(parallel=True)
    def kernel(samples: Any, above: Any, slots: Any) -> None:
        share = samples.size // slots.shape[0]
        for w in prange(slots.shape[0]):
            for k in range(w * share, (w + 1) * share):
                if samples[k] > above:
                    slots[w, 0] += 1

    return kernel


@cache
def _count_in_variables() -> Callable[..., Any]:
    from numba import njit, prange

    @njit(parallel=True)
    def kernel(samples: Any, above: Any, slots: Any) -> None:
        share = samples.size // slots.shape[0]
        for w in prange(slots.shape[0]):
            own = 0
            for k in range(w * share, (w + 1) * share):
                if samples[k] > above:
                    own += 1
            slots[w, 0] = own

    return kernel


@cache
def _sum_in_slots() -> Callable[..., Any]:
    from numba import njit, prange

    @njit(parallel=True)
    def kernel(samples: Any, above: Any, slots: Any) -> None:
        share = samples.size // slots.shape[0]
        for w in prange(slots.shape[0]):
            for k in range(w * share, (w + 1) * share):
                slots[w, 0] += int(samples[k] * 8)

    return kernel


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
