"""Rows against columns, over the sizes of a square array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from memlint.bench.experiment import Experiment, Found
from memlint.bench.judging import is_slower, over, standing, told, within
from memlint.bench.lab import Forms, Lab
from memlint.bench.pair import Pair
from memlint.bench.plan import SITTINGS
from memlint.bench.quantities import ratio
from memlint.bench.results import Answer, Curve, Plot, Point, Row, Standing

_QUICK = (1000, 1024)
_FULL = (
    64, 128, 250, 256, 500, 512, 640, 768, 1000, 1024, 1280, 1536, 2000, 2048, 3000,
    3072, 4000, 4096,
)  # fmt: skip
_SLICES = 4096
_CLAIMED = (3.0, 10.0)
_DIFFERENT = 1.2


class RowColumnScan(Experiment):
    """Rows against columns: a sum over a square array, walked in both orders.

    A compiled loop adds up float32 elements row by row and column by column, at sizes beside and
    at powers of two: where a row's length is one, the lines of a column compete for few sets of
    the cache.  The same with NumPy slices at 4096 x 4096, and in pure Python."""

    name = "row-column-scan"
    needs = ("numpy", "numba")

    def run(self, lab: Lab) -> Found:
        """Compare at each size."""
        sizes: tuple[int, ...] = _FULL if lab.plan.full else _QUICK
        if lab.plan.size is not None:
            sizes = (lab.plan.size,)
        by_columns, by_rows = _compiled()
        compiled = [
            lab.compare(_pair(by_columns, by_rows, size), self._forms("compiled", size))
            for size in sizes
        ]
        across = lab.plan.size or _SLICES
        slices = lab.compare(
            _slices(across),
            self._forms("slices", across),
            sittings=SITTINGS if lab.plan.full else 1,
        )
        python = lab.compare(_interpreted(128), self._forms("pure Python", 128))
        return Found(
            rows=(*compiled, slices, python),
            plots=(_plot(compiled),),
            answers=(
                *([slices_answer(slices)] if across == _SLICES else []),
                order_answer(compiled, python),
                conflicts_answer(compiled),
            ),
        )

    def _forms(self, variant: str, size: int) -> Forms:
        return Forms(self.name, "column by column", "row by row", variant, size, "float32")


def _compiled() -> tuple[Callable[..., Any], Callable[..., Any]]:
    from numba import njit

    @njit
    def by_columns(a: Any) -> Any:
        total = 0.0
        for j in range(a.shape[1]):
            for i in range(a.shape[0]):
                total += a[i, j]  # memlint: ignore[column-order-loop]
        return total

    @njit
    def by_rows(a: Any) -> Any:
        total = 0.0
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                total += a[i, j]
        return total

    return by_columns, by_rows


def _pair(by_columns: Callable[..., Any], by_rows: Callable[..., Any], size: int) -> Pair:
    import numpy as np

    def operands() -> tuple[Any, ...]:
        return (np.random.default_rng(0).random((size, size), dtype=np.float32),)

    nbytes = size * size * 4
    return Pair(by_columns, by_rows, operands, f"float32, {size} x {size}", nbytes=nbytes)


def _slices(size: int) -> Pair:
    def by_columns(a: Any) -> float:
        return float(sum(float(a[:, j].sum()) for j in range(a.shape[1])))

    def by_rows(a: Any) -> float:
        return float(sum(float(a[i, :].sum()) for i in range(a.shape[0])))

    return replace(_pair(by_columns, by_rows, size), rotate=False)


def _interpreted(size: int) -> Pair:
    def by_columns(a: Any) -> float:
        total = 0.0
        for j in range(a.shape[1]):
            for i in range(a.shape[0]):  # memlint: ignore[python-element-loop]
                total += a[i, j]
        return float(total)

    def by_rows(a: Any) -> float:
        total = 0.0
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):  # memlint: ignore[python-element-loop]
                total += a[i, j]
        return float(total)

    return _pair(by_columns, by_rows, size)


def _plot(rows: Sequence[Row]) -> Plot:
    return Plot(
        "A compiled sum over a square array",
        "rows and columns", "",
        "time per byte", "s/B",
        (
            Curve("column by column", tuple(_point(row, row.as_is) for row in rows)),
            Curve("row by row", tuple(_point(row, row.alternative) for row in rows)),
        ),
    )  # fmt: skip


def _point(row: Row, seconds: float) -> Point:
    found = seconds / row.nbytes
    return Point(row.size, found, found, found)


def slices_answer(slices: Row) -> Answer:
    """NumPy slices, by columns against by rows."""
    return Answer(
        "column-scan",
        over([slices], lambda row: within(row.ratio, *_CLAIMED), is_slower),
        f"columns are {told(slices)} ({slices.what})",
    )


def order_answer(compiled: Sequence[Row], python: Row) -> Answer:
    """All loops, compiled ones at some sizes and one in pure Python."""
    ratios = [row.ratio for row in compiled]
    return Answer(
        "column-order",
        over((*compiled, python), lambda row: within(row.ratio, *_CLAIMED), is_slower),
        f"compiled, columns take {ratio(min(ratios))} to {ratio(max(ratios))} times as long as "
        f"rows, by size; in pure Python they are {told(python)}",
    )


def conflicts_answer(compiled: Sequence[Row]) -> Answer:
    """Column by column, what an element takes at powers of two against the size nearest to it
    that is none."""
    by_size = {row.size: row.as_is / row.nbytes for row in compiled}
    found = {
        size: seconds / by_size[beside]
        for size, seconds in by_size.items()
        if not size & (size - 1) and (beside := _beside(size, by_size))
    }
    if not found:
        why = "no power of two beside another size was run"
        return Answer("conflict-misses", Standing.UNMEASURED, why)
    times = ", ".join(f"{ratio(value)} times at {size}" for size, value in found.items())
    return Answer(
        "conflict-misses",
        standing(value > _DIFFERENT for value in found.values()),
        f"an element takes, at a power of two over beside it, {times}",
    )


def _beside(size: int, sizes: Iterable[int]) -> int | None:
    near = [other for other in sizes if other & (other - 1) and abs(other - size) <= size / 20]
    return min(near, key=lambda other: abs(other - size), default=None)
