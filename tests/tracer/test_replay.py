from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch

from memlint.caches import count_of_sets
from memlint.layout import Strided
from memlint.measure import Comparison, TooLong
from memlint.tracer import experiments, replay
from memlint.tracer.experiments import experiment, function_of, sizes_of_growth
from memlint.tracer.records import Growth, Hole, Operand, Operation, Site
from memlint.tracer.remade import bytes_of, remade
from memlint.tracer.replay import Measured, agree, measure, measure_all
from memlint.tracer.sightings import AnyClaim, Claim, FuseAttention
from tests.tracer.tracing import line_of, traced

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
        for (made,) in remade([operand(shape, strides)], 2, sets=3):
            assert made.shape == shape
            assert made.stride() == strides
            assert bool(torch.isfinite(made).all())


def test_sets_have_the_same_numbers_in_memory_of_their_own() -> None:
    (one,), (other,) = remade([operand((4, 6), (1, 4))], 2, sets=2)
    assert torch.equal(one, other)
    one.zero_()
    assert bool(other.all())


def test_sets_outlast_the_caches_within_bounds() -> None:
    for nbytes in (1 << 20, 1 << 23, 1 << 26):
        sets = count_of_sets(nbytes)
        assert sets * nbytes >= 32 << 20
        assert sets * nbytes <= 256 << 20
    assert count_of_sets(1) <= 128
    assert count_of_sets(1 << 30) == 1


def test_large_tensors_are_filled_to_the_end() -> None:
    size = (1 << 20) * 2 + 7
    ((made,),) = remade([operand((size,), (1,))], 2, sets=1)
    assert bool(made[-7:].all())
    assert torch.equal(made[-7:], made[:7])


def test_bytes_are_those_between_the_first_and_the_last_element() -> None:
    assert bytes_of([operand((4, 6), (20, 2)), operand((2,), (0,), "float64")]) == 71 * 4 + 8


def test_indices_fall_into_the_table() -> None:
    claim = only_claim("embedding", torch.nn.functional.embedding, torch.tensor([1, 2]), TURNED)
    assert experiments._rows(claim.operation) == 48
    ((_, words),) = remade(claim.operation.operands, 48, 1)
    assert words.dtype is torch.int64
    assert 0 <= int(words.min()) <= int(words.max()) < 48


def test_indices_along_another_axis_fall_into_it() -> None:
    rows = torch.tensor([1, 2])
    claim = only_claim(
        "index_select", lambda x: x.index_select(1, rows), torch.ones(300, 8).t().t()
    )
    assert experiments._rows(claim.operation) == 8


def test_numbers_fit_into_their_dtype() -> None:
    ((small,),) = remade([operand((1000,), (1,), "int8")], 30_000, 1)
    assert 0 <= int(small.min()) < int(small.max()) <= 126


@pytest.mark.parametrize("dtype", ["bool", "int64", "float64", "bfloat16", "complex64"])
def test_operands_of_every_kind_can_be_made(dtype: str) -> None:
    ((made,),) = remade([operand((8,), (1,), dtype)], 2, 1)
    assert made.dtype is getattr(torch, dtype)


