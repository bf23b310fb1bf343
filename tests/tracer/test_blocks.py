"""How traced blocks are entered and left, and what decorators do."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

import memlint
from memlint.tracer import Trace, TraceError

A = torch.ones(16, 16)


def quiet(**options: Any) -> Trace:
    return memlint.trace(quiet=True, replay=False, **options)


def seen(trace: Trace) -> set[str]:
    return {one.short for one in trace.operations}


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    methods = dict(vars(torch.Tensor)), torch.jit.trace
    yield
    assert _get_current_dispatch_mode_stack() == []
    assert (dict(vars(torch.Tensor)), torch.jit.trace) == methods
    with quiet():
        pass


def test_blocks_do_not_nest() -> None:
    with quiet() as outer:
        with pytest.raises(TraceError, match="open already"), quiet():
            pass
        torch.exp(A)
    assert seen(outer) == {"exp"}


def test_a_trace_is_used_once() -> None:
    with quiet() as trace:
        pass
    with pytest.raises(TraceError, match="make another one"), trace:
        pass


def test_no_second_thread_traces() -> None:
    told = []

    def other() -> None:
        with pytest.raises(TraceError, match="open already") as caught, quiet():
            pass
        told.append(str(caught.value))

    with quiet():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(told) == 1


def test_a_thread_of_its_own_can_be_traced() -> None:
    traces = []

    def work() -> None:
        with quiet() as trace:
            torch.exp(A).t().contiguous()
        traces.append(trace)

    thread = threading.Thread(target=work)
    thread.start()
    torch.sin(A)
    thread.join()
    assert seen(traces[0]) == {"exp", "t", "clone"}


def test_what_fails_on_entry_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from memlint.tracer import session

    def failing(mode: Any) -> None:
        raise LookupError

    monkeypatch.setattr(session, "Apart", failing)
    with pytest.raises(LookupError), quiet():
        pass
    monkeypatch.undo()
    with quiet() as trace:
        torch.exp(A)
    assert seen(trace) == {"exp"}


def test_the_evidence_of_a_failed_block_is_there() -> None:
    def failing() -> None:
        with trace:
            torch.exp(A)
            A @ torch.ones(3, 3)

    trace = quiet()
    with pytest.raises(RuntimeError, match="mat1"):
        failing()
    assert seen(trace) == {"exp", "ones"}


@pytest.mark.skipif(os.name == "nt", reason="no such signals")
def test_an_interrupt_leaves_nothing() -> None:
    def interrupted() -> None:
        with trace:
            torch.exp(A)
            os.kill(os.getpid(), signal.SIGINT)
            while True:
                torch.sin(A)

    trace = quiet()
    # Shells have what they start in the background ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    finally:
        signal.signal(signal.SIGINT, before)
    assert "exp" in seen(trace)


def test_a_generator_may_hold_the_block_open() -> None:
    traces = []

    def batches() -> Iterator[int]:
        with quiet() as trace:
            traces.append(trace)
            yield from range(3)

    for one in batches():
        torch.full((2,), one)
    left = batches()
    next(left)
    torch.exp(A)
    left.close()
    assert [seen(one) for one in traces] == [{"full"}, {"exp"}]


class Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def test_a_mode_that_outlives_the_block_stays() -> None:
    trace, counting = quiet(), Counting()
    trace.__enter__()
    counting.__enter__()
    torch.exp(A)
    trace.__exit__(None, None, None)
    assert _get_current_dispatch_mode_stack() == [counting]
    torch.sin(A)
    counting.__exit__(None, None, None)
    assert counting.count == 2
    assert seen(trace) == {"exp"}


def test_a_block_that_another_thread_ends_spares_that_thread_s_modes() -> None:
    entered, done = threading.Event(), threading.Event()
    trace = quiet()

    def open_and_wait() -> None:
        trace.__enter__()
        torch.exp(A)
        entered.set()
        done.wait()
        torch.sin(A)

    thread = threading.Thread(target=open_and_wait)
    thread.start()
    entered.wait()
    with Counting() as counting:
        trace.__exit__(None, None, None)
        assert _get_current_dispatch_mode_stack() == [counting]
    done.set()
    thread.join()
    assert seen(trace) == {"exp"}


def test_what_the_tracer_computes_is_hidden_from_the_program_s_modes() -> None:
    turned = torch.ones(256, 256).t()

    def program(*, watched: bool) -> int:
        watch = memlint.trace(quiet=True, replay_budget=0.1) if watched else nullcontext()
        with Counting() as counting, torch.autocast("cpu"), torch.device("meta"), watch:
            turned.sum(1)
        return counting.count

    assert program(watched=True) == program(watched=False) == 1
    trace = memlint.trace(quiet=True)
    with torch.inference_mode(), torch.autocast("cpu"), torch.device("meta"), trace:
        turned.sum(1)
    (found,) = [one for one in trace.findings if one.code == "MEM311"]
    assert found.evidence is not None
    assert found.evidence["as_is_ms"] > 0


# Decorators


class Model:
    def __init__(self) -> None:
        self.traces: list[Trace] = []

    @memlint.trace(quiet=True, replay=False)
    def work(self, x: torch.Tensor, *, by: float = 2.0) -> torch.Tensor:
        """Documented."""
        return x * by

    @staticmethod
    @memlint.trace(quiet=True, replay=False)
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2


def test_methods_are_traced_at_every_call(tmp_path: Any) -> None:
    model = Model()
    assert torch.equal(model.work(A, by=3.0), A * 3)
    assert torch.equal(model.work(A), Model.twice(A))
    assert model.work.__doc__ == "Documented."


def test_a_decorated_function_that_calls_itself_is_told_so() -> None:
    @quiet()
    def down(n: int) -> int:
        return n and down(n - 1)

    with pytest.raises(TraceError, match="open already"):
        down(1)
    assert down(0) == 0


def test_a_coroutine_is_traced_while_it_is_awaited(tmp_path: Any) -> None:
    output = tmp_path / "out.json"

    @quiet(output=output)
    async def work(x: torch.Tensor) -> torch.Tensor:
        await asyncio.sleep(0)
        return torch.exp(x)

    waiting = work(A)
    torch.sin(A)
    assert not output.exists()
    assert torch.equal(asyncio.run(waiting), torch.exp(A))
    assert "aten.exp.default" in output.read_text("utf-8")
    assert "aten.sin.default" not in output.read_text("utf-8")


def test_what_does_not_run_when_it_is_called_is_refused() -> None:
    def batches() -> Iterator[int]:
        yield 1

    async def stream() -> AsyncIterator[int]:
        yield 1

    for made in (batches, stream, Model, staticmethod(len), classmethod(len)):
        with pytest.raises(TraceError, match=r"use `with memlint\.trace\(\):`"):
            quiet()(made)


def test_a_very_deep_stack_is_walked() -> None:
    def down(n: int) -> torch.Tensor:
        return torch.exp(A) if not n else down(n - 1)

    with quiet() as trace:
        down(800)
    assert seen(trace) == {"exp"}
    assert trace.operations[0].site.function.endswith("down")
