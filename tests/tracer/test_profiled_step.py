"""One step under torch's profiler: which one it is, what it shows, and that it disturbs nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from memlint.tracer import profiling
from memlint.tracer.callsite import CallSites
from memlint.tracer.inner_copies import inner_copies
from memlint.tracer.loading import Loading
from memlint.tracer.located import Located, located
from memlint.tracer.profiling import FORKED, NO_PROFILER, OTHER_PROFILER, StepProfiler
from memlint.tracer.session import NO_STEP, NOT_ASKED
from memlint.tracer.step_profile import profile_of
from tests.tracer.tracing import Run, line_of, traced

A = torch.ones(8, 8)
Within = Callable[[int], object]


def _train(
    count: int, *, warmup: int = 1, steps: int | None = None, within: Within = lambda step: None
) -> Run:
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with traced(warmup=warmup, steps=steps, profile_step=True) as run:
        for step in range(count):
            loss = torch.tanh(model(A)).sum()
            within(step)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return run


def _profiled(run: Run) -> StepProfiler:
    assert run.session.profiled is not None, run.session.not_profiled
    return run.session.profiled


def _located(run: Run) -> list[Located]:
    profiled = _profiled(run)
    return list(located(profiled.events(), profiled.operations()))


def _is_off() -> bool:
    starters = (torch.autograd.profiler._enable_profiler, torch.autograd.profiler._prepare_profiler)
    mine = any(one.__module__ == "memlint.tracer.profiling" for one in starters)
    return not mine and not torch._C._autograd._profiler_enabled()


# Which step


def test_where_all_steps_are_noted_it_is_the_second_one() -> None:
    seen = []
    run = _train(5, within=lambda step: seen.append(torch._C._autograd._profiler_enabled()))
    assert seen == [False, False, True, False, False]
    assert run.session.steps == 4
    assert run.only("tanh").count == 4
    assert len(run.session.durations) == 3  # that of the profiled one is not told


def test_it_is_the_step_after_those_that_are_noted() -> None:
    seen = []
    run = _train(
        5, steps=2, within=lambda step: seen.append(torch._C._autograd._profiler_enabled())
    )
    assert seen == [False, False, False, True, False]
    assert (run.session.steps, len(run.session.durations)) == (2, 2)
    assert run.only("tanh").count == 2
    assert sum(one.event.name == "aten::tanh" and not one.depth for one in _located(run)) == 1


@pytest.mark.parametrize(("count", "steps"), [(1, None), (2, None), (3, 2)])
def test_there_may_be_no_further_step(count: int, steps: int | None) -> None:
    run = _train(count, steps=steps)
    assert run.session.profiled is None
    assert run.session.not_profiled == NO_STEP
    assert _is_off()


def test_it_can_be_left_out() -> None:
    with traced() as run:
        for _ in range(4):
            torch.tanh(A)
            run.session.step()
    assert run.session.profiled is None
    assert run.session.not_profiled == NOT_ASKED


def test_explicit_steps() -> None:
    with traced(warmup=1, profile_step=True) as run:
        for _ in range(4):
            torch.tanh(A)
            run.session.step()
    names = [one.event.name for one in _located(run) if not one.depth]
    assert names == ["aten::tanh"]


# The operations of the tracer and the events of the profiler


def _spelled(one: Located) -> str:
    """The name of the tracer's operation as the profiler spells it."""
    assert one.operation is not None
    namespace, short, *_ = one.operation.name.split(".")
    return f"{namespace}::{short}"


class _Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        image = torch.relu(self.norm(self.conv(x)))
        tokens: torch.Tensor = checkpoint(self.body, image.flatten(2), use_reentrant=False)
        return tokens.sum()


def test_each_event_is_that_of_its_operation() -> None:
    torch.manual_seed(0)
    model = _Mixed()
    optimizer = torch.optim.AdamW(model.parameters())
    with traced(warmup=1, profile_step=True) as run:
        for _ in range(3):
            model(torch.randn(2, 1, 6, 6)).backward()
            optimizer.step()
            optimizer.zero_grad()
    placed = [one for one in _located(run) if one.depth == 0 and one.operation is not None]
    assert len(placed) > 100
    assert [one.event.name for one in placed] == [_spelled(one) for one in placed]
    assert {one.phase for one in placed} == {"forward", "backward", "optimizer"}
    # Both steps that were noted ran the same operations.
    assert len(placed) * 2 == run.session.recorder.seen


