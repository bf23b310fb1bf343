"""Strided operands, formats of convolutions and pinned copies: what numbers make of the claims."""

from __future__ import annotations

import pytest

from memlint.bench.agreement import agree
from memlint.bench.experiments import convolution_format, pinned_copies, strided_operands
from memlint.bench.experiments.convolution_format import SHAPES, format_answer
from memlint.bench.experiments.pinned_copies import pin_answers
from memlint.bench.experiments.strided_operands import contiguous_answer, strided_answer
from memlint.bench.results import Standing
from tests.bench.samples import noisy, row


def test_strided_operands() -> None:
    every = [row(4.0, variant="sort"), row(8.0, variant="cumsum")]
    some = [*every, row(1.0, variant="matmul")]
    assert strided_answer(every).standing is Standing.HOLDS
    found = strided_answer([*some, noisy()])
    assert found.standing is Standing.PARTLY
    assert found.measured.startswith("2 of 4 kinds")
    assert found.measured.endswith("1 of 4 are too noisy to tell")
    # What cannot be told does not bear it out.
    assert strided_answer([*every, noisy()]).standing is Standing.PARTLY
    assert strided_answer([row(29.0), row(1.0)]).standing is Standing.PARTLY
    assert strided_answer([row(1.0), row(1.05)]).standing is Standing.DOES_NOT_HOLD
    assert strided_answer([noisy()]).standing is Standing.UNMEASURED


def test_copies_that_pay() -> None:
    pays, costs = row(8.0, variant="cumsum", net=5.0), row(1.0, variant="matmul", net=0.8)
    assert contiguous_answer([pays]).standing is Standing.HOLDS
    assert contiguous_answer([pays, costs]).standing is Standing.PARTLY
    assert contiguous_answer([costs]).standing is Standing.DOES_NOT_HOLD
    assert contiguous_answer([noisy()]).standing is Standing.UNMEASURED


def test_a_copy_that_eats_its_gain_does_not_pay() -> None:
    assert contiguous_answer([row(1.5, net=0.9)]).standing is Standing.DOES_NOT_HOLD


def test_formats() -> None:
    assert format_answer([row(2.0), row(1.5)]).standing is Standing.HOLDS
    mixed = format_answer([row(2.0), row(0.5), row(1.0), noisy()])
    assert mixed.standing is Standing.PARTLY
    assert "faster in 1 of 4 cases and slower in 1" in mixed.measured
    assert format_answer([row(1.0), row(0.5)]).standing is Standing.DOES_NOT_HOLD
    assert format_answer([noisy()]).standing is Standing.UNMEASURED


def test_pinning() -> None:
    found = pin_answers([row(2.0), row(2.5)], [row(1.9), row(0.7)])
    assert [one.standing for one in found] == [Standing.HOLDS, Standing.PARTLY]
    found = pin_answers([row(1.0)], [row(1.9)])
    assert [one.standing for one in found] == [Standing.DOES_NOT_HOLD, Standing.DOES_NOT_HOLD]
    assert {one.standing for one in pin_answers([noisy()], [noisy()])} == {Standing.UNMEASURED}


def test_pinning_a_batch_alone_says_nothing_of_copies() -> None:
    found = pin_answers([noisy()], [row(1.9)])
    assert [one.standing for one in found] == [Standing.UNMEASURED, Standing.DOES_NOT_HOLD]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_both_formats_convolve_alike(dtype: str) -> None:
    pytest.importorskip("torch")
    for shape in SHAPES:
        pair = convolution_format._pair(shape, 1, dtype, "cpu")
        operands = pair.operands()
        assert operands[0].is_contiguous()
        assert operands[2].is_contiguous(memory_format=__import__("torch").channels_last)
        assert agree(pair.as_is(*operands), pair.alternative(*operands)), shape.label


def test_both_layouts_give_the_same() -> None:
    pytest.importorskip("torch")
    for name, kind in strided_operands._functions().items():
        pair = strided_operands._pair(kind, name, 24, "float32", "cpu")
        strided, same, _ = operands = pair.operands()
        assert not strided.is_contiguous()
        assert same.is_contiguous()
        assert agree(pair.as_is(*operands), pair.alternative(*operands)), name


def test_copies_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor.clone())
    for pair in (pinned_copies.pinned_pair(512, "cpu"), pinned_copies.inline_pair(512, "cpu")):
        operands = pair.operands()
        assert operands[0].nbytes == pair.nbytes == 512
        assert agree(pair.as_is(*operands), pair.alternative(*operands))
        pair.settle()
