"""Loops for a product of matrices against a library's product."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from memlint.bench.experiment import Experiment, Found
from memlint.bench.judging import TOO_NOISY, decided, standing, told
from memlint.bench.lab import Forms, Lab
from memlint.bench.pair import Pair
from memlint.bench.results import Answer, Curve, Plot, Point, Row, Standing, Verdict

_TILE = 64
_COMPARED, _COMPARED_FULL = 128, 256
_MOST_NAIVE = 512
_QUICK: tuple[int, ...] = (64, 128, 256)
_FULL: tuple[int, ...] = (64, 96, 128, 192, 256, 384, 512, 768, 1024)
_SECONDS = 0.05
_NAIVE, _REORDERED, _TILED, _BLAS = (
    "loops i, j, k", "loops i, k, j", f"loops over tiles of {_TILE}", "A @ B",
)  # fmt: skip
_SLICES = f"slices of {_TILE} x {_TILE}, each @"
_SLOW = 3.0


class MatrixProduct(Experiment):
    """Product of two square matrices: naive loops, reordered, tiled by hand, and BLAS.

    Compiled loops over float64 matrices: i, j, k, in which the innermost walks down a column of B;
    i, k, j, in which it walks along rows; the same in tiles of 64 x 64; and `A @ B`. Also tiles of
    which each is a `@` of NumPy slices, against one `@` for all."""

    name = "matrix-product"
    needs = ("numpy", "numba")

    def run(self, lab: Lab) -> Found:
        """Compare at one size, and time each at all."""
        size = lab.plan.size or (_COMPARED_FULL if lab.plan.full else _COMPARED)
        dtype = lab.plan.dtype or "float64"
        naive, reordered, tiled = _compiled()
        rows = tuple(
            lab.compare(_pair(as_is, other, size, dtype), Forms(self.name, *names, size, dtype))
            for as_is, other, names in (
                (naive, tiled, (_NAIVE, _TILED, "naive-tiled")),
                (tiled, reordered, (_TILED, _REORDERED, "tiled-reordered")),
                (naive, _product, (_NAIVE, _BLAS, "naive")),
                (reordered, _product, (_REORDERED, _BLAS, "reordered")),
                (tiled, _product, (_TILED, _BLAS, "tiled")),
                (_tiles_of_slices, _product, (_SLICES, _BLAS, "slices")),
            )
        )
        sizes = _FULL if lab.plan.full else _QUICK
        if lab.plan.size is not None:
            sizes = (size,)
        curves = (
            Curve(_NAIVE, tuple(_points(lab, naive, _up_to(_MOST_NAIVE, sizes), dtype))),
            Curve(_REORDERED, tuple(_points(lab, reordered, sizes, dtype))),
            Curve(_TILED, tuple(_points(lab, tiled, sizes, dtype))),
            Curve(_BLAS, tuple(_points(lab, _product, sizes, dtype))),
        )
        return Found(
            rows=rows,
            plots=(_plot(curves),),
            answers=(tiles_answer(rows[0], rows[1]), blas_answer(*rows[2:5])),
        )


def _up_to(most: int, sizes: Sequence[int]) -> list[int]:
    return [size for size in sizes if size <= most]


def _compiled() -> tuple[Callable[..., Any], ...]:
    from numba import njit

    @njit
    def naive(a: Any, b: Any, c: Any) -> None:
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                total = c.dtype.type(0)
                for k in range(a.shape[1]):
                    total += a[i, k] * b[k, j]  # memlint: ignore[naive-matmul-loop]
                c[i, j] = total

    @njit
    def reordered(a: Any, b: Any, c: Any) -> None:
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                c[i, j] = 0
            for k in range(a.shape[1]):
                for j in range(b.shape[1]):
                    c[i, j] += a[i, k] * b[k, j]  # memlint: ignore[naive-matmul-loop]

    @njit
    def tiled(a: Any, b: Any, c: Any) -> None:
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                c[i, j] = 0
        for i0 in range(0, a.shape[0], _TILE):
            for j0 in range(0, b.shape[1], _TILE):
                for k0 in range(0, a.shape[1], _TILE):
                    for i in range(i0, min(i0 + _TILE, a.shape[0])):
                        for k in range(k0, min(k0 + _TILE, a.shape[1])):
                            for j in range(j0, min(j0 + _TILE, b.shape[1])):
                                c[i, j] += a[i, k] * b[k, j]  # memlint: ignore[naive-matmul-loop]

    return naive, reordered, tiled


def _product(a: Any, b: Any, c: Any) -> None:
    c[...] = a @ b


def _tiles_of_slices(a: Any, b: Any, c: Any) -> None:
    c.fill(0)
    for i in range(0, a.shape[0], _TILE):
        for j in range(0, b.shape[1], _TILE):
            for k in range(0, a.shape[1], _TILE):
                rows, columns = slice(i, i + _TILE), slice(j, j + _TILE)
                c[rows, columns] += a[rows, k : k + _TILE] @ b[k : k + _TILE, columns]


def _operands(size: int, dtype: str) -> Callable[[], tuple[Any, ...]]:
    import numpy as np

    def made() -> tuple[Any, ...]:
        draw = np.random.default_rng(0)
        a, b = (draw.random((size, size)).astype(dtype) for _ in range(2))
        return a, b, np.zeros_like(a)

    return made


def _pair(as_is: Callable[..., Any], other: Callable[..., Any], size: int, dtype: str) -> Pair:
    operands = _operands(size, dtype)
    return Pair(as_is, other, operands, f"{dtype}, {size} x {size}", rotate=False)


def _points(
    lab: Lab, form: Callable[..., Any], sizes: Sequence[int], dtype: str
) -> Iterator[Point]:
    """Seconds of one product, for each multiplication in it."""
    for size in sizes:
        run = partial(form, *_operands(size, dtype)())
        run()
        yield lab.point(size, run, seconds=_SECONDS, parts=size**3)


def tiles_answer(naive: Row, reordered: Row) -> Answer:
    """Whether tiling by hand helps: ``naive`` are the naive loops against tiles, ``reordered``
    tiles against the loops in a better order."""
    if len(decided([naive, reordered])) < 2:
        return Answer("tiled-product", Standing.UNMEASURED, TOO_NOISY)
    return Answer(
        "tiled-product",
        standing([naive.verdict is Verdict.SLOWER, reordered.verdict is Verdict.FASTER]),
        f"beside tiles by hand, the naive loops are {told(naive)}; beside loops in another order "
        f"without tiles, tiles are {told(reordered)} ({naive.what})",
    )


def blas_answer(naive: Row, reordered: Row, tiled: Row) -> Answer:
    """Whether tiles are what makes a library fast.

    ``naive`` are the naive loops, ``reordered`` those in a better order, and ``tiled`` tiles by
    hand, each against the library."""
    if len(decided([naive, reordered, tiled])) < 3:
        return Answer("blas-tiles", Standing.UNMEASURED, TOO_NOISY)
    slow = naive.verdict is Verdict.SLOWER and naive.ratio > _SLOW
    return Answer(
        "blas-tiles",
        standing([slow, slow and tiled.ratio < _SLOW and tiled.ratio < reordered.ratio]),
        f"beside the library, the naive loops are {told(naive)}, those in another order "
        f"{told(reordered)}, tiles by hand {told(tiled)} ({naive.what})",
    )


def _plot(curves: tuple[Curve, ...]) -> Plot:
    return Plot(
        "Product of square matrices",
        "rows and columns", "",
        "time per multiplication", "s",
        curves,
    )  # fmt: skip
