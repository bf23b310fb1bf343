from __future__ import annotations

import sys

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from memlint.tracer.records import BACKWARD
from memlint.tracer.session import Session
from tests.tracer.tracing import line_of, text_at, traced

A = torch.ones(8, 8)
columns = pytest.mark.skipif(sys.version_info < (3, 11), reason="no columns before Python 3.11")


@columns
def test_a_site_is_the_expression_that_was_run() -> None:
    with traced() as run:
        torch.exp(A) + torch.tanh(A)
    assert text_at(run.only("exp").site) == "torch.exp(A)"
    assert text_at(run.only("tanh").site) == "torch.tanh(A)"
    assert text_at(run.only("add").site) == "torch.exp(A) + torch.tanh(A)"


def test_a_site_names_the_function_and_the_file() -> None:
    def inner() -> None:
        torch.exp(A)

    with traced() as run:
        inner()
    site = run.only("exp").site
    assert site.path == __file__
    assert site.function.rpartition(".")[2] == "inner"
    assert site.line == line_of(inner, "torch.exp")


def test_code_of_torch_stands_for_the_line_that_calls_it() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())

    def forward() -> None:
        model(A)

    with traced() as run:
        forward()
    assert {one.site.line for one in run.operations} == {line_of(forward, "model(A)")}


def test_excluded_files_stand_for_the_line_that_calls_them() -> None:
    with Session(warmup=0, exclude=[__file__]) as session:
        torch.exp(A)
    (one,) = session.recorder.operations()
    assert one.site.path != __file__


def test_backward_is_told_at_the_forward_line() -> None:
    weight = torch.ones(8, 8, requires_grad=True)

    def program() -> None:
        x = torch.tanh(A @ weight)
        y = torch.exp(x)
        y.sum().backward()

    with traced() as run:
        program()
    late = {one.short: one.site.line for one in run.operations if one.phase == BACKWARD}
    assert late["tanh_backward"] == line_of(program, "torch.tanh")
    assert late["mm"] == line_of(program, "torch.tanh")
    exp_backward = [one for one in run.named("mul") if one.phase == BACKWARD]
    assert [one.site.line for one in exp_backward] == [line_of(program, "torch.exp")]


def test_a_second_pass_is_told_at_its_own_forward_lines() -> None:
    weight = torch.ones(8, 8, requires_grad=True)

    def program() -> None:
        torch.tanh(A @ weight).sum().backward()
        torch.sigmoid(A @ weight).sum().backward()

    with traced() as run:
        program()
    assert run.only("tanh_backward").site.line == line_of(program, "tanh")
    assert run.only("sigmoid_backward").site.line == line_of(program, "sigmoid")


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        return x * 2

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        return torch.cosh(grad)


def test_a_backward_that_the_program_wrote_stands_for_itself() -> None:
    x = torch.ones(4, requires_grad=True)
    with traced() as run:
        Doubled.apply(x).sum().backward()  # type: ignore[no-untyped-call]
    assert run.only("cosh").phase == BACKWARD
    assert run.only("cosh").site.line == line_of(Doubled, "torch.cosh")


def test_what_a_checkpoint_computes_again_is_told_at_its_own_line() -> None:
    weight = torch.ones(8, 8, requires_grad=True)

    def block(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ weight)

    with traced() as run:
        checkpoint(block, A, use_reentrant=False).sum().backward()
    forward, again = run.named("tanh")
    assert {forward.site.line, again.site.line} == {line_of(block, "torch.tanh")}
    assert (forward.phase, again.phase) == ("forward", BACKWARD)
    assert run.only("tanh_backward").site.line == line_of(block, "torch.tanh")
