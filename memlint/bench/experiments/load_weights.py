"""Ways to load weights."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

from memlint.bench.child import in_child, peak_bytes, resident_bytes
from memlint.bench.experiment import Experiment, Found
from memlint.bench.judging import standing
from memlint.bench.lab import Forms, Lab
from memlint.bench.pair import PEAK_GRAIN, Weighed
from memlint.bench.plan import SITTINGS
from memlint.bench.quantities import amount, ratio
from memlint.bench.results import Answer, Row, Unit, Verdict

_MIB, _FULL_MIB = 128, 512
_LAYERS = 8
_TIMES = 3
_PLAIN, _MAPPED, _ASSIGNED = "read", "mapped", "mapped and assigned"


class LoadWeights(Experiment):
    """Loading weights: read, mapped, and mapped into a model that has none of its own yet.

    Each way runs in a process of its own, which makes a model, loads a file with its weights,
    which the system has in its cache, and reads each of them once: `torch.load(path)` and
    `load_state_dict`; the same with `mmap=True`; and with a model on the meta device and
    `assign=True`. What counts is the peak of resident memory, less what there was before; pages
    of the file count, though the system could take them back."""

    name = "load-weights"
    needs = ("torch", "linux")
    quick = False

    def run(self, lab: Lab) -> Found:
        """Weigh, then time."""
        mib = lab.plan.size or (_FULL_MIB if lab.plan.full else _MIB)
        rounds = SITTINGS if lab.plan.full else 1
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "weights.pt"))
            _write(path, mib)
            peaks: dict[str, list[float]] = {}
            seconds = {}
            for way in _WAYS:
                lab.require_time()
                peaks[way] = [in_child(peak, path, way, mib) for _ in range(rounds)]
                seconds[way] = min(duration(path, way, mib) for _ in range(_TIMES))
        rows = {
            way: lab.compare(
                Weighed(
                    cycle(peaks[_PLAIN]).__next__,
                    cycle(peaks[way]).__next__,
                    "peak of resident memory",
                    f"{mib} MiB of weights",
                    PEAK_GRAIN,
                ),
                Forms(self.name, _PLAIN, way, way.replace(" ", "-"), mib),
            )
            for way in (_MAPPED, _ASSIGNED)
        }
        times = ", ".join(f"{way} {amount(one, Unit.SECONDS)}" for way, one in seconds.items())
        return Found(
            rows=tuple(rows.values()),
            answers=(mapping_answer(rows[_MAPPED], rows[_ASSIGNED]),),
            notes=(f"until all weights were read once it took: {times}",),
        )


def _model(mib: int) -> Any:
    from torch import nn

    width = 512
    rows = mib * (1 << 20) // (4 * width * _LAYERS)
    return nn.ModuleList(nn.Linear(width, rows, bias=False) for _ in range(_LAYERS))


def _write(path: str, mib: int) -> None:
    import torch

    torch.save(_model(mib).state_dict(), path)


def _read(path: str, mib: int) -> Any:
    import torch

    model = _model(mib)
    weights = torch.load(path, weights_only=True)  # memlint: ignore[load-without-mmap]
    model.load_state_dict(weights)
    return model


def _map(path: str, mib: int) -> Any:
    import torch

    model = _model(mib)
    model.load_state_dict(torch.load(path, mmap=True, weights_only=True))
    return model


def _assign(path: str, mib: int) -> Any:
    import torch

    with torch.device("meta"):
        model = _model(mib)
    model.load_state_dict(torch.load(path, mmap=True, weights_only=True), assign=True)
    return model


_WAYS: Mapping[str, Callable[[str, int], Any]] = {
    _PLAIN: _read, _MAPPED: _map, _ASSIGNED: _assign,
}  # fmt: skip


def peak(path: str, way: str, mib: int) -> float:
    """Bytes by which loading so many MiB raises the peak of this process."""
    import torch

    # What the first operation takes for itself is not counted.
    torch.ones(8, 8).sum()
    before = resident_bytes()
    _use(path, way, mib)
    return float(peak_bytes() - before)


def duration(path: str, way: str, mib: int) -> float:
    """Seconds until all of them were read once."""
    start = time.perf_counter()
    _use(path, way, mib)
    return time.perf_counter() - start


def _use(path: str, way: str, mib: int) -> None:
    for weights in _WAYS[way](path, mib).parameters():
        weights.detach().sum()


def mapping_answer(mapped: Row, assigned: Row) -> Answer:
    """``mapped`` and ``assigned`` are the peak of reading the file over those of mapping it."""
    less = [row.verdict is Verdict.MORE for row in (mapped, assigned)]
    return Answer(
        "mmap-weights",
        standing(less),
        f"{mapped.what.partition(':')[0]}: peak {amount(mapped.as_is, Unit.BYTES)} read, "
        f"{amount(mapped.alternative, Unit.BYTES)} mapped, "
        f"{amount(assigned.alternative, Unit.BYTES)} mapped and assigned "
        f"({ratio(assigned.ratio)} times less)",
    )
