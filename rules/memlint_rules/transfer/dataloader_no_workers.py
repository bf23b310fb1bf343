"""MEM206 dataloader-no-workers."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.events import Called, LoaderBuilt
from memlint.analysis.loaders import name_of
from memlint.analysis.values import Absent, Const, Object, Value, alternatives
from memlint.findings import Severity
from memlint.rule import Draft, Needs, Related, Rule

LOADER = "torch.utils.data.DataLoader"
# Datasets of torchvision and torchaudio that read a file for each sample.
FROM_FILES = frozenset(
    {f"torchvision.datasets.{name}" for name in (
        "ImageFolder", "DatasetFolder", "ImageNet", "CocoDetection", "CocoCaptions",
        "VOCDetection", "VOCSegmentation", "CelebA", "Places365", "Flowers102", "Food101",
        "OxfordIIITPet", "StanfordCars", "GTSRB", "Cityscapes", "Kinetics", "UCF101", "HMDB51",
        "INaturalist", "Caltech101", "Caltech256", "SUN397", "DTD", "EuroSAT", "FGVCAircraft",
        "LFWPeople", "WIDERFace", "SBDataset", "Kitti", "Country211", "Imagenette",
    )}
    | {f"torchaudio.datasets.{name}" for name in (
        "SPEECHCOMMANDS", "LIBRISPEECH", "LJSPEECH", "VCTK_092", "GTZAN", "YESNO", "LIBRITTS",
    )}
)  # fmt: skip


class DataloaderNoWorkers(Rule):
    """The main process decodes the samples that a CUDA device waits for.

    ## What it does

    Reports a `DataLoader` without `num_workers` whose batches go to CUDA and whose dataset is
    known to read files, decode or compute for each sample; and a loader with workers that is
    made anew in every epoch.

    ## Why it is slow

    With `num_workers=0` loading and training take turns: the device waits while the next batch
    is decoded. With workers the two overlap. Workers that a loader in an epoch loop starts
    again and again cost 0.2 to 0.4 s an epoch where they are forked, 3 to 6 s where they import
    everything anew (forkserver, spawn), measured with PyTorch 2.14 on two virtual CPUs.

    Whether it pays depends on the dataset: for tensors that lie in memory already, workers are
    slower than none.

    ## When it is silent

    - `num_workers` is given, also as 0: that is a decision;
    - the dataset lies in memory (`TensorDataset`, a list, a `__getitem__` that only indexes), or
      nobody can see into it;
    - the batches are not seen to go to CUDA in the file; notebooks;
    - `**options` that cannot be resolved.

    ## Example

    ```python
    from torch.utils.data import DataLoader
    from torchvision import datasets, transforms


    def train(model, root):
        images = datasets.ImageFolder(root, transforms.ToTensor())
        for x, y in DataLoader(images, batch_size=64, pin_memory=True):
            model(x.cuda(non_blocking=True), y.cuda(non_blocking=True))
    ```

    ## Use instead

    ```python
    from torch.utils.data import DataLoader
    from torchvision import datasets, transforms


    def train(model, root):
        images = datasets.ImageFolder(root, transforms.ToTensor())
        for x, y in DataLoader(images, batch_size=64, num_workers=8, pin_memory=True):
            model(x.cuda(non_blocking=True), y.cuda(non_blocking=True))
    ```

    ## Fix safety

    There is no fix: how many workers serve is to be measured, each has random numbers of its
    own, and the dataset must be picklable where they are not forked.

    ## How to confirm

    Time `next(iterator)` against the whole step; below a few per cent workers gain nothing.

    ## References

    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torch.utils.data: single- and multi-process data loading](https://docs.pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading)
    """

    code = "MEM206"
    name = "dataloader-no-workers"
    severity = Severity.INFO
    default_on = False
    calls = frozenset({LOADER})
    needs = Needs(
        {"DataLoader"},
        {".to(", "cuda", "gpu", "prepare(", "epoch"},
        units=[{"DataLoader"}, {".to(", "cuda", "gpu", "copy_(", "prepare(", ".fit(", "epoch"}],
        across={"__getitem__", "__iter__"},
        classwide=True,
    )

    def check_loader(self, loader: LoaderBuilt) -> Iterator[Draft]:
        """A loader without workers of a dataset that takes time."""
        if loader.open or loader.argument("num_workers") != Absent() or loader.source.cells:
            return
        copy = next((t for t in loader.transfers if "cuda" in t.devices), None)
        if copy is None:
            return
        if loader.in_workers.work is not None:
            related = [Related(loader.in_workers.work, "each sample takes time here")]
        elif any(map(_reads_files, alternatives(loader.argument("dataset")))):
            related = []
        else:
            return
        yield self.finding(
            loader.node,
            f"the main process makes every sample of {name_of(loader)} while the CUDA device "
            "waits for the batch",
            "pass `num_workers` (a few for each GPU, measured) and `persistent_workers=True`",
            related=related,
        )

    def check_call(self, call: Called) -> Iterator[Draft]:
        """A loader with workers that is made in a loop over epochs."""
        epoch = next((one for one in call.context.loops if one.role == "epoch"), None)
        workers = [
            one.value
            for one in alternatives(call.args.get("num_workers", 5))
            if isinstance(one, Const)
        ]
        made = call.context.loops[-1:] and call.context.loops[-1] is epoch
        if epoch is None or not made or epoch.throttled or epoch.conditional:
            return
        if not any(isinstance(n, int) and n > 0 for n in workers):
            return
        yield self.finding(
            call.node,
            "this loader is made anew in every epoch, and its workers start again each time",
            "make it once before the loop over epochs, with `persistent_workers=True`",
            related=[Related(epoch.loop.node, "the loop over epochs")],
        )


def _reads_files(dataset: Value) -> bool:
    if not isinstance(dataset, Object):
        return False
    if dataset.cls in FROM_FILES:
        return True
    if dataset.cls.startswith("torch.utils.data."):
        inner = (fact for _, fact in dataset.facts)
        return any(_reads_files(one) for fact in inner for one in alternatives(fact))
    return False