def test_a_result_that_differs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    one = operation("aten.sum.default", operand((8, 4), (1, 8)))
    real = function_of(one.name)
    assert real is not None

    def wrong(x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = real(x)
        return out if x.is_contiguous() else out + 1

    monkeypatch.setattr(experiments, "function_of", lambda name: wrong)
    measured = measure(Claim(one, (0,)), BUDGET)
    assert measured is not None
    assert not measured.same


def test_results_are_the_same_up_to_the_rounding_of_the_less_precise() -> None:
    exact = torch.linspace(0, 1, 100, dtype=torch.float64)
    assert agree(exact, exact.float())
    assert agree((exact, 3), (exact.half(), 3))
    assert not agree(exact, exact.float() + 0.1)
    assert not agree(exact, exact[:50])
    assert not agree(torch.arange(3), torch.arange(3).flip(0))


def test_which_of_equal_numbers_is_chosen_does_not_matter() -> None:
    for name, function in (("max", lambda x: x.max(1)), ("argmax", lambda x: x.argmax(1))):
        claim = only_claim(name, function, torch.ones(64, 48, dtype=torch.bfloat16).t())
        measured = measure(claim, BUDGET)
        assert measured is not None
        assert measured.same


@pytest.mark.parametrize(
    "one",
    [
        operation("aten.bernoulli.default", operand((8,), (1,))),
        operation("aten.index_add_.default", operand((8,), (1,)), replayable=False),
        operation("c10d.allreduce_.default", operand((8,), (1,))),
        operation("aten.add.NoSuchOverload", operand((8,), (1,))),
        operation("aten.sum.default", operand((1 << 14, 1 << 14), (1, 1 << 14))),
        operation("aten.sum.default", Operand(Strided((8, 4), (1, 8), 4), "float32", "meta")),
        operation("aten.clone.default", operand((8, 4), (1, 8), "float8_e4m3fn")),
    ],
    ids=["random", "in-place", "collective", "unknown", "too large", "no memory", "odd dtype"],
)
def test_what_cannot_be_replayed_is_not(one: Operation) -> None:
    assert measure(Claim(one, (0,)), BUDGET) is None


def test_what_is_saved_is_told_for_one_event() -> None:
    compared = Comparison(10.0, 2.0, 8.0, 5.0, 4.5, 5.5, 2.5, 2.4, 2.6, 0.9, 1.1, 12)
    assert Measured(compared, 4.0, True).saved == pytest.approx(6.0)
    assert Measured(compared, 4.0, True, events=2).saved == pytest.approx(3.0)


def test_equal_claims_are_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def one(line: int) -> Operation:
        made = operation("aten.sum.default", operand((64, 48), (1, 64)))
        made.site = Site("program.py", "f", line)
        return made

    asked: list[Claim] = []
    monkeypatch.setattr(replay, "measure", lambda claim, *_, **__: asked.append(claim))
    claims = [Claim(one(1), (0,)), None, Claim(one(2), (0,)), Claim(one(3), (0,), uses=2.0)]
    found, skipped = measure_all(claims, 1.0)
    assert [claim.operation.site.line for claim in asked] == [1, 3]
    assert len(found) == 4
    assert skipped == 0


def test_what_there_is_no_time_for_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def takes_long(*_: object, **__: object) -> None:
        raise TooLong

    monkeypatch.setattr(replay, "measure", takes_long)
    claim = Claim(operation("aten.sum.default", operand((64, 48), (1, 64))), (0,))
    assert measure_all([claim, None, claim], 1.0) == ([None, None, None], 2)
    assert measure_all([claim], 0.0) == ([None], 1)


# Claims of other kinds


def test_the_sizes_of_what_grows() -> None:
    def growth(first: tuple[int, ...], last: tuple[int, ...], count: int, rounds: int) -> Growth:
        return Growth(
            SITE, "aten.cat.default", operand(last, (1,) * len(last)), count, 1, 0,
            operand(first, (1,) * len(first)), rounds,
        )  # fmt: skip

    assert sizes_of_growth(growth((2, 256), (4, 256), 3, 1)) == (0, 1, [1, 2, 3])
    assert sizes_of_growth(growth((8, 5), (8, 50), 20, 2)) == (1, 5, [0, 5, 10, 15, 20, 25, 30,
                                                                     35, 40, 45])  # fmt: skip
    axis, piece, lengths = sizes_of_growth(growth((2, 4), (1001, 4), 1000, 1)) or (9, 9, [])
    assert (axis, piece, len(lengths)) == (0, 1, 12)
    assert sum(lengths) / 12 == pytest.approx(sum(range(1, 1001)) / 1000, abs=1)
    assert [b - a for a, b in pairwise(lengths)].count(1) == 9
    _, _, lengths = sizes_of_growth(growth((2, 4), (14, 4), 13, 1)) or (9, 9, [])
    assert lengths == sorted(set(lengths))
    assert (lengths[0], lengths[-1]) >= (1, 12)
    assert sizes_of_growth(growth((2, 2), (4, 4), 3, 1)) is None
    assert sizes_of_growth(growth((2,), (3,), 1, 1)) is None


def the_claim(rule: str, program: Callable[[], object]) -> AnyClaim:
    with traced() as run, torch.no_grad():
        program()
    (one,) = run.sightings(rule)
    (claim,) = one.claims
    return claim


def grow() -> None:
    out = torch.empty(0, 256)
    for row in torch.randn(40, 256):
        out = torch.cat([out, row[None]])


def repeat() -> None:
    grid, positions = torch.randn(8, 64, 64), torch.randn(1, 64, 64)
    _ = grid * positions.repeat(8, 1, 1)


def double() -> None:
    _ = torch.randn(128, 128) * torch.ones(128, dtype=torch.float64)


def attend() -> None:
    q, k, v = torch.randn(3, 2, 4, 128, 32)
    _ = torch.softmax(q @ k.transpose(-2, -1) / 32**0.5, -1) @ v


def convolve(weight: torch.memory_format, image: torch.memory_format) -> None:
    model = torch.nn.Conv2d(16, 16, 3).to(memory_format=weight)  # type: ignore[call-overload]
    model(torch.randn(2, 16, 32, 32).contiguous(memory_format=image))


def lose() -> None:
    image = torch.randn(2, 16, 32, 32).contiguous(memory_format=torch.channels_last)
    model = torch.nn.Conv2d(16, 16, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    model(model(image).contiguous())


def copy_again() -> None:
    weight = torch.randn(256, 256)
    for _ in range(4):
        weight.t().contiguous()


def copy_elsewhere() -> None:
    turned = torch.randn(256, 256).t()
    turned.contiguous()
    turned.contiguous()


def reshape() -> None:
    torch.randn(64, 1024).t().reshape(-1)


@pytest.mark.parametrize(
    ("rule", "program"),
    [
        ("concat-in-loop", grow),
        ("repeat-instead-of-expand", repeat),
        ("implicit-float64", double),
        ("naive-attention", attend),
        ("channels-last-mismatch", lambda: convolve(torch.channels_last, torch.contiguous_format)),
        ("channels-last-mismatch", lambda: convolve(torch.contiguous_format, torch.channels_last)),
        ("channels-last-mismatch", lose),
        ("contiguous-in-loop", copy_again),
        ("hidden-layout-copy", reshape),
        ("redundant-contiguous", copy_elsewhere),
    ],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_what_is_advised_computes_the_same(rule: str, program: Callable[[], object]) -> None:
    measured = measure(the_claim(rule, program), BUDGET)
    assert measured is not None
    assert measured.same
    assert measured.as_is > 0
    assert measured.alternative > 0


def test_what_costs_nothing_is_not_charged() -> None:
    for rule, program in (("concat-in-loop", grow), ("channels-last-mismatch", lose)):
        made = experiment(the_claim(rule, program))
        assert made is not None
        assert made.conversion is None
    made = experiment(the_claim("concat-in-loop", grow))
    assert made is not None
    assert made.events == 12
    charged = experiment(the_claim("contiguous-in-loop", copy_again))
    assert charged is not None
    assert charged.conversion is not None
    assert charged.uses == 4


@pytest.mark.parametrize("change", ["mask", "dropout", "bias", "axis"])
def test_attention_that_does_more_than_scale_its_scores_is_not_replayed(change: str) -> None:
    def attend_otherwise() -> None:
        q, k, v = torch.randn(3, 2, 4, 128, 32)
        scores = q @ k.transpose(-2, -1)
        if change == "mask":
            scores = scores.masked_fill(torch.ones(128, 128).triu(1) > 0, -1e9)
        if change == "bias":
            scores = scores + torch.randn(128, 128)
        weights = torch.softmax(scores, -2 if change == "axis" else -1)
        _ = (torch.dropout(weights, 0.1, True) if change == "dropout" else weights) @ v

    with traced() as run:
        attend_otherwise()
    (one,) = run.sightings("naive-attention")
    assert one.claims == ()


def test_the_scale_of_the_scores_is_kept() -> None:
    claim = the_claim("naive-attention", attend)
    assert isinstance(claim, FuseAttention)
    assert claim.attention.scale == pytest.approx(32**-0.5)


def test_attention_that_no_fused_kernel_takes_is_not_replayed() -> None:
    claim = the_claim("naive-attention", attend)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert measure(claim, BUDGET) is None


def test_copies_that_nothing_elementwise_takes_are_not_replayed() -> None:
    with traced() as run:
        (torch.randn(1, 128, 128).repeat(4, 1, 1) @ torch.randn(4, 128, 128)).sum()
    (one,) = run.sightings("repeat-instead-of-expand")
    assert one.claims == ()


def test_a_lost_format_is_told_once() -> None:
    with traced() as run, torch.no_grad():
        lose()
    (one,) = run.sightings("channels-last-mismatch")
    assert one.site.line == line_of(lose, "model(model(image)")
    assert [part.vanishes for part in one.claims[0].parts] == [True, False]  # type: ignore[union-attr]
