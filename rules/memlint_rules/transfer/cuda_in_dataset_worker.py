"""MEM209 cuda-in-dataset-worker."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.events import LoaderBuilt
from memlint.analysis.loader_calls import may_start_workers
from memlint.analysis.loaders import has_workers, name_of
from memlint.analysis.shown import short_text
from memlint.analysis.values import Absent, devices_of, leaves
from memlint.findings import Confidence, Severity
from memlint.rule import Draft, Needs, Related, Rule

HELP = (
    "give CPU tensors from the dataset and the collate function, let the loader pin them "
    "(`pin_memory=True`), and copy whole batches in the training loop "
    '(`batch.to("cuda", non_blocking=True)`)'
)


class CudaInDatasetWorker(Rule):
    """Worker processes of a DataLoader use CUDA.

    ## What it does

    Reports moves to CUDA in what the workers of a `DataLoader` run: `__getitem__` or `__iter__`
    of its dataset, their transforms and helper functions, and the collate function. It also
    reports a dataset that keeps its samples on CUDA and is read by workers.

    ## Why it is slow

    Forked workers cannot use CUDA once the parent has: "Cannot re-initialize CUDA in forked
    subprocess". Started by `spawn` they can, but each worker then holds a CUDA context of its
    own (hundreds of MB of device memory), each sample is copied by itself from pageable memory,
    and the tensors are handed over by CUDA IPC, which the documentation of PyTorch advises
    against. A batch that is collated on the host, pinned and copied once moves the same bytes in
    one transfer that can overlap with computing.

    ## When it is silent

    - the loader has no workers: a dataset that is resident on the GPU is right there;
    - the device is not known, or is a literal "cpu";
    - moves in `__init__` of samples that are brought back to the host, and moves in the loop
      over the loader;
    - the dataset or the collate function is not in the program.

    Where `num_workers` is not known, and where the program starts processes by `spawn`, the
    finding is only *info*.

    ## Example

    ```python
    import torch
    from torch.utils.data import DataLoader, Dataset


    class Scans(Dataset):
        def __init__(self, paths):
            self.paths = paths

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, index):
            return torch.load(self.paths[index], map_location="cpu", mmap=True).cuda()


    def feed(paths):
        return DataLoader(Scans(paths), batch_size=16, num_workers=4)
    ```

    ## Use instead

    ```python
    import torch
    from torch.utils.data import DataLoader, Dataset


    class Scans(Dataset):
        def __init__(self, paths):
            self.paths = paths

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, index):
            return torch.load(self.paths[index], map_location="cpu", mmap=True)


    def feed(paths):
        for batch in DataLoader(Scans(paths), batch_size=16, num_workers=4, pin_memory=True):
            yield batch.to("cuda", non_blocking=True)
    ```

    ## Fix safety

    There is no fix: the copy has to move to the loop that reads the loader.

    ## How to confirm

    Run one epoch on a machine with CUDA: forked workers raise. With `spawn`, look at the device
    of what the loader yields and at the sizes of the host-to-device copies in a profile.

    ## References

    - [torch.utils.data: multi-process data loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading)
    - [CUDA in multiprocessing](https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing)
    """

    code = "MEM209"
    name = "cuda-in-dataset-worker"
    severity = Severity.WARNING
    needs = Needs(
        {"DataLoader"},
        {"cuda", "gpu", "device"},
        units=[{"DataLoader"}],
        across={"__getitem__", "__iter__", "collate"},
        classwide=True,
        places=may_start_workers,
    )
    needs_device = "cuda"

    def check(self, loader: LoaderBuilt) -> Iterator[Draft]:
        """A loader whose workers move tensors to CUDA."""
        workers = has_workers(loader)
        if workers is False or (workers is None and _not_given(loader)):
            return
        spawned = loader.source.holds("spawn")
        severity = Severity.WARNING if workers and not spawned else Severity.INFO
        for move in loader.in_workers.moves:
            yield self.finding(
                move.node,
                f"`{short_text(move.text)}` runs in the worker processes of {name_of(loader)}: "
                + (
                    "each worker gets a CUDA context of its own and copies sample by sample"
                    if spawned
                    else "forked workers cannot use CUDA once the parent has, and spawned ones "
                    "copy sample by sample"
                ),
                HELP,
                severity=severity,
                confidence=Confidence.HIGH if workers else Confidence.MEDIUM,
                related=[Related(loader.node, "the loader with workers")],
            )
        if not loader.in_workers.moves and any(
            "cuda" in devices_of(leaf) for leaf in leaves(loader.batch)
        ):
            yield self.finding(
                loader.node,
                f"the samples that the workers of {name_of(loader)} read are CUDA tensors: "
                "forked workers cannot use CUDA once the parent has",
                "load a dataset that is resident on the GPU without workers (`num_workers=0`), "
                "or keep it on the host",
                severity=severity,
                confidence=Confidence.HIGH if workers else Confidence.MEDIUM,
            )


def _not_given(loader: LoaderBuilt) -> bool:
    return isinstance(loader.argument("num_workers"), Absent)
