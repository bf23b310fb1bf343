"""Symbolic layouts: by hand where the answer is instructive, and at random against torch."""

from __future__ import annotations

import ast
import re
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlint.analysis.axes import (
    NOT_KNOWN,
    OPAQUE,
    Cut,
    Item,
    Layout,
    channels_last,
    channels_last_format,
    contiguous,
    dense,
    dense_any_rank,
    diagonal,
    elementwise,
    expand,
    fastest_axis,
    flatten,
    fortran,
    in_order,
    index,
    movedim,
    narrow,
    permute,
    rearrange,
    reshape,
    reverse,
    select,
    slice_axis,
    split,
    squeeze,
    stride_order,
    strides,
    t,
    transpose,
    unflatten,
    unfold,
    unsqueeze,
)
from memlint.analysis.axes.views import give_rank
from memlint.analysis.values import Site, Symbol, Tensor
from tests.analysis.abstract import Evaluator, hidden
from tests.analysis.claims import Tally, contradictions, generic_sizes

B, T, C = (Symbol("name", name, Site(ast.Pass(), name)) for name in "BTC")
UNKNOWN = dense((None, None, None))


def test_dense_layouts() -> None:
    assert contiguous(dense((B, T, C))) is True
    assert contiguous(fortran((B, T))) is False
    assert contiguous(fortran((1, T))) is True
    assert contiguous(OPAQUE) is None
    assert strides(fortran((3, 4, 5))) == (1, 3, 12)
    assert strides(channels_last((2, 3, 4, 5))) == (60, 1, 15, 3)
    assert channels_last_format(channels_last((None,) * 4)) is True
    assert channels_last_format(dense((None,) * 4)) is False
    assert channels_last_format(dense((B, 1, 4, 5))) is True
    assert in_order((2, 3), (1, 0)) == fortran((2, 3))


def test_equal_swaps_cancel_without_a_rank() -> None:
    once = transpose(dense_any_rank(), 1, 2)
    assert contiguous(once) is False
    assert contiguous(transpose(once, 2, 1)) is True
    assert contiguous(transpose(once, -1, -2)) is None
    assert contiguous(reverse(reverse(dense_any_rank()))) is True
    assert contiguous(transpose(transpose(dense_any_rank(), 0, 1), 1, 2)) is False


def test_axes_of_size_one_move_for_free() -> None:
    assert contiguous(transpose(dense((B, 1, C)), 0, 1)) is True
    assert contiguous(transpose(unsqueeze(dense((B, T)), 1), 1, 2)) is True
    assert contiguous(transpose(unsqueeze(dense_any_rank(), 1), 1, 2)) is None
    assert contiguous(t(dense((1, C)))) is True


def test_parts_of_axes() -> None:
    assert contiguous(narrow(UNKNOWN, 0, 5)) is True
    assert contiguous(narrow(UNKNOWN, 1, 5)) is False
    assert contiguous(narrow(dense((1, 8, 4)), 1, 5)) is True
    assert contiguous(narrow(dense((B, T)), 1, T)) is True
    assert contiguous(slice_axis(UNKNOWN, 1, None, NOT_KNOWN)) is False
    assert contiguous(slice_axis(dense((B, T)), 1, 0, T)) is True
    assert contiguous(slice_axis(UNKNOWN, 0, None, None, 2)) is False
    assert contiguous(slice_axis(UNKNOWN, 2, None, None, NOT_KNOWN)) is None
    assert contiguous(select(UNKNOWN, 0)) is True
    assert contiguous(select(UNKNOWN, -1)) is False
    assert contiguous(select(dense_any_rank(), 0)) is True
    assert contiguous(select(dense_any_rank(), 1)) is False
    assert contiguous(select(select(dense_any_rank(), 1), 0)) is None
    assert [contiguous(part) for part in split(UNKNOWN, (1, 2), 2)] == [False, False]


