"""Stride arithmetic, against torch where it is there."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlint.layout import (
    Form,
    Strided,
    can_be_viewed,
    classify,
    conflicts,
    copy_bytes,
    fastest_axis,
    from_bytes,
    is_channels_last,
    is_channels_last_3d,
    is_contiguous,
    is_fortran,
    is_non_overlapping_and_dense,
    line_bytes_used,
    stride_order,
)


def dense(*shape: int) -> Strided:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return Strided(shape, tuple(reversed(strides)), 4)


@pytest.mark.parametrize(
    ("array", "form"),
    [
        (dense(), Form.CONTIGUOUS),
        (dense(3, 4), Form.CONTIGUOUS),
        (Strided((1, 4), (1, 1), 4), Form.CONTIGUOUS),
        (Strided((4, 1), (1, 99), 4), Form.CONTIGUOUS),
        (Strided((0, 4), (7, 3), 4), Form.CONTIGUOUS),
        (Strided((2, 3, 4, 5), (60, 1, 15, 3), 4), Form.CHANNELS_LAST),
        (Strided((2, 3, 4, 5, 6), (360, 1, 90, 18, 3), 4), Form.CHANNELS_LAST),
        (Strided((4, 3), (1, 4), 4), Form.PERMUTED),
        (Strided((3, 2), (4, 2), 4), Form.GAPPED),
        (Strided((3,), (-1,), 4), Form.GAPPED),
        (Strided((3, 4), (0, 1), 4), Form.BROADCAST),
        (Strided((3, 2), (1, 1), 4), Form.OVERLAPPING),
    ],
)
def test_forms(array: Strided, form: Form) -> None:
    assert classify(array) is form


def test_bytes_used_of_a_line() -> None:
    matrix = Strided((1024, 1000), (1000, 1), 8)
    assert line_bytes_used(matrix, 1) == 64
    assert line_bytes_used(matrix, 0) == 8
    assert line_bytes_used(Strided((64,), (2,), 4), 0) == 32
    assert line_bytes_used(Strided((64,), (0,), 4), 0) == 4
    assert line_bytes_used(Strided((4,), (1,), 128), 0) == 64


def test_conflicts_come_from_powers_of_two() -> None:
    assert conflicts(Strided((64, 1024), (1024, 1), 4), 0)
    assert not conflicts(Strided((64, 1000), (1000, 1), 4), 0)
    assert not conflicts(Strided((64, 16), (16, 1), 4), 0)
    assert not conflicts(Strided((1, 1024), (1024, 1), 4), 0)


def test_cost_of_a_copy() -> None:
    assert copy_bytes(dense(100, 100)) == 2 * 40_000
    assert copy_bytes(Strided((100,), (100,), 4)) == 100 * 64 + 400
    assert copy_bytes(Strided((10, 16), (0, 1), 4)) == 64 + 640


def test_strides_in_bytes() -> None:
    assert from_bytes((3, 4), (32, 8), 8) == Strided((3, 4), (4, 1), 8)
    assert is_fortran(from_bytes((3, 4), (8, 24), 8))


SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 4]), max_size=5)


@settings(deadline=None)
@given(SHAPES, st.data())
def test_agrees_with_torch(shape: list[int], data: st.DataObject) -> None:
    torch = pytest.importorskip("torch", reason="compares with torch")
    real = torch.empty(shape)
    order = data.draw(st.permutations(range(len(shape))))
    real = real.permute(order)
    if real.dim() and data.draw(st.booleans()):
        axis = data.draw(st.integers(0, real.dim() - 1))
        real = real.movedim(axis, 0)[:: data.draw(st.integers(1, 2))]
    array = Strided(tuple(real.shape), tuple(real.stride()), real.itemsize)
    assert is_contiguous(array) == real.is_contiguous()
    if real.dim() == 4:
        assert is_channels_last(array) == real.is_contiguous(memory_format=torch.channels_last)
    if real.dim() == 5:
        form = torch.channels_last_3d
        assert is_channels_last_3d(array) == real.is_contiguous(memory_format=form)
    if real.numel():
        expected = torch.ops.aten.is_non_overlapping_and_dense(real)
        assert is_non_overlapping_and_dense(array) == expected
    assert sorted(stride_order(array)) == list(range(real.dim()))


def test_fastest_axis() -> None:
    assert fastest_axis(Strided((2, 3, 4), (1, 2, 6), 4)) == 0
    assert fastest_axis(Strided((3, 4), (0, 1), 4)) == 1
    assert fastest_axis(Strided((1, 1), (1, 1), 4)) is None


def test_what_can_be_viewed_is_what_torch_can_view() -> None:
    torch = pytest.importorskip("torch")
    draw = random.Random(5)
    seen = set()
    for _ in range(2000):
        shape = tuple(draw.choice((1, 2, 3, 4)) for _ in range(draw.randint(1, 4)))
        made = torch.zeros(tuple(draw.choice((1, size)) for size in shape)).expand(shape)
        if draw.random() < 0.5:
            made = made.transpose(0, -1)
        axes = list(made.shape)
        while len(axes) > 1 and draw.random() < 0.7:
            at = draw.randrange(len(axes) - 1)
            axes[at : at + 2] = [axes[at] * axes[at + 1]]
        try:
            made.view(axes)
            possible = True
        except RuntimeError:
            possible = False
        array = Strided(tuple(made.shape), made.stride(), 4)
        assert can_be_viewed(array, tuple(axes)) is possible, (array, axes)
        seen.add(possible)
    assert seen == {True, False}
