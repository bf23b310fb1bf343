"""Benches that need CUDA do what they say, as far as a CPU can tell.

Their forms take the device from the size alone, so that both can be run once on the CPU; on torch's
`meta` device, which holds no numbers, it shows where each result lies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from memlint.bench.agreement import agree
from memlint.bench.collect import RuleBench, rule_benches
from memlint.bench.pair import Pair, Size
from memlint.bench.plan import Plan
from memlint.linter.rules import all_rules

torch = pytest.importorskip("torch")

BENCHES = [one for one in rule_benches(all_rules().rules.values()) if "cuda" in one.declared.needs]
ON_CUDA = pytest.mark.parametrize("one", BENCHES, ids=lambda one: f"{one.rule.name}-{one.variant}")


@pytest.fixture(autouse=True)
def pinning_without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch refuses to pin memory without an accelerator."""
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor.clone())


def stated(one: RuleBench, device: str) -> Pair:
    smallest = min(one.declared.sizes.full)
    size = Size(smallest, Plan().dtype_of(one.declared), device, threads=1)
    found = getattr(one.rule(), one.method)(size)
    assert isinstance(found, Pair)
    return found


def tensors(result: Any) -> Iterator[Any]:
    if isinstance(result, tuple):
        for part in result:
            yield from tensors(part)
    else:
        yield result


def test_the_rules_about_transfers_have_such_benches() -> None:
    assert {"missing-pin-memory", "blocking-transfer", "create-then-move", "pin-then-copy",
            "cast-before-transfer"} <= {one.rule.name for one in BENCHES}  # fmt: skip


@ON_CUDA
def test_both_forms_give_the_same(one: RuleBench) -> None:
    pair = stated(one, "cpu")
    as_is, alternative = pair.as_is(*pair.operands()), pair.alternative(*pair.operands())
    assert as_is is not None
    if pair.comparable:
        assert agree(as_is, alternative)
    for first, second in zip(tensors(as_is), tensors(alternative), strict=True):
        assert (first.shape, first.dtype) == (second.shape, second.dtype)


@ON_CUDA
def test_operands_are_the_same_each_time(one: RuleBench) -> None:
    operands = stated(one, "cpu").operands
    assert agree(operands(), operands())


@ON_CUDA
def test_results_lie_on_the_device_of_the_run(one: RuleBench) -> None:
    pair = stated(one, "meta")
    for form in (pair.as_is, pair.alternative):
        assert {tensor.device.type for tensor in tensors(form(*pair.operands()))} == {"meta"}


@ON_CUDA
def test_the_device_is_waited_for(one: RuleBench, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waited.append("cuda"))
    smallest = min(one.declared.sizes.full)
    size = Size(smallest, Plan().dtype_of(one.declared), "cuda", threads=1)
    getattr(one.rule(), one.method)(size).settle()
    assert waited == ["cuda"]


@ON_CUDA
def test_they_are_run_on_cuda_even_if_no_device_is_named(one: RuleBench) -> None:
    assert {size.device for size in Plan(full=True).sizes(one.declared)} == {"cuda"}
    assert {size.device for size in Plan(device="cuda:1").sizes(one.declared)} == {"cuda:1"}