def test_subscripts() -> None:
    rest, at, new, everything = Item.REST, Item.AT, Item.NEW, Cut()
    assert contiguous(index(dense_any_rank(), (everything, at))) is False
    assert contiguous(index(dense_any_rank(), (rest, at))) is False
    assert contiguous(index(dense_any_rank(), (at, at))) is True
    assert contiguous(index(dense_any_rank(), (everything, new))) is True
    assert contiguous(index(UNKNOWN, (rest, Cut(step=2)))) is False
    assert contiguous(index(UNKNOWN, (at, rest))) is True
    assert index(UNKNOWN, (Item.OTHER,)) == OPAQUE
    assert index(dense((2,)), (at, at)) == OPAQUE
    assert index(UNKNOWN, (Cut(B, C, None, 8), rest)).sizes == (8, None, None)


def test_broadcast_and_diagonal_axes() -> None:
    assert contiguous(expand(dense((B, 1, C)), (-1, T, -1))) is False
    assert contiguous(expand(dense((B, T, C)), (-1, T, -1))) is True
    assert contiguous(expand(dense((B, T)), (3, B, T))) is False
    assert contiguous(expand(dense((B, T)), (C, T))) is None
    assert contiguous(diagonal(UNKNOWN, 0, 1)) is False
    assert contiguous(diagonal(dense((1, C)), 0, 1)) is True
    assert contiguous(unfold(dense((None,)), 0, 4, 2)) is False
    assert contiguous(unfold(dense((8,)), 0, 2, 2)) is True


def test_reshaping() -> None:
    heads, copies = reshape(dense((B, T, 64)), (B, T, 8, 8))
    assert copies is False
    moved = transpose(heads, 1, 2)
    assert contiguous(moved) is False
    assert reshape(transpose(moved, 1, 2), (B, T, -1)) == (dense((B, T, 64)), False)
    assert reshape(moved, (B, 8, T, 4, 2))[1] is False
    assert flatten(moved, 1, 2)[1] is True
    assert flatten(transpose(UNKNOWN, 1, 2))[1] is True
    assert reshape(transpose(dense((B, T, C)), 1, 2), (B, -1))[1] is True
    assert reshape(transpose(UNKNOWN, 1, 2), (None, None, None, None))[1] is None
    assert reshape(dense((6, 4)), (-1, 8)) == (dense((3, 8)), False)
    assert unflatten(transpose(dense((B, 8)), 0, 1), 0, (2, -1))[1] is False
    assert flatten(narrow(UNKNOWN, 2, 3), 0, 1)[1] is False


def test_results_element_by_element() -> None:
    turned = transpose(dense((B, T)), 0, 1)
    plain = dense((T, B))
    assert contiguous(elementwise([turned, plain])) is False
    assert contiguous(elementwise([plain, turned])) is True
    assert contiguous(elementwise([turned, plain], c_order_wins=True)) is True
    assert contiguous(elementwise([dense((T, 1)), turned])) is False
    assert contiguous(elementwise([turned, dense(())])) is False
    assert contiguous(elementwise([narrow(plain, 1, 3)])) is True
    assert contiguous(elementwise([dense_any_rank(), turned])) is None
    assert contiguous(elementwise([transpose(dense_any_rank(), 1, 2)])) is False


def test_orders() -> None:
    nchw = permute(dense((B, None, None, C)), (0, 3, 1, 2))
    assert channels_last_format(nchw) is True
    assert stride_order(nchw) == (0, 2, 3, 1)
    assert fastest_axis(nchw) == 1
    assert fastest_axis(dense_any_rank()) == -1
    assert fastest_axis(transpose(dense_any_rank(), -1, -2)) == -2
    assert fastest_axis(reverse(dense_any_rank())) is None
    assert fastest_axis(narrow(dense((None, 2)), 1, 1)) == 0
    assert movedim(UNKNOWN, (0,), (-1,)) == permute(UNKNOWN, (1, 2, 0))
    assert squeeze(dense((B, 1, C)), (1,)) == dense((B, C))


