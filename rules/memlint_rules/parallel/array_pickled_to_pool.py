"""MEM404 array-pickled-to-pool."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.invariance import Invariance
from memlint.analysis.pools import MAPPERS, STAR_MAPPERS, SUBMITTERS, Sent, sent_with_each
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Severity
from memlint.rule import Draft, Needs, Related, Rule

STARTS = ("Pool(", "ProcessPoolExecutor")
METHODS = tuple(f"{name}(" for name in sorted(MAPPERS | STAR_MAPPERS | SUBMITTERS))


class ArrayPickledToPool(Rule):
    """The same array is sent to the workers of a process pool with every task.

    ## What it does

    Reports NumPy arrays and pandas or polars tables that are made once and then handed to all
    tasks of a process pool (`multiprocessing.Pool`, `concurrent.futures.ProcessPoolExecutor`): in
    the tuples of `map` and `starmap`, through `itertools.repeat` or `[array] * n`, bound by
    `functools.partial`, or as an argument of `submit` and `apply_async` in a loop.

    ## Why it is slow

    Arguments are pickled, written to a pipe, read and unpickled for each task (for each chunk
    where `partial` binds them), in the process that hands out the tasks. Measured for an array of
    32 MB and 16 tasks on two cores of an AMD Zen 3: 1.1 s in tuples or by `partial`, 2.0 s by
    `partial` with `chunksize=1`, against 2.4 ms once an initializer had handed it over (20 ms by
    fork, 440 ms by forkserver). It grows with the size of the array and the number of tasks, and
    each worker holds a copy.

    ## When it is silent

    - threads, and joblib, which maps large arrays into memory by itself;
    - tensors of PyTorch: they are moved to shared memory once and then sent as handles;
    - a part of the array for each task (`data[i]`), and arrays that change between tasks;
    - `initializer`/`initargs`, arrays in shared memory, `np.memmap`;
    - arrays of known shape below 64 KiB, pools of one process, single tasks;
    - arguments that are not known to be arrays.

    ## Example

    ```python
    from multiprocessing import Pool

    import numpy as np


    def score(table, row):
        return float(table[row].sum())


    def scores(path, rows):
        table = np.load(path)
        with Pool(8) as pool:
            return pool.starmap(score, [(table, row) for row in rows])
    ```

    ## Use instead

    ```python
    from multiprocessing import Pool

    import numpy as np

    table = None


    def start(path):
        global table
        table = np.load(path, mmap_mode="r")


    def score(row):
        return float(table[row].sum())


    def scores(path, rows):
        with Pool(8, initializer=start, initargs=(path,)) as pool:
            return pool.map(score, rows)
    ```

    ## Fix safety

    There is no fix: the array has to reach the workers in another way (an initializer,
    `multiprocessing.shared_memory`, a file that each of them maps), which changes the functions.

    ## How to confirm

    Compare `len(pickle.dumps(array))` times the number of tasks with the memory bandwidth, or
    look for time in `pickle` and in `Connection.send` of the main process. `memlint bench
    array-pickled-to-pool` measures it with arrays of several sizes.

    ## References

    - [multiprocessing: programming guidelines](https://docs.python.org/3/library/multiprocessing.html#programming-guidelines)
    - [multiprocessing.shared_memory](https://docs.python.org/3/library/multiprocessing.shared_memory.html)
    """

    code = "MEM404"
    name = "array-pickled-to-pool"
    severity = Severity.WARNING
    needs = Needs(set(STARTS), set(METHODS), {"numpy", "pandas", "polars"}, units=[set(METHODS)])
    calls: ClassVar[frozenset[str]] = MAPPERS | STAR_MAPPERS | SUBMITTERS

    _start: ProgramStart
    _invariance: Invariance

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Take the program's tree: arguments are followed to where they are put together."""
        self._start = start
        self._invariance = Invariance(start.tree)
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """Tasks that all get the same array."""
        for sent in sent_with_each(called, self._start.tree, self._invariance):
            yield self._finding(called, sent)
            return

    def _finding(self, called: Called, sent: Sent) -> Draft:
        unit = "chunk of tasks" if sent.chunk else "task"
        return self.finding(
            called.node,
            f"the {sent.what} `{sent.text}` is pickled and sent to a worker process with every "
            f"{unit}, a copy of all of it each time",
            "hand it over once (`initializer=`, `multiprocessing.shared_memory`, or a file that "
            "each worker maps), and send the tasks only what tells them apart",
            related=[Related(sent.node, "it goes along here")],
        )

    @bench(
        "16 tasks of a pool of two processes take a row of an array each",
        as_is="the array in each task's tuple",
        alternative="handed over once, by an initializer",
        needs=("numpy",),
        sizes=Sizes("MiB of the array", quick=4, full=(1, 4, 32)),
    )
    def bench_tuples(self, size: Size) -> Pair:
        """The array beside each row."""
        return _on_pools(size)

    @bench(
        "16 tasks of a pool of two processes take a row of an array each",
        as_is="the array bound by partial",
        alternative="handed over once, by an initializer",
        needs=("numpy",),
        sizes=Sizes("MiB of the array", quick=4, full=(1, 4, 32)),
        quick=False,
    )
    def bench_partial(self, size: Size) -> Pair:
        """`map` of a partial."""
        return replace(
            _on_pools(size),
            as_is=lambda pool, _, table: pool.map(
                partial(_row_of, table), [(row,) for row in range(_TASKS)]
            ),
        )


_TASKS, _COLUMNS, _WORKERS = 16, 1024, 2
_CHUNK = 2
"""As `multiprocessing.Pool` has it for so many tasks."""


def _row_of(table: Any, row: int) -> float:
    return float(table[row].sum())


def _work(tasks: Any, kept: Any) -> None:
    """What a worker of a pool does: take chunks of tasks from a pipe, and answer with the results.

    ``kept`` is the array that it was started with, where it was."""
    # The process that hands out the tasks ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        function, chunk = tasks.recv()
        tasks.send([function(*task) if kept is None else function(kept, *task) for task in chunk])


class _Workers:
    """Two processes and their pipes: a pool of which nothing is left to wait for when it ends."""

    def __init__(self, kept: Any = None) -> None:
        from multiprocessing import get_context

        # Forks of a process with threads may hang; what is sent with the tasks is the same.
        context = get_context("spawn")
        pipes = [context.Pipe() for _ in range(_WORKERS)]
        self._pipes = [ours for ours, _ in pipes]
        self._processes = [
            context.Process(target=_work, args=(theirs, kept), daemon=True) for _, theirs in pipes
        ]
        for process in self._processes:
            process.start()

    def map(self, function: Any, tasks: list[tuple[Any, ...]]) -> list[float]:
        chunks = [tasks[start : start + _CHUNK] for start in range(0, len(tasks), _CHUNK)]
        for number, chunk in enumerate(chunks):
            self._pipes[number % _WORKERS].send((function, chunk))
        answers = [self._pipes[number % _WORKERS].recv() for number in range(len(chunks))]
        return [result for answer in answers for result in answer]

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.join()


def _on_pools(size: Size) -> Pair:
    import numpy as np

    rows = (size.number << 20) // (8 * _COLUMNS)
    table = np.random.default_rng(0).random((rows, _COLUMNS))
    plain, initialized = _Workers(), _Workers(table)

    def close() -> None:
        plain.close()
        initialized.close()

    return Pair(
        lambda pool, _, table: pool.map(_row_of, [(table, row) for row in range(_TASKS)]),
        lambda _, pool, table: pool.map(_row_of, [(row,) for row in range(_TASKS)]),
        lambda: (plain, initialized, table),
        f"{size.number} MiB, {_TASKS} tasks",
        rotate=False,
        close=close,
    )
