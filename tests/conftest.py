"""What some tests need beside the repository, or skip for."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def heed_interrupts() -> None:
    """Let a process that starts be interrupted, which shells prevent in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(scope="session")
def shared_cases() -> Path:
    """The folder of sample programs beside the checkout (or ``MEMLINT_SHARED``)."""
    place = Path(os.environ.get("MEMLINT_SHARED", ROOT.parent / "shared")) / "cases"
    if not (place / "score.py").is_file():
        pytest.skip("no folder shared/cases beside the checkout; set MEMLINT_SHARED to it")
    return place


@pytest.fixture(scope="session")
def wheels() -> Path:
    """A folder of unpacked wheels, as ``python -m tests.benchmarks.wheels`` makes it."""
    place = os.environ.get("MEMLINT_WHEELS")
    if place is None:
        pytest.skip("MEMLINT_WHEELS does not name a folder of unpacked wheels")
    return Path(place)
