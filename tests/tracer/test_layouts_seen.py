"""MEM310, MEM311 and MEM312 on small programs that run."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from memlint.tracer.records import BACKWARD
from memlint.tracer.replay import measure
from tests.tracer.tracing import line_of, traced

A = torch.randn(256, 256)
B = torch.randn(256, 256)


def test_elementwise_work_on_two_orders() -> None:
    def program() -> None:
        turned = B.t()
        A + turned

    with traced() as run:
        program()
    (one,) = run.sightings("mixed-layout-operands")
    assert one.site.line == line_of(program, "A + turned")
    assert [site.line for site, _ in one.related] == [line_of(program, "B.t()")]
    assert one.claims[0].dense == (1,)
    measured = measure(one.claims[0], 0.05)
    assert measured is not None
    assert measured.same


def test_gradients_of_two_orders_are_no_matter_of_the_forward_line() -> None:
    x = A.clone().requires_grad_()

    def program() -> None:
        y = x.exp()
        torch.autograd.backward([y * 2, y * 3], [B, B.t()])

    with traced() as run:
        program()
    added = [one for one in run.named("add") if one.phase == BACKWARD]
    assert any(one.is_contiguous for one in added[0].operands)
    assert not all(one.is_contiguous for one in added[0].operands)
    assert run.sightings("mixed-layout-operands") == []


def test_elementwise_work_on_one_order_is_sound() -> None:
    with traced() as run:
        A + B
        A.t() + B.t()
        A + B[0]
        A + B[:, :1]
        A[:8, :8] + B.t()[:8, :8]
    assert run.sightings("mixed-layout-operands") == []


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("_softmax", lambda x: torch.softmax(x, -1)),
        ("native_layer_norm", lambda x: functional.layer_norm(x, (256,))),
        ("sum", lambda x: x.sum(1)),
        ("embedding", lambda x: functional.embedding(torch.tensor([3, 5]), x)),
    ],
)
def test_work_across_the_order_in_which_an_array_is_stored(name: str, work: object) -> None:
    turned = A.t()
    with traced() as run:
        work(turned)  # type: ignore[operator]
        work(A)  # type: ignore[operator]
    (one,) = run.sightings("strided-operand")
    assert one.claims[0].operation.short == name
    assert not one.claims[0].operation.operands[one.claims[0].dense[0]].is_contiguous


def test_products_take_transposed_operands_as_they_are() -> None:
    with traced() as run:
        A @ B.t()
        nn.Linear(256, 256)(A)
    assert run.sightings("strided-operand") == []
    assert run.sightings("mixed-layout-operands") == []


def test_axes_of_size_one_and_broadcast_ones_do_not_count() -> None:
    row = torch.randn(1, 65536)
    with traced() as run:
        torch.softmax(row.t().reshape(65536, 1).t(), -1)
        torch.softmax(A[:1].expand(256, 256), -1)
        functional.layer_norm(torch.randn(256, 1, 256).transpose(0, 1), (256,))
    assert run.sightings("strided-operand") == []


def test_a_reshape_that_copies() -> None:
    images = torch.randn(4, 16, 32, 32)

    def program() -> None:
        images.permute(0, 2, 3, 1).reshape(-1, 16)

    with traced() as run:
        program()
    (one,) = run.sightings("hidden-layout-copy")
    assert one.site.line == line_of(program, "reshape")
    assert one.nbytes == 2 * 4 * 16 * 32 * 32 * 4


def test_a_reshape_that_is_a_view_and_a_copy_that_is_asked_for_are_sound() -> None:
    images = torch.randn(4, 16, 32, 32)
    with traced() as run:
        images.reshape(4, -1)
        images.permute(0, 2, 3, 1).contiguous().view(-1, 16)
    assert run.sightings("hidden-layout-copy") == []


def test_copies_of_a_backward_pass_are_not_held_against_the_forward_line() -> None:
    qkv = torch.randn(8, 64, 3 * 4 * 16, requires_grad=True)
    with traced() as run:
        q, k, v = qkv.view(8, 64, 3, 4, 16).permute(2, 0, 3, 1, 4)
        functional.scaled_dot_product_attention(q, k, v).sum().backward()
    assert any(one.hidden for one in run.operations)
    assert run.sightings("hidden-layout-copy") == []


def test_elementwise_work_in_place_on_two_orders() -> None:
    x = torch.randn(256, 256)

    def program() -> None:
        x.add_(torch.randn(256, 256).t())

    with traced() as run:
        program()
    (one,) = run.sightings("mixed-layout-operands")
    assert one.site.line == line_of(program, "add_")
    measured = measure(one.claims[0], 0.05)
    assert measured is not None
    assert measured.same
