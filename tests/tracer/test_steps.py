from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from memlint.tracer.records import BACKWARD, FORWARD, OPTIMIZER, Waiting
from tests.tracer.tracing import Run, line_of, traced

A = torch.ones(8, 8)


def _train(count: int, warmup: int, steps: int | None = None) -> Run:
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with traced(warmup=warmup, steps=steps) as run:
        for _ in range(count):
            loss = torch.tanh(model(A)).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return run


def test_without_any_sign_the_block_is_one_step_and_nothing_warms_up() -> None:
    with traced(warmup=1) as run:
        for _ in range(3):
            torch.exp(A)
    assert run.session.steps == 1
    assert (run.only("exp").count, run.only("exp").steps) == (3, 1)
    assert run.session.durations[0] > 0


def test_steps_of_an_optimizer() -> None:
    run = _train(4, warmup=1)
    assert run.session.steps == 3
    assert (run.only("tanh").count, run.only("tanh").steps) == (3, 3)


def test_only_so_many_steps_are_noted() -> None:
    run = _train(6, warmup=2, steps=3)
    assert run.session.steps == 3
    assert run.only("tanh").count == 3


def test_a_run_that_ends_within_its_warmup_is_judged_by_its_first_step() -> None:
    run = _train(1, warmup=1)
    assert run.session.steps == 1
    assert run.only("tanh").count == 1


def test_phases() -> None:
    run = _train(3, warmup=1)
    assert run.only("tanh").phase == "forward"
    assert run.only("tanh_backward").phase == "backward"
    updates = [one for one in run.operations if one.phase == "optimizer"]
    assert updates
    assert {one.short for one in updates} <= {"add_", "_foreach_add_"}


def test_phases_are_told_in_the_first_step_too() -> None:
    run = _train(1, warmup=1)
    assert any(one.phase == "optimizer" for one in run.operations)


def test_explicit_steps_silence_other_signs() -> None:
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with traced(warmup=1) as run:
        for _ in range(3):
            run.session.step()
            for _ in range(2):
                torch.tanh(model(A)).sum().backward()
                optimizer.step()
    # The first call comes before anything has run, and is the warm-up.
    assert run.session.steps == 2
    assert (run.only("tanh").count, run.only("tanh").steps) == (6, 3)


def test_batches_of_a_loader_are_steps_where_nothing_optimizes() -> None:
    def program() -> None:
        for (x,) in loader:
            torch.tanh(x)

    loader = DataLoader(TensorDataset(torch.ones(40, 8)), batch_size=8)
    with traced(warmup=1) as run:
        program()
    assert run.only("tanh").count == 4
    assert run.only("tanh").steps == 4
    assert {one.phase for one in run.named("stack")} == {"loading"}
    (waiting,) = [one for one in run.others if isinstance(one, Waiting)]
    assert waiting.site.line == line_of(program, "for (x,)")
    assert (waiting.workers, waiting.pins) == (0, False)
    assert 0 < waiting.waited <= waiting.elapsed


def test_batches_of_an_evaluation_are_steps_beside_those_of_an_optimizer() -> None:
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.ones(40, 8)), batch_size=8)
    with traced(warmup=1) as run:
        for (x,) in loader:
            torch.tanh(model(x)).sum().backward()
            optimizer.step()
        for (x,) in loader:
            torch.sigmoid(model(x)).sum().item()
    # The first of five is the warm-up.
    assert (run.only("tanh").count, run.only("tanh").steps) == (4, 4)
    assert (run.only("sigmoid").count, run.only("sigmoid").steps) == (5, 5)


def test_a_loader_s_settings_are_read() -> None:
    loader = DataLoader(TensorDataset(torch.ones(32, 8)), batch_size=8, num_workers=1)
    with traced() as run:
        for (x,) in loader:
            torch.tanh(x)
    (waiting,) = [one for one in run.others if isinstance(one, Waiting)]
    assert waiting.workers == 1


def test_what_lies_between_two_loops_is_no_step() -> None:
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.ones(40, 8)), batch_size=8)
    with traced() as run:
        for _ in range(2):
            for (x,) in loader:
                torch.tanh(model(x)).sum().backward()
                optimizer.step()
            for (x,) in loader:
                torch.sigmoid(model(x))
            torch.exp(A)
    assert run.session.steps == len(run.session.durations) == 20


def test_a_loader_that_is_begun_anew_where_it_ends() -> None:
    loader = DataLoader(TensorDataset(torch.ones(16, 8)), batch_size=8)
    with traced() as run:
        batches = iter(loader)
        for _ in range(5):
            try:
                (x,) = next(batches)
            except StopIteration:
                batches = iter(loader)
                (x,) = next(batches)
            torch.tanh(x)
    # The last one has not ended.
    assert run.session.steps == 4
    assert (run.only("tanh").count, run.only("tanh").steps) == (5, 5)


def test_steps_told_where_an_optimizer_has_ended_them() -> None:
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with traced() as run:
        for _ in range(4):
            torch.tanh(model(A)).sum().backward()
            optimizer.step()
            run.session.step()
    assert run.session.steps == 4
    assert (run.only("tanh").count, run.only("tanh").steps) == (4, 4)


class Around(torch.optim.Optimizer):
    """An optimizer that leaves the work to another one."""

    def __init__(self, base: torch.optim.Optimizer) -> None:
        super().__init__(base.param_groups, {})
        self.base = base

    def step(self, closure: Any = None) -> Any:
        return self.base.step(closure)


def test_an_optimizer_around_another_makes_one_step() -> None:
    optimizer = Around(torch.optim.SGD([nn.Parameter(torch.ones(4))], lr=0.1))
    with traced(warmup=1) as run:
        for _ in range(5):
            optimizer.step()
    assert run.session.steps == 4


def test_a_closure_of_an_optimizer_is_no_part_of_its_work() -> None:
    weight = nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([weight], lr=0.1, foreach=False)

    def closure() -> float:
        weight.grad = None
        weight.exp().sum().backward()
        return 0.0

    with traced(warmup=0) as run:
        for _ in range(3):
            optimizer.step(closure)
    assert run.only("exp").phase == FORWARD
    assert {one.phase for one in run.named("mul")} == {BACKWARD}
    assert run.only("add_").phase == OPTIMIZER
