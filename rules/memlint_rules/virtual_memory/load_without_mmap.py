"""MEM601 load-without-mmap."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlint.analysis.edits import call_with_keyword
from memlint.analysis.events import Called, ProgramEnd, ProgramStart
from memlint.analysis.files import ending_of, is_stream
from memlint.analysis.places.load import LOAD, SAMPLES, SMALL, may_load, named_file
from memlint.analysis.shown import shown
from memlint.analysis.uses import uses_in
from memlint.analysis.values import Absent, must_be
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import PEAK_GRAIN, Pair, Size, Weighed
from memlint.findings import Applicability, Confidence, Severity
from memlint.rule import Draft, DraftFix, Needs, Rule

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

HELP = (
    'pass `map_location="cpu", mmap=True, weights_only=True`, make the model under '
    '`torch.device("meta")`, and give `load_state_dict` `assign=True`: without `assign` the '
    "weights are still copied"
)


class LoadWithoutMmap(Rule):
    """A checkpoint is read whole, and onto the devices that it was saved from.

    ## What it does

    Reports `torch.load` of a path without `map_location` and without `mmap`. Where
    `map_location` is given and only `mmap=True` is missing, the finding has low confidence.

    ## Why it is slow

    Without `map_location` each tensor is brought back to the device that it was saved from: of
    several processes, all first fill the GPU that wrote the file, and a host without that device
    raises an error. Without `mmap` the whole file is read into memory before the first weight is
    copied, so that at the peak the weights are there twice. Measured with PyTorch 2.14 on an AMD
    Zen 3, with a file of 977 MiB: reading and `load_state_dict` took 1956 MiB and 0.97 s; with
    `mmap=True` alone the peak is the same; with `mmap=True`, a model on the meta device and
    `assign=True` it is 981 MiB, all of it backed by the file, and 0.01 s with the file in the
    page cache. How much that matters depends on the size of the checkpoint.

    ## When it is silent

    - `mmap` is given, also as `False`: a file that is written again while it is in use must not
      be mapped;
    - what is read is an open file, a `BytesIO` or the like, which cannot be mapped;
    - the same path is written by `torch.save` in the same loop;
    - the file is small by its name (a scheduler, a vocabulary, the state of a generator), or a
      data set reads its samples;
    - options come by `**kwargs` that cannot be resolved.

    ## Example

    ```python
    import torch


    def restore(model, path):
        model.load_state_dict(torch.load(path))
        return model
    ```

    ## Use instead

    ```python
    import torch


    def restore(make_model, path):
        with torch.device("meta"):
            model = make_model()
        weights = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
        model.load_state_dict(weights, assign=True)
        return model
    ```

    ## Fix safety

    Unsafe: the fix adds `map_location="cpu", mmap=True`. Tensors that were on a GPU are then on
    the host; checkpoints of the format before PyTorch 1.6 cannot be mapped; the file must not
    change while it is mapped, and network file systems page slowly. With `assign=True` the
    parameters are replaced, so that the optimizer has to be made after loading, and dtype and
    `requires_grad` come from the file.

    ## How to confirm

    Compare the peak of resident memory around the call with the size of the file, and look at
    the devices of the tensors that come back. `memlint bench load-without-mmap` measures time
    and peak with a file of its own; what was written just before is in the page cache.

    ## References

    - [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html)
    - [Tips for loading an nn.Module from a checkpoint](https://docs.pytorch.org/tutorials/recipes/recipes/module_load_state_dict_tips.html)
    """

    code = "MEM601"
    name = "load-without-mmap"
    severity = Severity.INFO
    applicability = Applicability.UNSAFE
    calls = frozenset({"torch.load", "torch.serialization.load", "torch.save"})
    since = ("torch", (2, 1))
    needs = Needs({"torch"}, {"load"}, units=[{LOAD}], places=may_load)

    def check_start(self, program: ProgramStart) -> Iterator[Draft]:
        """Begin a program."""
        self._tree = program.tree
        self._loads: list[Called] = []
        self._saves: list[Called] = []
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """Collect what reads and what writes files."""
        if called.name in ("torch.load", "torch.serialization.load"):
            self._loads.append(called)
        elif called.name == "torch.save":
            self._saves.append(called)
        yield from ()

    def check_end(self, program: ProgramEnd) -> Iterator[Draft]:
        """Reads of whole files."""
        for load in self._loads:
            if _is_candidate(load) and not self._is_small(load) and not self._is_rewritten(load):
                yield self._report(load)

    def _is_small(self, load: Called) -> bool:
        """Whether a file is small by its name, or a sample of a data set."""
        call = load.node
        assert isinstance(call, ast.Call)
        owner = uses_in(self._tree).class_of(call)
        if owner is not None and any(
            map(SAMPLES.search, [owner.name, *map(ast.unparse, owner.bases)])
        ):
            return True
        path = _path_node(call)
        names = [named_file(path) if path is not None else ""]
        names.append(ending_of(load.args.get("f", 0), path))
        uses = uses_in(self._tree)
        names.extend(use.name.removesuffix(".load_state_dict") for use in uses.of(call))
        names.extend(uses.names_of(call))
        return any(SMALL.search(name) for name in names)

    def _is_rewritten(self, load: Called) -> bool:
        path = _text_of_path(load, 0)
        loops = [enclosing.loop.node for enclosing in load.context.loops]
        return any(
            _text_of_path(save, 1) == path
            and any(enclosing.loop.node in loops for enclosing in save.context.loops)
            for save in self._saves
        )

    def _report(self, load: Called) -> Draft:
        placed = not _left_out(load, "map_location", 1)
        if placed:
            message = (
                f"{shown(load.node)} reads the whole file into memory before any of it is used: "
                "large weights are there twice while they are copied into a model"
            )
        else:
            message = (
                f"without `map_location`, {shown(load.node)} brings the tensors back to the "
                "devices they were saved from, and without `mmap` the whole file is read into "
                "memory first: large weights are there twice while they are copied into a model"
            )
        return self.finding(
            load.node,
            message,
            HELP,
            confidence=Confidence.LOW if placed else Confidence.MEDIUM,
            fix=_fix(load, placed=placed),
        )

    @bench(
        "weights are loaded into a model, and each is used once; the file is in the page cache",
        as_is="load_state_dict(torch.load(path))",
        alternative="the file is mapped and assigned",
        needs=("torch",),
        sizes=Sizes("MiB of weights", quick=32, full=(32, 256, 1024)),
    )
    def bench_time(self, size: Size) -> Pair:
        """How long it takes."""
        folder, path = _saved(size)
        return Pair(
            lambda: _loaded(path, size.number, "read"),
            lambda: _loaded(path, size.number, "mapped"),
            tuple,
            f"{size.number} MiB",
            close=folder.cleanup,
        )

    @bench(
        "weights are loaded into a model, and each is used once",
        as_is="load_state_dict(torch.load(path))",
        alternative="the file is mapped and assigned",
        needs=("torch", "linux"),
        sizes=Sizes("MiB of weights", quick=64, full=(64, 256, 1024)),
        # Each of the processes imports torch.
        quick=False,
    )
    def bench_peak(self, size: Size) -> Weighed:
        """What it takes at its peak."""
        return _peaks(size, "read", "mapped")

    @bench(
        "weights are loaded into a model, and each is used once",
        as_is="load_state_dict(torch.load(path))",
        alternative="mmap=True, without assign=True",
        needs=("torch", "linux"),
        sizes=Sizes("MiB of weights", quick=64, full=(64, 256, 1024)),
        quick=False,
    )
    def bench_copied(self, size: Size) -> Weighed:
        """Half of the remedy: the weights are still there twice at the peak."""
        return _peaks(size, "read", "copied")


_LAYER_MIB = 4


def _saved(size: Size) -> tuple[TemporaryDirectory[str], str]:
    from tempfile import TemporaryDirectory

    import torch

    folder = TemporaryDirectory(prefix="memlint-bench-")
    path = str(Path(folder.name) / "weights.pt")
    torch.manual_seed(0)
    weights = {
        name: torch.rand(one.shape) for name, one in _model(size.number).state_dict().items()
    }
    torch.save(weights, path)
    return folder, path


def _model(mebibytes: int) -> Any:
    """A model without weights, for so many of them."""
    import torch

    layers = max(1, mebibytes // _LAYER_MIB)
    with torch.device("meta"):
        return torch.nn.Sequential(
            *(torch.nn.Linear(1024, 1024, bias=False) for _ in range(layers))
        )


def _read(path: str, model: Any) -> None:
    import torch

    weights = torch.load(path, weights_only=True)  # memlint: ignore[load-without-mmap]
    model.to_empty(device="cpu").load_state_dict(weights)


def _copied(path: str, model: Any) -> None:
    import torch

    weights = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    model.to_empty(device="cpu").load_state_dict(weights)


def _mapped(path: str, model: Any) -> None:
    import torch

    weights = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    model.load_state_dict(weights, assign=True)


_WAYS: Mapping[str, Callable[[str, Any], None]] = {
    "read": _read,
    "copied": _copied,
    "mapped": _mapped,
}


def _loaded(path: str, mebibytes: int, way: str) -> tuple[float, ...]:
    model = _model(mebibytes)
    _WAYS[way](path, model)
    return tuple(float(weight.detach().sum()) for weight in model.parameters())


def _peaks(size: Size, as_is: str, alternative: str) -> Weighed:
    from memlint.bench.child import in_child

    folder, path = _saved(size)
    return Weighed(
        lambda: in_child(peak_of_loading, path, size.number, as_is),
        lambda: in_child(peak_of_loading, path, size.number, alternative),
        of="peak of resident memory",
        what=f"{size.number} MiB",
        grain=PEAK_GRAIN,
        close=folder.cleanup,
    )


def peak_of_loading(path: str, mebibytes: int, way: str) -> int:
    """What resident memory grows by at its peak, the pages of a mapped file included."""
    import torch

    from memlint.bench.child import peak_bytes, resident_bytes

    torch.set_num_threads(1)
    before = resident_bytes()
    _loaded(path, mebibytes, way)
    return peak_bytes() - before


def _is_candidate(load: Called) -> bool:
    if not isinstance(load.node, ast.Call) or load.args.open:
        return False
    if not isinstance(load.args.get("mmap"), Absent):
        return False
    path = load.args.get("f", 0)
    if isinstance(path, Absent) or is_stream(path, _path_node(load.node)):
        return False
    return isinstance(load.args.get("pickle_module", 2), Absent)


def _left_out(called: Called, key: str, position: int) -> bool:
    given = called.args.get(key, position)
    return isinstance(given, Absent) or must_be(given, None)


def _path_node(call: ast.Call) -> ast.expr | None:
    return next(
        (k.value for k in call.keywords if k.arg == "f"), call.args[0] if call.args else None
    )


def _text_of_path(called: Called, position: int) -> str | None:
    call = called.node
    if not isinstance(call, ast.Call):
        return None
    given = [k.value for k in call.keywords if k.arg == "f"] or call.args[position : position + 1]
    return ast.unparse(given[0]) if given else None


def _fix(load: Called, *, placed: bool) -> DraftFix | None:
    assert isinstance(load.node, ast.Call)
    if placed:
        name, value = "mmap", "True"
    elif isinstance(load.args.get("map_location", 1), Absent):
        name, value = "map_location", '"cpu", mmap=True'
    else:
        return None
    edit = call_with_keyword(load.source, load.node, name, value)
    if edit is None:
        return None
    return DraftFix(f"map the file: `{name}={value}`", (edit,), Applicability.UNSAFE)