def test_events_under_inference_mode() -> None:
    model = _Mixed().eval()
    x = torch.randn(2, 1, 6, 6)
    with traced(warmup=1, profile_step=True) as run, torch.inference_mode():
        for _ in range(4):
            torch.relu(model.norm(model.conv(x)))
            run.session.step()
    placed = [one for one in _located(run) if one.depth == 0]
    names = [one.event.name for one in placed]
    assert (names[0], names[-1]) == ("aten::convolution", "aten::relu")
    assert names == [_spelled(one) for one in placed]


def test_events_of_backward_stand_at_their_forward_line() -> None:
    run = _train(3)
    (event,) = [one for one in _located(run) if one.event.name == "aten::tanh_backward"]
    assert event.operation is not None
    assert event.operation.site.line == line_of(_train, "torch.tanh(model(A))")
    assert event.phase == "backward"


# What it shows


def _convolve(weight: torch.memory_format, image: torch.memory_format) -> Run:
    conv = nn.Conv2d(64, 64, 3).to(memory_format=weight)  # type: ignore[call-overload]
    x = torch.randn(1, 64, 16, 16).contiguous(memory_format=image)
    with traced(warmup=1, profile_step=True) as run:
        for _ in range(4):
            conv(x)
            run.session.step()
    return run


NCHW, NHWC = torch.contiguous_format, torch.channels_last


@pytest.mark.parametrize(("weight", "image", "index"), [(NCHW, NHWC, 1), (NHWC, NCHW, 0)])
def test_a_convolution_copies_what_does_not_have_the_format(
    weight: torch.memory_format, image: torch.memory_format, index: int
) -> None:
    run = _convolve(weight, image)
    (copy,) = inner_copies(_located(run), [])
    assert copy.operation.site.line == line_of(_convolve, "conv(x)")
    assert (copy.index, copy.count, copy.kernel) == (index, 1, "aten::copy_")
    assert copy.operand == copy.operation.operands[index]
    assert copy.operand.is_contiguous
    assert copy.copied is not None
    assert not copy.copied.is_contiguous
    assert 0 < copy.seconds < copy.whole
    run.others = [copy]
    (told,) = run.sightings("channels-last-mismatch")
    assert told.site == copy.operation.site
    assert told.nbytes == 2 * copy.operand.array.nbytes
    assert ("weight" if index else "input") in told.message


@pytest.mark.parametrize("form", [NCHW, NHWC])
def test_a_convolution_of_one_format_copies_nothing(form: torch.memory_format) -> None:
    assert inner_copies(_located(_convolve(form, form)), []) == []


def _keep(kept: list[torch.Tensor]) -> None:
    kept.append(torch.ones(1 << 20))
    torch.full((1 << 18,), 2.0)


def test_the_holders_of_the_peak() -> None:
    kept: list[torch.Tensor] = []
    with traced(warmup=1, profile_step=True) as run:
        for _ in range(4):
            _keep(kept)
            run.session.step()
    profiled = _profiled(run)
    told = profile_of(
        profiled.events(),
        profiled.kernels(),
        profiled.operations(),
        began=profiled.begins_at,
        seconds=profiled.seconds,
        shown=lambda path: path,
    )
    (memory,) = told["memory"]
    assert memory["device"] == "cpu"
    first, second = memory["holders"]
    assert (first["operation"], first["bytes"]) == ("aten::ones", 4 << 20)
    assert first["site"]["line"] == line_of(_keep, "torch.ones")
    assert (second["operation"], second["bytes"]) == ("aten::full", 1 << 20)
    assert memory["peak_bytes"] == 5 << 20
    assert memory["points"][-1][1] == 4 << 20
    assert told["phases"][0]["operations"] == 2


def test_a_batch_is_waited_for_in_the_phase_of_loading() -> None:
    model = nn.Linear(8, 1)
    loader = DataLoader(TensorDataset(torch.ones(40, 8)), batch_size=8)
    with traced(warmup=1, profile_step=True) as run:
        for (x,) in loader:
            torch.tanh(model(x))
    loading = [one for one in _located(run) if one.phase == "loading"]
    (wait,) = [one for one in loading if one.depth == 0]
    assert wait.event.name.startswith("enumerate(DataLoader)")
    # What collates the batch lies within.
    assert {one.event.name for one in loading if one.depth == 1} >= {"aten::stack"}


def test_the_profiled_step_is_no_time_of_waiting() -> None:
    now = [0.0]
    loading = Loading(CallSites([]), lambda: now[0])

    def batch(wait: float, work: float) -> None:
        loading.begins()
        now[0] += wait
        loading.ends()
        now[0] += work

    batch(1.0, 2.0)
    loading.pauses()
    batch(50.0, 20.0)
    loading.resumes()
    batch(1.0, 2.0)
    batch(1.0, 2.0)
    batch(9.0, 9.0)  # counts once the next one is asked for
    waited = [(one.count, one.waited, one.elapsed) for one in loading.records()]
    assert waited == [(3, 3.0, 7.0)]


