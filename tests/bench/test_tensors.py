"""Operands that are made anew hold the same numbers, in memory of their own."""

from __future__ import annotations

import pytest

from memlint.bench.pair import Size
from memlint.bench.tensors import normal, on_host

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["", "float32", "bfloat16", "float64"])
def test_what_is_made_again_is_the_same_and_new(dtype: str) -> None:
    size = Size(1, dtype, "cpu", threads=1)
    first = normal(size, 3, 5)
    assert first.dtype is getattr(torch, dtype or "float32")
    before = first.clone()
    first.zero_()
    assert torch.equal(normal(size, 3, 5), before)


def test_seeds_tell_numbers_apart() -> None:
    size = Size(1, "float32", "cpu", threads=1)
    assert not torch.equal(normal(size, 4), normal(size, 4, seed=1))
    assert not torch.equal(on_host(4), on_host(4, seed=1))


def test_they_lie_where_the_bench_is_run() -> None:
    assert normal(Size(1, "float32", "meta", threads=1), 2).device.type == "meta"
