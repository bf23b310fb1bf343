"""Weights, workers and pages: what numbers make of the claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlint.bench.experiments import load_weights, tensor_pages, worker_growth
from memlint.bench.experiments.load_weights import mapping_answer
from memlint.bench.experiments.tensor_pages import huge_answer
from memlint.bench.experiments.worker_growth import copies_answer, records
from memlint.bench.results import Standing, Unit
from tests.bench.samples import row

MIB = 1 << 20


def mapped(ratio: float) -> Standing:
    weighed = (row(one, unit=Unit.BYTES, seconds=256 * MIB) for one in (ratio, 2.0))
    return mapping_answer(*weighed).standing


def test_mapping_saves_or_not() -> None:
    assert mapped(2.0) is Standing.HOLDS
    assert mapped(1.0) is Standing.PARTLY
    none = (row(1.0, unit=Unit.BYTES), row(0.9, unit=Unit.BYTES))
    assert mapping_answer(*none).standing is Standing.DOES_NOT_HOLD


def test_all_ways_load_the_same_weights(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = str(tmp_path / "weights.pt")
    load_weights._write(path, 1)
    found = [list(way(path, 1).parameters()) for way in load_weights._WAYS.values()]
    assert sum(weights.nbytes for weights in found[0]) == MIB
    for weights in zip(*found, strict=True):
        assert all(torch.equal(weights[0], other) for other in weights)
        assert all(other.device.type == "cpu" for other in weights)


def grown(*mib: float) -> dict[tuple[str, str], float]:
    keys = [(method, kind) for method in ("fork", "forkserver") for kind in ("list", "array")]
    return {key: value * MIB for key, value in zip(keys, mib, strict=True)}


@pytest.mark.parametrize(
    ("mib", "standing"),
    [
        ((16, 0, 17, 0), Standing.HOLDS),
        ((16, 0, 17, 5), Standing.PARTLY),
        ((0, 8, 0, 8), Standing.DOES_NOT_HOLD),
    ],
)
def test_what_workers_copy(mib: tuple[float, ...], standing: Standing) -> None:
    assert copies_answer(grown(*mib), 5 * MIB).standing is standing


def test_records_are_the_same_as_a_list_and_as_an_array() -> None:
    listed, array = records("list", 100), records("array", 100)
    assert [text.decode() for text in array] == listed
    assert len(set(listed)) == 100
    assert array.itemsize <= worker_growth._RECORD


def standing(hugetlb: bool = False, **huge: float) -> Standing:
    return huge_answer(huge, hugetlb, 64 * MIB).standing


def test_pages_of_tensors() -> None:
    assert standing(tensor=0.0, array=62.0 * MIB) is Standing.DOES_NOT_HOLD
    assert standing(tensor=62.0 * MIB, array=62.0 * MIB) is Standing.DOES_NOT_HOLD
    assert standing(tensor=0.0, array=0.0) is Standing.UNMEASURED
    assert standing(True, tensor=64.0 * MIB, array=0.0) is Standing.HOLDS
    assert tensor_pages.TensorPages.title()
