"""Where benches are run."""

from __future__ import annotations

import pytest

from memlint.bench.declare import Declared, Sizes
from memlint.bench.plan import Plan


def declared(*needs: str) -> Declared:
    return Declared("", "", "", needs, Sizes("elements", 1, (1,)), (), quick=True)


@pytest.mark.parametrize(
    ("needs", "asked", "device"),
    [
        (("numpy",), "cuda", "cpu"),
        (("torch",), "cuda", "cuda"),
        (("torch",), "cpu", "cpu"),
        (("cuda",), "cpu", "cuda"),
        (("cuda",), "cuda:1", "cuda:1"),
    ],
)
def test_a_bench_is_run_where_its_libraries_can(
    needs: tuple[str, ...], asked: str, device: str
) -> None:
    (size,) = Plan(device=asked).sizes(declared(*needs))
    assert size.device == device
