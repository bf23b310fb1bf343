"""A report of every kind of finding, and the sources that it speaks of."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from memlint.findings import (
    Applicability,
    Confidence,
    FileError,
    Finding,
    Fix,
    Location,
    Place,
    Report,
    Severity,
    TextEdit,
)
from memlint.source.model import Cell, Source

TRAIN = """\
import torch

def main(device):
    loader = DataLoader(dataset, batch_size=64)
    other = DataLoader(
        dataset,
        batch_size=64,
    )
    for images in loader:
        images = images.to(device)
\tkernel[grid](x, "漢字", y)
"""
NOTEBOOK = "import torch\nx = 1\nlaunch(x)\n"


@dataclass
class Samples:
    train: Source
    notebook: Source

    def read(self, path: str) -> Source | None:
        return {"src/train.py": self.train, "book.ipynb": self.notebook}.get(path)

    def spot(self, line: int, first: str, last: str, end_line: int | None = None) -> Location:
        lines = self.train.lines
        end_line = end_line or line
        column = lines[line - 1].index(first)
        start = column if end_line == line else 0
        end = lines[end_line - 1].index(last, start) + len(last)
        return Location(line, column + 1, end_line, end + 1)

    def report(self) -> Report:
        copy = Place(
            "batches go to CUDA here", "src/train.py", None, self.spot(10, "images.to", "device)")
        )
        pin = Fix(
            Applicability.SAFE,
            "add pin_memory=True",
            (TextEdit("src/train.py", None, Location(4, 46, 4, 46), ", pin_memory=True"),),
        )
        loader = Finding(
            "MEM201",
            "missing-pin-memory",
            Severity.WARNING,
            Confidence.HIGH,
            "src/train.py",
            None,
            self.spot(4, "DataLoader", ")"),
            "100% of batches go through: pageable, memory",
            "pass pin_memory=True",
            (copy,),
            pin,
            "f1",
            {"verdict": "confirmed"},
            "https://example.org/rules/missing-pin-memory/",
        )
        kernel = Finding(
            "MEM303",
            "noncontiguous-into-kernel",
            Severity.ERROR,
            Confidence.MEDIUM,
            "book.ipynb",
            3,
            Location(1, 1, 1, 10),
            "x is not contiguous",
            "call .contiguous()",
            (Place("born here", "book.ipynb", 2, Location(1, 1, 1, 6)),),
            Fix(
                Applicability.UNSAFE,
                "add .contiguous()",
                (TextEdit("book.ipynb", 3, Location(1, 9, 1, 9), ".contiguous()"),),
            ),
            "f2",
        )
        order = Finding(
            "MEM101",
            "column-order-loop",
            Severity.INFO,
            Confidence.HIGH,
            "src/train.py",
            None,
            self.spot(11, "y", "y"),
            "y",
            "",
        )
        errors = (
            FileError("bad, name.py", "invalid syntax", None, Location(2, 5, 2, 6)),
            FileError("gone.py", "cannot be read"),
        )
        return Report((kernel, loader, order), errors, files=4, suppressed=2)


@pytest.fixture
def samples() -> Samples:
    cells = (Cell(1, 1, 1), Cell(2, 2, 1), Cell(3, 3, 1))
    return Samples(Source("src/train.py", TRAIN), Source("book.ipynb", NOTEBOOK, cells))
