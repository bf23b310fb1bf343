"""MEM406 affinity-single-core."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import ClassVar

from memlint.analysis.affinity import (
    binding_in_lambda,
    binds_itself,
    cores_of,
    is_fixed,
    is_single,
    restored,
    runners,
)
from memlint.analysis.conditions import names_around
from memlint.analysis.events import Called, LoaderBuilt, ProgramStart
from memlint.analysis.values import Function, alternatives, must_be
from memlint.findings import Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, Needs, Rule

MEASURES = late_pattern(r"bench|profil|timing|latency|measure|(^|_)test", re.IGNORECASE)
ONE_THREAD = late_pattern(
    r"set_num_threads\(\s*1\s*\)|(OMP|MKL|OPENBLAS|NUMBA)_NUM_THREADS[\"']?\s*\]?\s*[=,:]\s*[\"']1[\"']"
    r"|threadpool_limits\("
)
HELP_PROCESS = (
    "bind to all processors of the GPU's NUMA node, or leave the affinity alone"
)  # fmt: skip
HELP_WORKERS = (
    "give each worker a processor of its own (`{cpus[worker_id % len(cpus)]}`), or leave the "
    "affinity alone"
)


class AffinitySingleCore(Rule):
    """A training process, or all workers of a loader, are bound to one processor.

    ## What it does

    Reports `os.sched_setaffinity(0, ...)` and `psutil.Process().cpu_affinity(...)` with a set of
    just one processor in a program that uses PyTorch, where the process that trains binds itself,
    and in the `worker_init_fn` of a DataLoader or the initializer of a pool where all workers bind
    themselves to the same one.

    ## Why it is slow

    Threads and child processes inherit the affinity of their parent: OpenMP's threads, the
    workers of a DataLoader and the thread that pins its batches all take turns on that one
    processor. Measured with PyTorch 2.14 on two cores of an AMD Zen 3: bound before PyTorch is
    imported it starts one thread, bound later its two threads share a core; a matrix product
    takes twice its time either way (50 against 99 and 108 ms), and more where there are more cores
    to lose.

    ## When it is silent

    - sets of several processors, and sets whose size is not known;
    - workers that get a processor each (the set is computed from the worker's number), and other
      child processes and threads;
    - programs that run with one thread on purpose (`torch.set_num_threads(1)`), unless all
      workers share one processor;
    - an affinity that is set back in the same function;
    - benchmarks and tests, by their names;
    - programs without PyTorch.

    ## Example

    ```python
    import os

    import torch


    def main(local_rank, train):
        os.sched_setaffinity(0, {local_rank})
        torch.cuda.set_device(local_rank)
        train()
    ```

    ## Use instead

    ```python
    import os

    import torch


    def main(local_rank, train, cores_per_rank):
        first = local_rank * cores_per_rank
        os.sched_setaffinity(0, range(first, first + cores_per_rank))
        torch.cuda.set_device(local_rank)
        train()
    ```

    ## Fix safety

    There is no fix: which processors belong to which GPU is a matter of the machine
    (`nvidia-smi topo -m`, `lscpu`).

    ## How to confirm

    Compare `len(os.sched_getaffinity(0))` with `torch.get_num_threads()` and the number of
    workers while the program runs.

    ## References

    - [os.sched_setaffinity](https://docs.python.org/3/library/os.html#os.sched_setaffinity)
    - [CPU affinity that an import set to one core](https://github.com/pytorch/pytorch/issues/101850)
    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code = "MEM406"
    name = "affinity-single-core"
    severity = Severity.WARNING
    needs = Needs(
        {"sched_setaffinity", "cpu_affinity("},
        {"torch"},
        units=[{"sched_setaffinity", "cpu_affinity("}],
    )
    calls: ClassVar[frozenset[str]] = frozenset({"os.sched_setaffinity", ".cpu_affinity"})

    _tree: ast.Module
    _silent: bool
    _one_thread: bool

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """See what kind of program it is."""
        self._tree = start.tree
        measures = MEASURES.search(start.source.path.rpartition("/")[2]) is not None
        self._silent = measures or "torch" not in start.source.text
        self._one_thread = ONE_THREAD.search(start.source.text) is not None
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """A process that binds itself to one processor."""
        node = called.node
        cores = cores_of(called)
        if self._silent or not isinstance(node, ast.Call) or not is_single(cores):
            return
        if not binds_itself(called, node) or restored(called, self._tree):
            return
        if any(map(MEASURES.search, names_around(node, self._tree))):
            return
        who = runners(called, self._tree)
        shared = bool(who & {"loader", "pool"})
        if shared:
            if is_fixed(cores):
                yield self._of_workers(node, "loader" if "loader" in who else "pool")
        elif "child" not in who and not self._one_thread:
            yield self.finding(
                node,
                "this process binds itself to one processor, and its threads and the workers of "
                "its loaders inherit that: they all take turns on it",
                HELP_PROCESS,
            )

    def check_loader(self, loader: LoaderBuilt) -> Iterator[Draft]:
        """Workers that a lambda binds."""
        if self._silent or must_be(loader.argument("num_workers"), 1):
            return
        for one in alternatives(loader.argument("worker_init_fn")):
            call = binding_in_lambda(one.node) if isinstance(one, Function) else None
            if call is not None:
                yield self._of_workers(call, "loader")

    def _of_workers(self, node: ast.AST, whose: str) -> Draft:
        return self.finding(
            node,
            f"every worker of the {whose} binds itself to the same processor: together they work "
            "no faster than one",
            HELP_WORKERS,
        )
