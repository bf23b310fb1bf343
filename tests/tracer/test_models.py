"""MEM217, MEM302, MEM508 and MEM515."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from memlint.linter.rules import all_rules
from memlint.tracer.callsite import CallSites
from memlint.tracer.loading import Loading
from memlint.tracer.observe import observe
from memlint.tracer.records import Site, Waiting
from memlint.tracer.sightings import Sighting
from tests.tracer.tracing import line_of, traced

Q = torch.randn(2, 4, 160, 32)

# MEM508


def test_attention_that_stores_its_scores() -> None:
    def program() -> None:
        scores = Q @ Q.transpose(-2, -1) / 32**0.5
        weights = torch.softmax(scores, -1)
        weights @ Q

    with traced() as run:
        program()
    (one,) = run.sightings("naive-attention")
    assert one.site.line == line_of(program, "torch.softmax")
    assert one.nbytes == 2 * 4 * 160 * 160 * 4
    assert run.sightings("attention-math-fallback") == []


def test_fused_attention_is_sound() -> None:
    with traced() as run:
        functional.scaled_dot_product_attention(Q, Q, Q)
    assert run.sightings("naive-attention") == []
    assert run.sightings("attention-math-fallback") == []


def test_a_softmax_over_classes_is_no_attention() -> None:
    model = nn.Linear(160, 160)
    with traced() as run:
        torch.softmax(model(torch.randn(8, 160, 160)), -1)
    assert run.sightings("naive-attention") == []


# MEM515


def test_attention_that_no_kernel_takes_because_of_its_strides() -> None:
    def program() -> None:
        turned = torch.randn(2, 4, 32, 160).transpose(-2, -1)
        functional.scaled_dot_product_attention(turned, Q, Q)

    with traced() as run:
        program()
    (one,) = run.sightings("attention-math-fallback")
    assert one.site.line == line_of(program, "functional.scaled")
    assert "is not the fastest in memory" in one.message
    assert [site.line for site, _ in one.related] == [line_of(program, "transpose(-2, -1)")]
    assert run.sightings("naive-attention") == []


def test_attention_that_drops_weights_has_no_kernel_on_a_cpu() -> None:
    q = torch.randn(2, 160, 4, 32).transpose(1, 2)
    with traced() as run:
        functional.scaled_dot_product_attention(q, q, q, dropout_p=0.1)
    assert run.named("_safe_softmax")
    assert run.sightings("attention-math-fallback") == []


def test_what_the_fallback_copies_is_told_of_with_the_fallback() -> None:
    turned = torch.randn(2, 32, 4, 160).permute(0, 2, 3, 1)

    def written_out() -> None:
        queries = torch.randn(2, 160, 4, 32).transpose(1, 2)
        torch.softmax(queries @ Q.transpose(-2, -1), -1) @ Q

    with traced() as run:
        functional.scaled_dot_product_attention(turned, Q, Q)
    assert any(one.hidden for one in run.operations)
    assert len(run.sightings("attention-math-fallback")) == 1
    assert run.sightings("hidden-layout-copy") == []
    with traced() as run:
        written_out()
    assert run.sightings("hidden-layout-copy")


# MEM302


class Net(nn.Module):
    def __init__(self, *, drops: bool) -> None:
        super().__init__()
        self.first = nn.Conv2d(8, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.drops = drops

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        if self.drops:
            x = x.contiguous()
        out: torch.Tensor = self.second(x)
        return out


def _converted(net: nn.Module) -> nn.Module:
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


IMAGES = torch.randn(2, 8, 48, 48).to(memory_format=torch.channels_last)


def test_a_format_that_is_lost_and_paid_for_again() -> None:
    net = _converted(Net(drops=True))
    with traced() as run, torch.no_grad():
        net(IMAGES)
    (one,) = run.sightings("channels-last-mismatch")
    assert one.site.line == line_of(Net.forward, "x.contiguous()")
    assert one.related[0][0].line == line_of(Net.forward, "self.second(x)")


def test_a_sum_whose_first_operand_is_row_major_loses_the_format() -> None:
    net, bias = _converted(Net(drops=False)), torch.randn(2, 8, 48, 48)

    def program() -> None:
        y = bias + net(IMAGES)
        net(y)

    with traced() as run, torch.no_grad():
        program()
    assert line_of(program, "bias + net") in {
        one.site.line for one in run.sightings("channels-last-mismatch")
    }


def test_a_format_that_is_kept_is_sound() -> None:
    net = _converted(Net(drops=False))
    with traced() as run, torch.no_grad():
        net(IMAGES)
    assert run.sightings("channels-last-mismatch") == []


def test_a_network_that_is_row_major_throughout_is_sound() -> None:
    with traced() as run, torch.no_grad():
        Net(drops=True)(IMAGES.contiguous())
    assert run.sightings("channels-last-mismatch") == []


def test_strides_that_fit_both_formats_are_not_called_lost() -> None:
    net = _converted(nn.Sequential(nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 1)))
    narrow = torch.randn(4096, 8, 1, 1)
    with traced() as run, torch.no_grad():
        net(narrow.to(memory_format=torch.channels_last).contiguous())
        net(torch.randn(1, 8, 64, 64)[0].unsqueeze(0).to(memory_format=torch.channels_last))
    assert run.sightings("channels-last-mismatch") == []


# MEM217


def told(waiting: Waiting) -> list[Sighting]:
    rule = all_rules().rules["MEM217"]()
    return list(observe([rule], [], [waiting]))


SITE = Site("train.py", "train", 9)


def test_a_loop_that_waits_for_its_batches() -> None:
    (one,) = told(Waiting(SITE, 10, 0.5, 1.0, 0, pins=False))
    assert "50% of the time" in one.message
    assert "50 ms each" in one.message
    assert "num_workers" in one.help


def test_workers_that_are_too_slow() -> None:
    (one,) = told(Waiting(SITE, 10, 0.5, 1.0, 4, pins=True))
    assert "4 workers" in one.message
    assert "num_workers" not in one.help


def test_a_loop_that_computes_is_sound() -> None:
    assert told(Waiting(SITE, 10, 0.1, 1.0, 0, pins=False)) == []
    assert told(Waiting(SITE, 3, 0.9, 1.0, 0, pins=False)) == []
    assert told(Waiting(SITE, 10, 0.0, 0.0, 0, pins=False)) == []


def test_what_may_be_the_tracer_s_own_time_is_not_held_against_a_loader() -> None:
    assert told(Waiting(SITE, 10, 0.5, 1.0, 0, pins=False, operations=10_001)) == []
    assert told(Waiting(SITE, 10, 0.5, 1.0, 0, pins=False, operations=9_000))


def test_waiting_is_what_passes_between_asking_and_getting() -> None:
    times = iter([10.0, 10.5, 12.0, 12.25, 13.0, 20.0])
    loading = Loading(CallSites([]), clock=lambda: next(times))
    for _ in range(3):
        loading.begins()
        loading.ends()
    loading.ends()
    (one,) = loading.records()
    # Nothing was asked for after the last one: it may have been the end.
    assert (one.count, one.waited, one.elapsed) == (2, 0.75, 2.25)


def test_the_end_of_a_loader_is_no_wait_for_a_batch() -> None:
    class Batches:
        _num_workers, _num_yielded = 0, 0

        def __next__(self) -> None:
            loading.begins()
            loading.ends()
            self._num_yielded += self._num_yielded < 3

    times = iter(range(100))
    loading = Loading(CallSites([]), clock=lambda: float(next(times)))
    for _ in range(2):
        batches = Batches()
        for _ in range(4):
            next(batches)  # type: ignore[call-overload]
    (one,) = loading.records()
    assert (one.count, one.waited) == (6, 6.0)


def test_weights_of_attention_that_are_wanted_have_to_be_stored() -> None:
    queries, keys, values = (torch.randn(2, 4, 128, 32) for _ in range(3))

    def attend() -> tuple[torch.Tensor, torch.Tensor]:
        weights = torch.softmax(queries @ keys.transpose(-2, -1), -1)
        return weights @ values, (weights * (weights + 1e-9).log()).sum(-1)

    with traced() as run:
        attend()
    assert run.sightings("naive-attention") == []


def test_a_format_is_paid_again_only_for_what_has_lost_it() -> None:
    images = torch.randn(4, 3, 96, 96).to(memory_format=torch.channels_last)
    others = torch.randn(4, 3, 128, 128)
    with traced() as run:
        torch.exp(images.contiguous())
        others.to(memory_format=torch.channels_last)
    assert run.sightings("channels-last-mismatch") == []
