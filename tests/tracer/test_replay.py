from __future__ import annotations

import pytest
import torch

from memlint.layout import Strided
from memlint.measure import Comparison
from memlint.tracer import replay
from memlint.tracer.records import Hole, Operand, Operation, Site
from memlint.tracer.replay import Measured, measure
from memlint.tracer.sightings import Claim
from tests.tracer.tracing import traced

SITE = Site("program.py", "f", 1)
BUDGET = 0.05


def operand(shape: tuple[int, ...], strides: tuple[int, ...], dtype: str = "float32") -> Operand:
    return Operand(Strided(shape, strides, getattr(torch, dtype).itemsize), dtype, "cpu")


def operation(name: str, *operands: Operand, replayable: bool = True) -> Operation:
    holes = tuple(Hole(n) for n in range(len(operands)))
    return Operation(
        SITE, name, "forward", operands, (), arguments=holes, count=1, replayable=replayable
    )


def only_claim(name: str, function: object, *tensors: torch.Tensor) -> Claim:
    with traced() as run:
        function(*tensors)  # type: ignore[operator]
    one = run.only(name)
    odd = tuple(n for n, x in enumerate(one.operands) if not x.is_contiguous)
    return Claim(one, odd, one.uses)


TURNED = torch.ones(64, 48).t()


@pytest.mark.parametrize(
    ("name", "function", "tensors"),
    [
        ("add", torch.add, (torch.ones(48, 64), TURNED)),
        ("sum", lambda x: x.sum(1), (TURNED,)),
        ("_softmax", lambda x: torch.softmax(x, -1), (TURNED,)),
        ("native_layer_norm", lambda x: torch.nn.functional.layer_norm(x, (64,)), (TURNED,)),
        ("embedding", torch.nn.functional.embedding, (torch.tensor([0, 5, 47]), TURNED)),
        ("cat", lambda x: torch.cat([x, x]), (TURNED,)),
        ("mm", torch.mm, (TURNED, torch.ones(64, 8).t().contiguous().t())),
        ("max", lambda x: x.max(1), (TURNED,)),
    ],
)
def test_operations_are_replayed_with_the_same_numbers(
    name: str, function: object, tensors: tuple[torch.Tensor, ...]
) -> None:
    claim = only_claim(name, function, *tensors)
    assert claim.dense
    measured = measure(claim, BUDGET)
    assert measured is not None
    assert measured.same
    assert measured.comparison.as_is > 0
    assert measured.comparison.alternative > 0
    assert measured.conversion > 0


def test_replay_leaves_the_random_numbers_of_the_program_alone() -> None:
    claim = only_claim("sum", lambda x: x.sum(1), TURNED)
    torch.manual_seed(7)
    expected = torch.rand(4)
    torch.manual_seed(7)
    assert measure(claim, BUDGET) is not None
    assert torch.equal(torch.rand(4), expected)


def test_operands_have_the_strides_they_had() -> None:
    for shape, strides in [
        ((4, 6), (1, 4)),
        ((4, 6), (0, 1)),
        ((4, 6), (20, 2)),
        # Windows that overlap.
        ((5, 4), (1, 1)),
        ((3, 0), (1, 1)),
        ((), ()),
    ]:
        (made,) = replay._made(operation("aten.exp.default", operand(shape, strides)), seed=1)
        assert made.shape == shape
        assert made.stride() == strides
        assert bool(torch.isfinite(made).all())


def test_indices_fall_into_the_table() -> None:
    claim = only_claim("embedding", torch.nn.functional.embedding, torch.tensor([1, 2]), TURNED)
    _, words = replay._made(claim.operation, seed=1)
    assert words.dtype is torch.int64
    assert 0 <= int(words.min()) <= int(words.max()) < 48


@pytest.mark.parametrize("dtype", ["bool", "int64", "float64", "bfloat16", "complex64"])
def test_operands_of_every_kind_can_be_made(dtype: str) -> None:
    (made,) = replay._made(operation("aten.clone.default", operand((8,), (1,), dtype)), seed=1)
    assert made.dtype is getattr(torch, dtype)


def test_other_seeds_make_other_numbers() -> None:
    one = operation("aten.exp.default", operand((64,), (1,)))
    assert not torch.equal(replay._made(one, seed=1)[0], replay._made(one, seed=2)[0])


def test_a_result_that_differs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    one = operation("aten.sum.default", operand((8, 4), (1, 8)))
    real = replay._function(one.name)
    assert real is not None

    def wrong(x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = real(x)
        return out if x.is_contiguous() else out + 1

    monkeypatch.setattr(replay, "_function", lambda name: wrong)
    measured = measure(Claim(one, (0,)), BUDGET)
    assert measured is not None
    assert not measured.same


@pytest.mark.parametrize(
    "one",
    [
        operation("aten.bernoulli.default", operand((8,), (1,))),
        operation("aten.add_.Tensor", operand((8,), (1,)), operand((8,), (1,)), replayable=False),
        operation("c10d.allreduce_.default", operand((8,), (1,))),
        operation("aten.add.NoSuchOverload", operand((8,), (1,))),
        operation("aten.sum.default", operand((1 << 14, 1 << 14), (1, 1 << 14))),
    ],
    ids=["random", "in-place", "collective", "unknown", "too large"],
)
def test_what_cannot_be_replayed_is_not(one: Operation) -> None:
    assert measure(Claim(one, (0,)), BUDGET) is None


def test_the_conversion_is_shared_among_the_uses() -> None:
    compared = Comparison(10.0, 2.0, 5.0, 4.5, 5.5, 0.9, 1.1, 11)
    once, often = Measured(compared, 8.0, 1.0, True), Measured(compared, 8.0, 4.0, True)
    assert once.alternative == pytest.approx(10.0)
    assert once.net_ratio == pytest.approx(1.0)
    assert often.alternative == pytest.approx(4.0)
    assert often.net_ratio == pytest.approx(2.5)
