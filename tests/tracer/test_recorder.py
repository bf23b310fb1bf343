from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import _disable_current_modes

import memlint.tracer.recorder as recorder_module
from memlint.tracer.operators import Operators
from memlint.tracer.recent import Recent
from memlint.tracer.records import Opaque
from tests.tracer.tracing import line_of, traced

A = torch.ones(256, 256)


def test_equal_operations_at_one_place_are_one_record() -> None:
    with traced() as run:
        for _ in range(5):
            torch.exp(A)
    one = run.only("exp")
    assert (one.count, one.steps, one.fresh) == (5, 1, 5)
    assert one.operands[0].array.shape == (256, 256)
    assert one.operands[0].dtype == "float32"
    assert one.operands[0].device == "cpu"


def test_layouts_are_told_apart() -> None:
    with traced() as run:
        for x in (A, A.t(), A):
            torch.exp(x)
    assert sorted(one.count for one in run.named("exp")) == [1, 2]
    assert {one.operands[0].array.strides for one in run.named("exp")} == {(256, 1), (1, 256)}


def test_arguments_keep_what_is_no_tensor() -> None:
    with traced() as run:
        torch.sum(A, dim=1, dtype=torch.float64)
    one = run.only("sum")
    assert one.arguments[1] == (1,)
    assert dict(one.keywords)["dtype"].text == "torch.float64"  # type: ignore[union-attr]


def test_the_elements_of_an_argument_are_not_read() -> None:
    storage = A.untyped_storage()
    with traced() as run:
        torch.empty(0).set_(storage)
    assert run.only("set_").arguments[1] == Opaque("UntypedStorage", "")


def test_operands_in_lists_are_seen() -> None:
    with traced() as run:
        torch.cat([A, A.t()])
    assert [one.array.strides for one in run.only("cat").operands] == [(256, 1), (1, 256)]


def test_a_layout_is_born_where_axes_are_exchanged() -> None:
    def program() -> None:
        x = A.t()
        y = x + 1
        torch.exp(y)

    with traced() as run:
        program()
    born = line_of(program, "A.t()")
    assert run.only("add").births[0].line == born
    # The sum keeps the order of its operand: the layout is handed on.
    assert run.only("exp").births[0].line == born


def test_a_view_of_a_view_is_born_where_the_order_changes() -> None:
    qkv = torch.ones(512, 3, 64)

    def program() -> None:
        q = qkv[:, 0]
        k = q.transpose(0, 1)
        torch.exp(k)
        torch.tanh(k[:32])

    with traced() as run:
        program()
    assert run.only("exp").births[0].line == line_of(program, "transpose")
    assert run.only("tanh").births[0].line == line_of(program, "transpose")


def test_the_same_array_is_one_version_and_a_changed_one_another() -> None:
    with traced() as run:
        x = A.clone()
        for n in range(6):
            if n == 3:
                x.add_(1)
            torch.exp(x.t())
    assert (run.only("exp").count, run.only("exp").versions) == (6, 2)
    assert run.only("exp").uses == 3


def test_arrays_that_take_each_others_place_are_different_versions() -> None:
    with traced() as run:
        for _ in range(6):
            x = A + 1
            torch.exp(x.t())
            del x
    assert (run.only("exp").count, run.only("exp").versions) == (6, 6)


def test_the_copy_of_a_reshape_is_hidden_and_one_that_was_asked_for_is_not() -> None:
    with traced() as run:
        A.t().reshape(-1)
        A.t().contiguous().view(-1)
    assert sorted(one.hidden for one in run.named("clone")) == [0, 1]


def test_calls_that_do_nothing_are_noted_as_such() -> None:
    with traced() as run:
        for _ in range(3):
            A.contiguous()
        A.t().contiguous()
        A.to(torch.float32)
    asked = {(one.name, one.count, one.idle) for one in run.asked}
    assert asked == {("contiguous", 3, 3), ("contiguous", 1, 0), ("to", 1, 1)}


def test_doubles_know_what_made_them() -> None:
    def program() -> None:
        wide = torch.linspace(0, 1, 256, dtype=torch.float64)
        scale = wide * 2
        A * scale

    with traced() as run:
        program()
    maker = run.named("mul")[-1].makers[1]
    assert maker.name == "aten.linspace.default"
    assert maker.site.line == line_of(program, "torch.linspace")


def test_doubles_that_nobody_saw_being_made_have_no_maker() -> None:
    with traced() as run:
        for _ in range(50):
            torch.zeros(256, dtype=torch.float64)
            with _disable_current_modes():
                wide = torch.ones(256, dtype=torch.float64)
            A * wide
            del wide
    assert run.only("mul").makers == {}


def test_records_are_bounded_and_what_is_left_out_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recorder_module, "MOST_RECORDS", 10)
    with traced() as run:
        for size in range(1, 26):
            torch.exp(A[:size].clone())
    assert len(run.operations) == 10
    assert run.session.recorder.seen == 75
    assert run.session.recorder.dropped == 41


def test_one_place_cannot_take_all_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_module, "MOST_LAYOUTS", 4)
    with traced() as run:
        for size in range(1, 11):
            torch.exp(torch.ones(size))
        torch.tanh(A)
    assert len(run.named("exp")) == 4
    assert len(run.named("tanh")) == 1
    assert run.session.recorder.dropped == 6


def test_memory_does_not_grow_with_the_length_of_the_run() -> None:
    def records_after(steps: int) -> int:
        model = nn.Linear(8, 8)
        with traced() as run:
            for _ in range(steps):
                model(A[:4, :8]).sum().backward()
        return len(run.operations)

    assert records_after(40) == records_after(4)


def test_recent_forgets_the_oldest_in_bulk() -> None:
    recent: Recent[int, int] = Recent(10)
    for number in range(100):
        recent.put(number, number)
        assert len(recent) <= 21
        assert recent.get(max(number - 9, 0)) == max(number - 9, 0)
    assert recent.get(0) is None


def test_facts_of_operators() -> None:
    operators, aten = Operators(), torch.ops.aten
    add, inplace = operators.get(aten.add.Tensor), operators.get(aten.add_.Tensor)
    assert (add.name, add.fresh, add.views, add.mutable) == ("aten.add.Tensor", True, False, False)
    assert (inplace.fresh, inplace.views, inplace.mutable) == (False, False, True)
    view = operators.get(aten.t.default)
    assert (view.fresh, view.views, view.reorders) == (False, True, True)
    assert operators.get(aten.add.Tensor) is add
