"""The limits of what a traced block may do: which operations break them, on the records alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from memlint.layout import Strided
from memlint.tracer.limits import Limits
from memlint.tracer.records import Operand, Operation, Site

HERE = Site("a.py", "work", 3)


def operand(
    strides: Sequence[int], dtype: str = "float32", device: str = "cpu", size: int = 4
) -> Operand:
    return Operand(Strided((8, 4), tuple(strides), size), dtype, device)


DENSE, TURNED = operand((4, 1)), operand((1, 8))


def ran(name: str, read: Sequence[Operand], made: Operand | None = None, **more: Any) -> Operation:
    results = () if made is None else (made,)
    return Operation(HERE, name, "forward", tuple(read), results, count=2, **more)


LAYOUTS = Limits(no_layout_copies=True)
SYNCS = Limits(no_sync=True)


@pytest.mark.parametrize(
    ("limits", "operation"),
    [
        (LAYOUTS, ran("aten.clone.default", [TURNED], DENSE)),
        (LAYOUTS, ran("aten.copy_.default", [DENSE, TURNED], DENSE)),
        (LAYOUTS, ran("aten.clone.default", [DENSE], DENSE, hidden=2)),
        (SYNCS, ran("aten._local_scalar_dense.default", [DENSE])),
        (SYNCS, ran("aten.nonzero.default", [DENSE], DENSE)),
        (SYNCS, ran("aten.index.Tensor", [DENSE, operand((4, 1), "bool", size=1)], DENSE)),
        (SYNCS, ran("aten._to_copy.default", [operand((4, 1), device="cuda:0")], DENSE)),
        (Limits(max_copy_bytes=255), ran("aten.clone.default", [DENSE], DENSE)),
    ],
)
def test_broken(limits: Limits, operation: Operation) -> None:
    lines = limits.broken([operation], lambda path: path)
    assert lines[-1].startswith("a.py:3: ")
    assert ", 2 times" in lines[-1]


@pytest.mark.parametrize(
    ("limits", "operation"),
    [
        (LAYOUTS, ran("aten.clone.default", [DENSE], DENSE)),
        (LAYOUTS, ran("aten.clone.default", [TURNED], TURNED)),
        (LAYOUTS, ran("aten.clone.default", [operand((0, 1))], DENSE)),  # a broadcast written out
        (LAYOUTS, ran("aten._to_copy.default", [operand((1, 8), "float64", size=8)], DENSE)),
        (LAYOUTS, ran("aten._to_copy.default", [TURNED], operand((4, 1), device="cuda:0"))),
        (LAYOUTS, ran("aten.add.Tensor", [TURNED, DENSE], DENSE)),
        (SYNCS, ran("aten.index.Tensor", [DENSE, operand((4, 1), "int64", size=8)], DENSE)),
        (SYNCS, ran("aten._to_copy.default", [DENSE], operand((4, 1), device="cuda:0"))),
        (
            SYNCS,
            ran(
                "aten._to_copy.default",
                [operand((4, 1), device="cuda:0")],
                DENSE,
                keywords=(("non_blocking", True),),
            ),
        ),
        (Limits(max_copy_bytes=256), ran("aten.clone.default", [DENSE], DENSE)),
        (Limits(), ran("aten._local_scalar_dense.default", [DENSE])),
    ],
)
def test_kept(limits: Limits, operation: Operation) -> None:
    assert limits.broken([operation], lambda path: path) == []
