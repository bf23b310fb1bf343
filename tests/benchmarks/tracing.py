"""Time training steps under the tracer, beside other ways of watching them and none at all.

In every round each contender runs two steps of its own, in random order: the first one it is
given to settle, the second is timed, by the clock and by the processor time of the thread.  What
is told of that time is told of the fastest runs: whatever else the machine does only adds to it.
Prints a table in Markdown; ``--json`` also writes every single run.

    python -m tests.benchmarks.tracing [--rounds 15] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from memlint.measure import median_interval
from memlint.tracer.session import Session
from tests.benchmarks.traced_models import MODELS, Step

Watch = Callable[[], AbstractContextManager[Any]]
BARE, NOOP = "no tracing", "a dispatch mode that does nothing"


class Noop(TorchDispatchMode):
    """Hands every operation on."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Counting(TorchDispatchMode):
    """Counts operations."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def contenders() -> dict[str, Watch]:
    """The ways of watching that this version of torch has."""
    found: dict[str, Watch] = {
        BARE: nullcontext,
        NOOP: Noop,
        "memlint": lambda: Session(warmup=0),
        "FlopCounterMode": lambda: FlopCounterMode(display=False),
    }
    try:
        from torch.utils._debug_mode import DebugMode
    except ImportError:
        pass  # an older torch does not have it
    else:
        found["DebugMode"] = DebugMode
        found["DebugMode with stacks"] = lambda: DebugMode(record_stack_trace=True)
    found["torch.profiler, stacks and shapes"] = lambda: torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, with_stack=True
    )
    return found


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed step; seconds by the clock and of processor time."""

    seconds: float
    cpu_seconds: float


def timed(step: Step) -> Sample:
    """One step."""
    clock, cpu = time.perf_counter(), time.thread_time()
    step()
    return Sample(time.perf_counter() - clock, time.thread_time() - cpu)


def rounds_of(step: Step, watches: dict[str, Watch], rounds: int) -> dict[str, list[Sample]]:
    """The samples of each contender, one a round."""
    draw, samples = random.Random(1), {name: [] for name in watches}  # type: ignore[var-annotated]
    order = list(watches)
    for _ in range(rounds):
        draw.shuffle(order)
        for name in order:
            with watches[name]():
                step()
                samples[name].append(timed(step))
    return samples


def table(name: str, operations: int, samples: dict[str, list[Sample]]) -> Iterator[str]:
    """What one model's samples come to."""
    bare = median(one.seconds for one in samples[BARE])
    yield f"\n### {name}: {operations} operations, {bare * 1e3:.1f} ms a step\n"
    yield (
        "| | ms | times no tracing | the same in CPU time | added CPU, µs per operation "
        "| times the empty mode |"
    )
    yield "|---|---:|---:|---:|---:|---:|"
    base = _least(samples[BARE])
    empty = _least(samples[NOOP]) - base
    for contender, own in samples.items():
        ratios = [a.seconds / b.seconds for a, b in zip(own, samples[BARE], strict=True)]
        low, high = median_interval(ratios)
        added = _least(own) - base
        yield (
            f"| {contender} | {median(one.seconds for one in own) * 1e3:.1f} "
            f"| {median(ratios):.2f} [{low:.2f}, {high:.2f}] | {_least(own) / base:.2f} "
            f"| {added / operations * 1e6:.1f} "
            f"| {added / empty:.2f} |"
        )


def _least(samples: list[Sample]) -> float:
    """Processor time of the fastest run: what else the machine does only adds to it."""
    return min(one.cpu_seconds for one in samples)


def main() -> None:
    """Time all models and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(f"torch {torch.__version__}, Python {platform.python_version()}, ", end="")
    print(f"{torch.get_num_threads()} threads, {options.rounds} rounds")
    everything = {}
    for name in options.models:
        torch.manual_seed(0)
        step = MODELS[name]()
        step()
        with Counting() as counting:
            step()
        samples = rounds_of(step, contenders(), options.rounds)
        everything[name] = {one: list(map(asdict, own)) for one, own in samples.items()}
        print("\n".join(table(name, counting.count, samples)), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
