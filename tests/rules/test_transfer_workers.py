"""Rules about the workers of loaders: what they hold, what they run, that there are none."""

from __future__ import annotations

import pytest

from memlint.findings import Confidence, Severity
from tests.rules.linting import found, only

HELD, CUDA, NONE = "dataset-python-list", "cuda-in-dataset-worker", "dataloader-no-workers"


def notes(loader: str, keep: str = "json.load(open(path))", head: str = "") -> str:
    return f"""import glob
import json
import pandas as pd
import torch
from torch.utils.data import DataLoader, Dataset
{head}

class Notes(Dataset):
    def __init__(self, path):
        self.notes = {keep}

    def __len__(self):
        return len(self.notes)

    def __getitem__(self, index):
        return self.notes[index]


def feed(path, workers, options):
    return DataLoader(Notes(path), {loader})
"""


@pytest.mark.parametrize(
    ("loader", "confidence"),
    [
        ("num_workers=2", Confidence.HIGH),
        ("num_workers=workers", Confidence.MEDIUM),
        ("None, False, None, None, 4", Confidence.HIGH),
    ],
)
def test_confidence_follows_what_is_known_of_the_workers(
    loader: str, confidence: Confidence
) -> None:
    finding = only(notes(loader), HELD)
    assert (finding.severity, finding.confidence) == (Severity.INFO, confidence)
    assert finding.message.startswith("`self.notes` of `Notes` is what `json.load` gives")
    assert finding.related[0].location.line == 20


@pytest.mark.parametrize("loader", ["32", "num_workers=0", "**options"])
def test_without_workers_it_is_silent(loader: str) -> None:
    assert found(notes(loader), HELD) == []


@pytest.mark.parametrize(
    "keep",
    [
        "sorted(glob.glob(path))",
        "open(path).readlines()",
        "[line.rstrip() for line in open(path)]",
        "[(k, str(k)) for k in range(1_000_000)]",
        "pd.read_csv(path)",
        "json.load(open(path))['items'][1000:]",
        "list(json.load(open(path)).values())",
        "tuple(open(path))",
        "list(json.load(open(path)).items())",
        "[note for note in json.load(open(path)).values() if note['split'] == 'train']",
    ],
)
def test_objects_in_bulk(keep: str) -> None:
    assert len(found(notes("num_workers=2", keep), HELD)) == 1


@pytest.mark.parametrize(
    "keep",
    [
        "torch.tensor(json.load(open(path)))",
        "[(k, str(k)) for k in range(1_000)]",
        "[torch.load(name) for name in glob.glob(path)]",
        "[None] * 1_000_000",
        "[int(line) for line in open(path)]",
        "json.load(open(path))[0]",
        "path",
        "range(1_000_000)",
        "torch.load(path, mmap=True, map_location='cpu')",
    ],
)
def test_no_objects_in_bulk(keep: str) -> None:
    assert found(notes("num_workers=2", keep), HELD) == []


def test_a_data_frame_counts_by_its_columns_of_text() -> None:
    finding = only(notes("num_workers=2", "pd.read_csv(path)"), HELD)
    assert finding.confidence is Confidence.MEDIUM
    assert "before pandas 3" in finding.message


def test_spawned_workers_are_sent_a_copy() -> None:
    finding = only(notes("num_workers=2, multiprocessing_context='spawn'"), HELD)
    assert "pickled to each worker" in finding.message
    assert "3.14" in finding.help


def moving(loader: str, head: str = "") -> str:
    return f"""import torch
from torch.utils.data import DataLoader, Dataset
{head}

class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, index):
        return torch.as_tensor(self.rows[index]).cuda()


def feed(rows, workers):
    return DataLoader(Rows(rows), {loader})
"""


def test_cuda_in_forked_workers_is_a_warning() -> None:
    finding = only(moving("num_workers=2"), CUDA)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.HIGH)
    assert finding.message.startswith("`torch.as_tensor(self.rows[index]).cuda()` runs in the")


@pytest.mark.parametrize(
    ("loader", "head"),
    [
        ("num_workers=workers", ""),
        ("num_workers=2, multiprocessing_context='spawn'", ""),
        ("num_workers=2", "torch.multiprocessing.set_start_method('spawn')\n"),
    ],
)
def test_cuda_in_workers_that_may_be_none_or_are_spawned_is_info(loader: str, head: str) -> None:
    assert only(moving(loader, head), CUDA).severity is Severity.INFO


@pytest.mark.parametrize("loader", ["32", "num_workers=0"])
def test_cuda_without_workers_is_silent(loader: str) -> None:
    assert found(moving(loader), CUDA) == []


def test_a_loader_without_workers_shows_what_takes_time() -> None:
    text = """import numpy as np
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    def __getitem__(self, index):
        return np.load(f"{index}.npy")


def run(net):
    for wave in DataLoader(Waves(), 8, pin_memory=True):
        net(wave.cuda(non_blocking=True))
"""
    finding = only(text, NONE)
    assert finding.severity is Severity.INFO
    assert [place.location.line for place in finding.related] == [7]
