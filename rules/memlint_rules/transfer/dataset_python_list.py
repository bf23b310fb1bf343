"""MEM207 dataset-python-list."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from memlint.analysis.events import DatasetAttribute, LoaderBuilt
from memlint.analysis.loader_calls import may_start_workers
from memlint.analysis.loaders import has_workers, name_of
from memlint.analysis.values import Absent, constants
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import PROCESS_GRAIN, Size, Weighed
from memlint.findings import Confidence, Severity
from memlint.rule import Draft, Needs, Related, Rule
from memlint.tracer.records import WorkerMemory
from memlint.tracer.sightings import Sighting

HELP = (
    "keep the samples in a tensor, an Arrow table or a memory map: fixed-width records as one "
    "tensor, strings as one uint8 tensor of their bytes with a tensor of offsets. On Python 3.14 "
    "(forkserver), macOS and Windows (spawn) every worker is sent a pickled copy at the start, of "
    "NumPy arrays too, while tensors are shared and memory maps opened in the worker cost nothing"
)
FRESH = frozenset({"spawn", "forkserver"})
LEAST_GROWTH = 64 << 20
LEAST_RATIO = 1.25


class DatasetPythonList(Rule):
    """The samples of a dataset are Python objects, which every worker comes to own a copy of.

    ## What it does

    Reports an attribute of a dataset that holds an entry for each sample as Python objects (a
    list of paths, strings, tuples or dictionaries, what `json.load` gives, `df.to_dict(...)`, an
    array of objects, a data frame) where a `DataLoader` of the program reads the dataset in
    worker processes.

    ## Why it is slow

    Forked workers share the parent's memory until somebody writes to it. Reading a Python
    object writes to it: its reference count changes, and the page that it lies on is copied. In
    the course of an epoch each worker comes to own a copy of all the objects. Measured with two
    million paths: a list, a tuple or an array of objects takes a worker from 46 to 199 MiB in
    one epoch, a fixed-width array of bytes from 11 to 15 MiB (Python 3.11, fork);
    `gc.freeze()` does not help. Where workers are not forked (the default of Python 3.14, macOS
    and Windows), the objects are pickled to each of them at the start instead.

    It grows with the number of samples times that of workers: thousands of samples do not
    matter, millions fill the host.

    ## When it is silent

    - the loader has no workers, or no loader of the program reads the dataset; where it takes
      `**options` that nobody can see into, the finding has low confidence;
    - tensors, arrays of numbers or fixed-width strings, Arrow tables, memory maps, open files;
    - lists of tensors or arrays: beside these their objects weigh nothing;
    - attributes that are not taken by the index of a sample: class names, vocabularies, options;
    - collections of fewer than 10,000 entries, where that is known, and values nobody can see
      into: what a pickle gives counts only where its entries are used as dictionaries, none of
      whose values is used as an array.

    ## Example

    ```python
    import json

    from torch.utils.data import DataLoader, Dataset


    class Captions(Dataset):
        def __init__(self, path):
            with open(path) as file:
                self.captions = json.load(file)

        def __len__(self):
            return len(self.captions)

        def __getitem__(self, index):
            return self.captions[index]["tokens"]


    def loader(path):
        return DataLoader(Captions(path), batch_size=64, num_workers=8, pin_memory=True)
    ```

    ## Use instead

    ```python
    import json

    import torch
    from torch.utils.data import DataLoader, Dataset


    class Captions(Dataset):
        def __init__(self, path):
            with open(path) as file:
                tokens = [caption["tokens"] for caption in json.load(file)]
            self.tokens = torch.tensor([token for one in tokens for token in one])
            self.ends = torch.tensor([len(one) for one in tokens]).cumsum(0)

        def __len__(self):
            return len(self.ends)

        def __getitem__(self, index):
            first = self.ends[index - 1] if index else 0
            return self.tokens[first : self.ends[index]]


    def loader(path):
        return DataLoader(Captions(path), batch_size=64, num_workers=8, pin_memory=True)
    ```

    ## Fix safety

    There is no fix: how samples are kept is a decision about the program.

    ## How to confirm

    Trace an epoch: on Linux, the memory that the workers own (`Private_*` in
    `/proc/<pid>/smaps_rollup`) is looked at after 1, 2, 4, ... batches, and told where it grows by
    64 MiB and a quarter. If it does not, the collection is small enough. `memlint bench
    dataset-python-list` forks a worker and measures the same.

    ## References

    - [torch.utils.data: multi-process data loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading)
    - [pytorch#13246: DataLoader num_workers > 0 causes memory to leak](https://github.com/pytorch/pytorch/issues/13246)
    - [Demystify RAM usage in multi-process data loaders](https://ppwwyyxx.com/blog/2022/Demystify-RAM-Usage-in-Multiprocess-DataLoader/)
    """

    code = "MEM207"
    name = "dataset-python-list"
    severity = Severity.INFO
    needs = Needs(
        {"DataLoader"},
        {"__getitem__", "__iter__"},
        units=[{"DataLoader"}],
        # The dataset, and helper functions that list its samples, may be imported.
        across={"__getitem__", "__iter__", "open(", "glob", "listdir"},
        classwide=True,
        places=may_start_workers,
    )

    def observe(self, memory: WorkerMemory) -> Iterator[Sighting]:
        """Workers that come to own ever more memory as they read."""
        grown = memory.last - memory.first
        if grown < LEAST_GROWTH or memory.last < LEAST_RATIO * memory.first:
            return
        first, last = (one / memory.workers / 2**20 for one in (memory.first, memory.last))
        yield Sighting(
            self,
            memory.site,
            f"each of the {memory.workers} workers of this loader came to own {last:.0f} MiB where "
            f"it was {first:.0f} MiB {memory.batches} batches before: a copy of what it reads of "
            "the dataset's Python objects, or something that the dataset keeps",
            HELP,
            self.severity,
            memory.batches,
            memory.batches,
            grown,
        )

    def check(self, kept: DatasetAttribute) -> Iterator[Draft]:
        """Python objects, one for each sample, in a dataset that workers read."""
        known = [loader for loader in kept.loaders if has_workers(loader)]
        unknown = [loader for loader in kept.loaders if has_workers(loader) is None]
        readers = known or unknown
        if not readers:
            return
        loader = readers[0]
        yield self.finding(
            kept.node,
            _message(kept, loader),
            HELP,
            confidence=_confidence(kept, loader, known=bool(known)),
            related=[Related(loader.node, "the loader whose workers read it")],
        )

    @bench(
        "a forked worker reads all paths of its parent",
        as_is="a list of strings",
        alternative="an array of fixed-width bytes",
        needs=("numpy", "linux", "fork"),
        sizes=Sizes("paths", quick=200_000, full=(200_000, 2_000_000)),
    )
    def bench_list(self, size: Size) -> Weighed:
        """What a worker comes to own, of a list."""
        return _weighed("list", size)

    @bench(
        "a forked worker reads all paths of its parent",
        as_is="an array of objects",
        alternative="an array of fixed-width bytes",
        needs=("numpy", "linux", "fork"),
        sizes=Sizes("paths", quick=200_000, full=(200_000, 2_000_000)),
        quick=False,
    )
    def bench_objects(self, size: Size) -> Weighed:
        """What a worker comes to own, of an array of objects."""
        return _weighed("objects", size)


def _weighed(kept: str, size: Size) -> Weighed:
    from memlint.bench.child import in_child

    return Weighed(
        lambda: in_child(owned_after_reading, kept, size.number),
        lambda: in_child(owned_after_reading, "bytes", size.number),
        of="owned by the worker",
        what=f"{size.number} paths",
        grain=PROCESS_GRAIN,
    )


def owned_after_reading(kept: str, count: int) -> int:
    """The bytes that a forked worker owns more after it read so many paths of its parent, kept as
    a "list", as "objects" of an array or as its fixed-width "bytes"."""
    from multiprocessing import get_context

    import numpy as np

    paths: Any = [f"data/train/{number % 1000:04}/{number:09}.jpg" for number in range(count)]
    if kept != "list":
        paths = np.array(paths, dtype=object if kept == "objects" else "S")
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    worker = context.Process(target=_read, args=(paths, theirs))
    worker.start()
    # A worker that died leaves nobody who could still send.
    theirs.close()
    grown: int = ours.recv()
    worker.join()
    return grown


def _read(paths: Any, answer: Any) -> None:
    from memlint.tracer.worker_memory import own_bytes

    before = own_bytes(os.getpid())
    for index in range(len(paths)):
        paths[index]
    after = own_bytes(os.getpid())
    answer.send((after or 0) - (before or 0))


def _message(kept: DatasetAttribute, loader: LoaderBuilt) -> str:
    head = f"`{kept.name}` of `{kept.cls}` is {kept.what}, an entry for each sample"
    if kept.table:
        head += " (its columns of text are Python objects before pandas 3)"
    if FRESH & set(constants(loader.argument("multiprocessing_context"))):
        return (
            f"{head}: it is pickled to each worker of {name_of(loader)} at the start, some 100 "
            "bytes an object and worker: little for thousands of them, much for millions"
        )
    return (
        f"{head}: the workers of {name_of(loader)} touch the reference counts as they read, so "
        "that each comes to own a copy, some 100 bytes an object and worker: little for thousands "
        "of them, much for millions"
    )


def _confidence(kept: DatasetAttribute, loader: LoaderBuilt, *, known: bool) -> Confidence:
    if not known and isinstance(loader.argument("num_workers"), Absent):
        return Confidence.LOW  # ``**options`` that nobody can see into
    return Confidence.HIGH if known and kept.sure and not kept.table else Confidence.MEDIUM