# What is in its way


def test_an_exception_leaves_no_profiler_behind() -> None:
    def fail(step: int) -> None:
        if step == 2:
            assert torch._C._autograd._profiler_enabled()
            raise KeyError(step)

    with pytest.raises(KeyError):
        _train(4, within=fail)
    assert _is_off()


def test_a_program_that_profiles_itself_is_left_alone() -> None:
    with profile(activities=[ProfilerActivity.CPU]) as own:
        run = _train(4)
    assert run.session.profiled is None
    assert run.session.not_profiled == OTHER_PROFILER
    assert "aten::tanh" in {one.key for one in own.key_averages()}


def test_the_profiler_gives_way_to_one_of_the_program() -> None:
    own = profile(activities=[ProfilerActivity.CPU])

    def start(step: int) -> None:
        if step == 2:
            own.start()
        torch.exp(A)
        if step == 2:
            own.stop()

    run = _train(5, within=start)
    assert "aten::exp" in {one.key for one in own.key_averages()}
    # The next step is tried.
    assert sum(one.event.name == "aten::exp" and not one.depth for one in _located(run)) == 1
    assert len(run.session.durations) == 2
    assert _is_off()


def _profile_a_sum(own: list[object]) -> None:
    try:
        with profile(activities=[ProfilerActivity.CPU]) as mine:
            A.sum()
        own.append({one.key for one in mine.key_averages()})
    except RuntimeError as error:
        own.append(error)


def test_the_profiler_gives_way_to_one_on_another_thread() -> None:
    own: list[object] = []

    def start(step: int) -> None:
        if step != 2:
            return
        thread = threading.Thread(target=_profile_a_sum, args=(own,))
        thread.start()
        while thread.is_alive():
            torch.exp(A)

    run = _train(5, within=start)
    assert isinstance(own[0], set)
    assert "aten::sum" in own[0]
    assert _profiled(run).hindrance == ""
    assert len(run.session.durations) == 2


def test_another_thread_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "_PATIENCE", 0.05)
    own: list[object] = []

    def start(step: int) -> None:
        if step == 2:
            thread = threading.Thread(target=_profile_a_sum, args=(own,))
            thread.start()
            thread.join()

    _train(5, within=start)
    assert [str(one) for one in own] == [profiling.BUSY]
    assert _is_off()


def test_a_step_of_too_many_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "MOST_OPERATIONS", 5)
    run = _train(6)
    assert run.session.profiled is None
    assert run.session.not_profiled == profiling.TOO_LONG
    assert _is_off()


def test_a_child_is_not_profiled() -> None:
    status = []

    def fork(step: int) -> None:
        if step == 2:
            child = os.fork()
            if child == 0:
                os._exit(int(torch._C._autograd._profiler_enabled()))
            status.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    run = _train(4, within=fork)
    assert status == [0]
    assert _profiled(run).hindrance == ""
    assert _train(3, within=fork).session.not_profiled == FORKED


def test_a_child_that_goes_on_is_not_profiled() -> None:
    with traced(warmup=0, profile_step=True) as run:
        child = os.fork()
        if child == 0:
            for _ in range(3):
                run.session.step()
            os._exit(int(torch._C._autograd._profiler_enabled()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_torch_without_a_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch._C._profiler, "_RecordFunctionFast")
    run = _train(4)
    assert run.session.profiled is None
    assert run.session.not_profiled == NO_PROFILER
    assert run.session.steps == 3


def test_what_the_program_says_meanwhile_is_heard(capfd: pytest.CaptureFixture[str]) -> None:
    _train(4, within=lambda step: os.write(2, b"step\n"))
    assert capfd.readouterr().err == "step\n" * 4


def test_nothing_is_left_open() -> None:
    before = len(os.listdir("/dev/fd"))
    _train(4)
    assert len(os.listdir("/dev/fd")) == before


def test_a_profiler_of_the_program_that_warms_up_is_left_alone() -> None:
    # One more profiler then ends the process.
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    own = profile(activities=[ProfilerActivity.CPU], schedule=schedule)
    with traced(warmup=1, profile_step=True) as run, own:
        for _ in range(6):
            model(torch.ones(4, 8)).sum().backward()
            optimizer.step()
            own.step()
    assert any(one.key == "aten::addmm" for one in own.key_averages())
    assert run.session.not_profiled == OTHER_PROFILER