def test_axes_moved_in_arrays_of_any_rank() -> None:
    for source, target in ((2, 0), (-1, 0), (0, -1), (1, -1), (-3, -1), (0, 1)):
        moved = movedim(dense_any_rank(), (source,), (target,))
        assert contiguous(moved) is False
        assert contiguous(movedim(moved, (target,), (source,))) is True
        assert give_rank(moved, 4) == movedim(dense((None,) * 4), (source,), (target,))
    assert contiguous(movedim(dense_any_rank(), (1,), (-2,))) is None
    assert fastest_axis(movedim(dense_any_rank(), (-1,), (0,))) is None
    assert fastest_axis(movedim(dense_any_rank(), (1,), (-1,))) == -2


def test_what_is_flipped_twice_may_be_dense() -> None:
    once = slice_axis(dense_any_rank(), 0, None, None, -1)
    assert contiguous(once) is False
    assert contiguous(slice_axis(once, 0, None, None, -1)) is None


PATTERNS = {
    "b t (h d) -> b h t d": ((2, 3, 8), {"h": 2}, (0, 2, 1, 3), (2, 3, 2, 4), None),
    "b h t d -> b t (h d)": ((2, 3, 4, 5), {}, (0, 2, 1, 3), None, (2, 4, 15)),
    "b c h w -> b h w c": ((2, 3, 4, 5), {}, (0, 2, 3, 1), None, None),
    "b (h p) w -> b h (p w)": ((2, 6, 4), {"p": 3}, (0, 1, 2, 3), (2, 2, 3, 4), (2, 2, 12)),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_are_reshapes_and_permutations(pattern: str) -> None:
    torch = pytest.importorskip("torch", reason="compares with torch")
    shape, lengths, order, before, after = PATTERNS[pattern]
    source = torch.arange(torch.Size(shape).numel()).reshape(shape)
    real = source.reshape(before or shape).permute(order)
    real = real.reshape(after) if after else real
    layout, copies = rearrange(dense(shape), pattern, lengths)
    assert strides(layout) == real.stride()
    assert copies == (real.data_ptr() != source.data_ptr())


def test_patterns_that_cannot_be_read_say_nothing() -> None:
    for pattern in ("b ... -> ... b", "b t", "b (t -> b t", "a b -> a c", "a b c d -> a b c d"):
        assert rearrange(UNKNOWN, pattern, {}) == (OPAQUE, None)


ODD = st.one_of(st.none(), st.integers(-9, 9), st.just(B))
LAYOUTS = st.one_of(
    st.just(OPAQUE),
    st.just(dense_any_rank()),
    st.just(transpose(dense_any_rank(), 1, 2)),
    st.just(unsqueeze(dense_any_rank(), 0)),
    st.lists(ODD, max_size=4).map(dense),
    st.lists(ODD, max_size=4).map(fortran),
)
AXIS = st.one_of(st.none(), st.integers(-6, 6))


@given(LAYOUTS, AXIS, AXIS, st.lists(ODD, max_size=5), ODD)
def test_no_input_raises(
    layout: Layout, one: int | None, two: int | None, sizes: list[Any], size: Any
) -> None:
    made = [
        transpose(layout, one, two),
        permute(layout, [one, two]),
        t(layout),
        reverse(layout),
        select(layout, one),
        narrow(layout, one, size),
        slice_axis(layout, one, size, two, size),
        squeeze(layout, [one]),
        unsqueeze(layout, one),
        expand(layout, sizes),
        diagonal(layout, one, two),
        unfold(layout, one, size, two),
        reshape(layout, sizes)[0],
        flatten(layout, one or 0, two or 0)[0],
        unflatten(layout, one or 0, sizes)[0],
        movedim(layout, [one or 0], [two or 0]),
        elementwise([layout, dense(sizes)]),
    ]
    for result in made:
        contiguous(result)
        channels_last_format(result)
        strides(result)
        stride_order(result)
        fastest_axis(result)


STEPS = (
    "x.transpose({axis}, {other})",
    "x.movedim({axis}, {other})",
    "x.mT",
    "x.unsqueeze({axis})",
    "x.squeeze()",
    "x.squeeze({axis})",
    "x.narrow({axis}, 0, {small})",
    "x.select({axis}, 0)",
    "x[{small} - 1:]",
    "x[:, ::{small}]",
    "x[..., :{small}]",
    "x[:, None]",
    "x[..., 0]",
    "x.flatten()",
    "x.flatten({axis}, {other})",
    "x.reshape(2, -1)",
    "x.reshape({small}, -1, 2)",
    "x.reshape(*x.shape)",
    "x.unflatten({axis}, (-1, 2))",
    "x.unflatten({axis}, (1, -1))",
    "x.expand(3, *x.shape)",
    "x.expand_as(x)",
    "x.diagonal(0, {axis}, {other})",
    "x.unfold({axis}, {small}, 1)",
    "x.unfold({axis}, 2, 2)",
    "x.chunk({small}, {axis})[0]",
    "x.contiguous()",
    "x.clone()",
    "x + x",
    "x + x.contiguous()",
    "torch.empty_like(x)",
    "x.sum({axis}, keepdim=True)",
    "x.mean({axis})",
    "x.half().float()",
    "torch.stack((x, x), {axis})",
    "x.ravel()",
)


CUTS = ("narrow", "chunk", "expand", "[")
SIZES = (1, 2, 2, 3, 4, 4, 6)


def _start(rng: Random) -> tuple[tuple[int, ...], str, Layout]:
    """A shape and what is known of it: all, the rank, or that it is dense."""
    shape = tuple(rng.choice(SIZES) for _ in range(rng.randint(2, 4)))
    known = rng.choice(("sizes", "rank", "dense"))
    if known == "dense" and 1 not in shape:
        return shape, known, dense_any_rank()
    if known == "rank":
        return shape, known, hidden(dense(shape))
    return shape, "sizes", dense(shape)


def _step(rng: Random, rank: int) -> str:
    axes = range(-rank, rank) if rank else (0,)
    text = rng.choice(STEPS).format(
        axis=rng.choice(axes), other=rng.choice(axes), small=rng.randint(1, 3)
    )
    return re.sub(r"(\d) - 1", lambda found: str(int(found[1]) - 1), text)


def _unlike_the_generic(text: str, before: Any, after: Any) -> bool:
    """Whether what is not known turned out so that the step did nothing, or left no two axes."""
    idle = after.shape == before.shape and any(cut in text for cut in CUTS)
    still = "movedim" in text and after.stride() == before.stride()
    return idle or still or after.dim() < 2


@settings(deadline=None, max_examples=300)
@given(st.randoms(use_true_random=False))
def test_random_chains_agree_with_torch(rng: Random) -> None:
    torch = pytest.importorskip("torch", reason="compares with torch")
    shape, known, layout = _start(rng)
    real = torch.zeros(shape)
    site = Site(ast.Pass(), "p")
    claim: Any = Tensor("torch", layout, "float32", frozenset({"cpu"}), site=site)
    walked = [f"{shape} {known}:"]
    for _ in range(8):
        text = _step(rng, real.dim())
        try:
            after = eval(text, {"torch": torch, "x": real})
        except (RuntimeError, IndexError, ValueError, TypeError):
            continue
        sizes = claim.sizes
        exact = sizes is not None and all(isinstance(size, int) for size in sizes)
        if not after.numel() or (not exact and _unlike_the_generic(text, real, after)):
            continue
        claim, real = Evaluator({"x": claim}).text(text), after
        walked.append(text)
        assert isinstance(claim, Tensor), walked
        wrong = contradictions(claim, real, {}, Tally(), " ".join(walked))
        assert not wrong, wrong
        if not real.dim() or not generic_sizes(claim, tuple(real.shape)):
            return
