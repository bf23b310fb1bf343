"""MEM205, MEM307, MEM501, MEM502 and MEM506 on small programs that run."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from memlint.tracer.findings import merged
from memlint.tracer.operands import megabytes
from memlint.tracer.records import Growth
from tests.tracer.tracing import line_of, traced

A = torch.randn(256, 256)


# MEM501


def test_an_array_that_grows_by_concatenation() -> None:
    def program() -> None:
        out = torch.empty(0, 256)
        for n in range(40):
            out = torch.cat([out, A[n : n + 1]])

    with traced() as run:
        program()
    (one,) = run.sightings("concat-in-loop")
    assert one.site.line == line_of(program, "torch.cat")
    # The first one takes up what nothing made here.
    assert one.count == 39
    assert one.nbytes == sum(n * 256 * 4 for n in range(2, 41))


def test_growth_goes_on_over_steps() -> None:
    out = torch.empty(0, 256)
    with traced() as run:
        for n in range(40):
            out = torch.cat([A[n : n + 1], out])
            run.session.step()
    (one,) = run.sightings("concat-in-loop")
    assert (one.count, one.steps) == (39, 39)


def test_growth_that_begins_anew() -> None:
    def collect(rows: int) -> None:
        out = torch.empty(0, 256)
        for n in range(rows):
            out = torch.cat([out, A[n : n + 1]])

    with traced() as run:
        for rows in (10, 30, 20):
            collect(rows)
    (one,) = [other for other in run.others if isinstance(other, Growth)]
    assert (one.count, one.rounds) == (9 + 29 + 19, 3)
    assert one.first is not None
    assert one.first.array.shape == (2, 256)
    assert one.largest.array.shape == (30, 256)


def test_several_arrays_that_grow_in_turns_at_one_place() -> None:
    def longer(old: torch.Tensor) -> torch.Tensor:
        return torch.cat([old, A[:1]])

    caches = [torch.empty(0, 256) for _ in range(3)]
    with traced() as run:
        for _ in range(40):
            caches = [longer(one) for one in caches]
    (one,) = run.sightings("concat-in-loop")
    assert one.site.line == line_of(longer, "torch.cat")
    assert one.count == 3 * 39


def test_parts_that_are_joined_once_are_sound() -> None:
    with traced() as run:
        parts = [A[n : n + 1] for n in range(40)]
        torch.cat(parts)
    assert run.sightings("concat-in-loop") == []


def test_a_window_of_constant_size_is_sound() -> None:
    with traced() as run:
        window = A
        for n in range(40):
            window = torch.cat([window[1:], A[n : n + 1]])
    assert run.sightings("concat-in-loop") == []


def test_concatenations_of_what_others_made_are_sound() -> None:
    with traced() as run:
        for n in range(1, 40):
            joined = torch.cat([A[:n] + 1, A[:n] + 2])
            del joined
    assert run.sightings("concat-in-loop") == []


# MEM506


def test_an_array_from_numpy_makes_the_result_double() -> None:
    def program() -> None:
        scale = torch.from_numpy(np.linspace(0, 1, 256))
        A * scale

    with traced() as run:
        program()
    (one,) = run.sightings("implicit-float64")
    assert one.site.line == line_of(program, "A * scale")


def test_the_place_where_doubles_come_from_is_told() -> None:
    def program() -> None:
        wide = torch.zeros(256, dtype=torch.float64)
        scale = wide + 1
        A * scale

    with traced() as run:
        program()
    (one,) = run.sightings("implicit-float64")
    assert one.related[0][0].line == line_of(program, "torch.zeros")


def test_single_precision_and_numbers_without_axes_are_sound() -> None:
    with traced() as run:
        scale = torch.from_numpy(np.linspace(0, 1, 256)).float()
        A * scale * 2.0 * np.sqrt(2.0) * torch.tensor(2.0, dtype=torch.float64)
    assert run.sightings("implicit-float64") == []


def test_sums_that_are_double_on_purpose_are_sound() -> None:
    total = torch.zeros(256, 256, dtype=torch.float64)
    with traced() as run:
        total.add_(A)
    assert run.sightings("implicit-float64") == []


def test_work_that_is_double_throughout_is_sound() -> None:
    wide = A.double()
    with traced() as run:
        (wide @ wide).sum()
    assert run.sightings("implicit-float64") == []


# MEM205


def test_numbers_that_are_read_one_by_one() -> None:
    def program() -> None:
        for n in range(10):
            A[n].sum().item()

    with traced() as run:
        program()
    (one,) = run.sightings("sync-in-loop")
    assert (one.site.line, one.count) == (line_of(program, ".item()"), 10)
    # A run on a CPU does not tell what it would cost on a GPU.
    assert not one.settled


def test_masks_as_indices_and_conditions() -> None:
    def program() -> None:
        for n in range(4):
            A[n][A[n] > 0]
            if A[n, 0] > 0:
                torch.nonzero(A[n])

    with traced() as run:
        program()
    lines = {one.site.line for one in run.sightings("sync-in-loop")}
    assert {line_of(program, "A[n][A[n] > 0]"), line_of(program, "if A")} <= lines


def test_one_number_a_step_is_sound() -> None:
    model = nn.Linear(256, 1)
    optimizer = torch.optim.Adam(model.parameters())
    with traced() as run:
        for _ in range(5):
            loss = model(A).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            loss.item()
    assert run.sightings("sync-in-loop") == []


def test_indices_that_are_numbers_are_sound() -> None:
    rows = torch.arange(8)
    with traced() as run:
        for _ in range(10):
            A[rows]
    assert run.sightings("sync-in-loop") == []


# MEM307


def test_copies_where_a_view_serves() -> None:
    def program() -> None:
        A[:1].repeat(256, 1) + A

    with traced() as run:
        program()
    (one,) = run.sightings("repeat-instead-of-expand")
    assert one.site.line == line_of(program, "repeat")
    assert one.nbytes == 256 * 256 * 4


def test_copies_of_what_has_more_than_one_element_are_sound() -> None:
    with traced() as run:
        A.repeat(2, 1)
    assert run.sightings("repeat-instead-of-expand") == []


def test_copies_that_are_written_into_are_sound() -> None:
    with traced() as run:
        copies = A[:1].repeat(256, 1)
        copies[3] += 1
    assert run.sightings("repeat-instead-of-expand") == []


def test_other_arrays_that_take_the_place_of_the_copies_may_be_written_into() -> None:
    with traced() as run:
        for _ in range(5):
            A[:1].repeat(256, 1) + A
            others = [A + n for n in range(50)]
            for other in others:
                other.add_(1)
    (one,) = run.sightings("repeat-instead-of-expand")
    assert one.count == 5


def test_what_one_growth_writes_is_told_of_several() -> None:
    part = torch.ones(64, 256)

    def program() -> None:
        for _ in range(3):
            out = torch.empty(0, 256)
            for _ in range(20):
                out = torch.cat([out, part])

    with traced() as run:
        program()
    (one,) = run.sightings("concat-in-loop")
    assert one.count == 3 * 19
    # From the second part on: 2 + 3 + ... + 20 parts of 65,536 bytes.
    assert one.message == (
        "an array is made longer here, 19 times, by copying all that it holds: "
        "13.7 MB are written for one of 1.3 MB"
    )


@pytest.mark.parametrize("foreach", [True, False])
def test_copies_that_are_written_into_by_other_ways_are_sound(foreach: bool) -> None:
    with traced() as run:
        copies = A[:1].repeat(256, 1)
        if foreach:
            torch._foreach_add_([torch.zeros(4), copies], 1.0)
        else:
            torch.add(A, 1.0, out=copies)
    assert run.sightings("repeat-instead-of-expand") == []


def test_copies_that_are_viewed_as_a_view_could_not_be_are_sound() -> None:
    heads = torch.randn(2, 4, 1, 64, 64)
    with traced() as run:
        heads.repeat(1, 1, 4, 1, 1).view(32, 64, 64)
    assert run.sightings("repeat-instead-of-expand") == []


def test_copies_that_are_viewed_as_a_view_could_be_are_not_sound() -> None:
    heads = torch.randn(1, 4, 64, 64)
    with traced() as run:
        heads.repeat(8, 1, 1, 1).view(8, 4, 64 * 64)
    assert len(run.sightings("repeat-instead-of-expand")) == 1


# MEM502


class Meter:
    def __init__(self) -> None:
        self.total: torch.Tensor | float = 0.0


def _evaluate(meter: Meter, *, detach: bool) -> None:
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(A), batch_size=64)
    for _ in range(2):
        for (x,) in loader:
            loss = model(x).square().mean()
            meter.total = meter.total + (loss.detach() if detach else loss)


def test_a_meter_that_holds_the_graph() -> None:
    with traced() as run:
        _evaluate(Meter(), detach=False)
    found = run.sightings("graph-retention")
    summed = line_of(_evaluate, "meter.total = meter.total")
    assert {one.site.line for one in found} == {summed}
    assert all(one.nbytes >= 3 * 64 * 256 * 4 for one in found)
    made = line_of(_evaluate, "model(x)")
    assert {site.line for one in found for site, _ in one.related} == {made}


def test_all_that_a_sum_holds_is_told_by_the_step() -> None:
    with traced() as run:
        _evaluate(Meter(), detach=False)
    (one,) = merged(run.sightings("graph-retention"))
    # Two results of 64 x 256 numbers each, if not more.
    assert one.nbytes // one.steps >= 2 * 64 * 256 * 4
    told = megabytes(one.nbytes / one.steps)
    assert one.message.endswith(
        f"is still alive with its graph: at least {told} more with every step"
    )


def test_each_sum_holds_its_own_graphs() -> None:
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    other = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))

    def program() -> None:
        one: torch.Tensor | float = 0.0
        two: torch.Tensor | float = 0.0
        for _ in range(6):
            one = one + model(A).mean()
            two = two + other(A).mean()
            run.session.step()

    with traced() as run:
        program()
    found = run.sightings("graph-retention")
    first, second = line_of(program, "one = one"), line_of(program, "two = two")
    assert {one.site.line for one in found} == {first, second}
    assert {(one.site.line, site.line) for one in found for site, _ in one.related} == {
        (first, first),
        (second, second),
    }


def test_a_sum_in_place_is_told_as_what_holds_the_graph() -> None:
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU())

    def program() -> None:
        total: torch.Tensor = model(A).mean()
        for _ in range(6):
            loss = model(A).square().mean() + 1
            total += loss
            run.session.step()

    with traced() as run:
        program()
    found = run.sightings("graph-retention")
    assert {one.site.line for one in found} == {line_of(program, "total += loss")}


def test_a_meter_of_an_evaluation_after_a_long_training() -> None:
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with traced() as run:
        for _ in range(20):
            model(A).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        _evaluate(Meter(), detach=False)
    found = run.sightings("graph-retention")
    assert {one.site.line for one in found} == {line_of(_evaluate, "meter.total = meter.total")}


def test_a_meter_of_detached_losses_is_sound() -> None:
    with traced() as run:
        _evaluate(Meter(), detach=True)
    assert run.sightings("graph-retention") == []


def test_detached_results_that_are_collected_are_sound() -> None:
    model = nn.Linear(256, 256)
    kept = []
    with traced() as run:
        for _ in range(6):
            kept.append(model(A).detach())
            run.session.step()
    assert run.sightings("graph-retention") == []


def test_a_sound_training_keeps_nothing() -> None:
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    with traced() as run:
        for _ in range(6):
            loss = model(A).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    assert run.sightings("graph-retention") == []
