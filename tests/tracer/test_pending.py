"""Copies that nobody has waited for: the bookkeeping, without a device."""

from __future__ import annotations

import torch

from memlint.layout import Strided
from memlint.tracer.operators import Operators
from memlint.tracer.pending import Pending
from memlint.tracer.recorder import Noted
from memlint.tracer.records import Hole, Operand, Operation, Site

ATEN = torch.ops.aten
OPERATORS = Operators()
HOST = torch.ones(8)
OTHER = torch.ones(8)


def operand(device: str, *, pinned: bool = False) -> Operand:
    return Operand(Strided((8,), (1,), 4), "float32", device, pinned)


def copy_of(source: Operand, target: Operand, *, waits: bool) -> Operation:
    return Operation(
        Site("program.py", "f", 1), "aten._to_copy.default", "forward", (source,), (target,),
        (Hole(0),), (("non_blocking", not waits),), 1, 1,
    )  # fmt: skip


def noted(function: object, line: int = 1) -> Noted:
    return Noted((line, 0), OPERATORS.get(function), "forward")


def started(*, to_host: bool, pinned: bool = True, waits: bool = False) -> tuple[Pending, Noted]:
    pending, record = Pending(), noted(ATEN._to_copy.default)
    host, device = operand("cpu", pinned=pinned), operand("cuda:0")
    if to_host:
        pending.note(record, [OTHER], copy_of(device, host, waits=waits), HOST)
    else:
        pending.note(record, [HOST], copy_of(host, device, waits=waits), OTHER)
    return pending, record


def test_a_source_that_is_written_into() -> None:
    pending, copy = started(to_host=False)
    pending.touch(noted(ATEN.add_.Tensor, line=7), [HOST, OTHER])
    assert (copy.conflicts, copy.conflict_at) == (1, (7, 0))


def test_a_source_that_is_read_or_of_which_a_view_is_taken() -> None:
    pending, copy = started(to_host=False)
    pending.touch(noted(ATEN.add.Tensor), [HOST, OTHER])
    pending.touch(noted(ATEN.add_.Tensor), [OTHER, HOST])
    pending.touch(noted(ATEN.view.default), [HOST])
    assert copy.conflicts == 0


def test_a_result_that_is_read() -> None:
    pending, copy = started(to_host=True)
    pending.touch(noted(ATEN.view.default, line=6), [HOST])
    pending.touch(noted(ATEN.add.Tensor, line=7), [OTHER, HOST])
    assert (copy.conflicts, copy.conflict_at) == (1, (7, 0))


def test_another_array_in_the_place_of_the_result_may_be_read() -> None:
    pending, copy = Pending(), noted(ATEN._to_copy.default)
    device, host = operand("cuda:0"), operand("cpu")
    for _ in range(50):
        result = torch.ones(8)
        pending.note(copy, [OTHER], copy_of(device, host, waits=False), result)
        del result
        pending.touch(noted(ATEN.exp.default), [torch.ones(8)])
    assert copy.conflicts == 0


def test_what_waits_ends_it() -> None:
    pending, copy = started(to_host=True)
    pending.clear(1)
    assert not pending
    pending.touch(noted(ATEN.add.Tensor), [HOST, OTHER])
    assert copy.conflicts == 0


def test_a_copy_that_waits_ends_it_too() -> None:
    pending, _ = started(to_host=True)
    assert pending
    host, device = operand("cpu"), operand("cuda:0")
    pending.note(noted(ATEN._to_copy.default), [OTHER], copy_of(device, host, waits=True), OTHER)
    assert not pending


def test_pageable_sources_are_copied_before_the_call_returns() -> None:
    pending, _ = started(to_host=False, pinned=False)
    assert not pending


def test_what_is_pending_is_bounded() -> None:
    pending, _ = started(to_host=True)
    kept = [torch.ones(1) for _ in range(2500)]
    for one in kept:
        move = copy_of(operand("cuda:0"), operand("cpu"), waits=False)
        pending.note(noted(ATEN._to_copy.default), [OTHER], move, one)
    assert len(pending._written) <= 1000
