"""Memory of this NUMA node and of another one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from memlint.bench.chase import latency
from memlint.bench.curves import steps
from memlint.bench.experiment import Experiment, Found
from memlint.bench.judging import standing, within
from memlint.bench.lab import Lab
from memlint.bench.nodes import CannotBind, memory_of, on_cpus_of, usable_nodes
from memlint.bench.pages import available_memory
from memlint.bench.quantities import amount, ratio
from memlint.bench.results import Answer, Curve, Plot, Point, Standing, Unit
from memlint.doctor.host import this_host

_LEAST = 1 << 20
_QUICK, _FULL = 128 << 20, 1 << 30
_LINE = 64
_SECONDS = 0.05
_CLAIMED = (1.5, 3.0)


class NumaMemory(Experiment):
    """Latency of memory of this NUMA node, and of another one.

    A thread on the CPUs of one node chases pointers in random order through memory that is bound to
    its node, and through memory that is bound to another."""

    name = "numa-memory"
    needs = ("numpy", "numba", "linux", "nodes")

    def run(self, lab: Lab) -> Found:
        """Chase in memory of both nodes."""
        near, *others = usable_nodes(this_host(), frozenset(os.sched_getaffinity(0)))
        if not others:
            why = "only one node has memory"
            return Found(answers=(Answer("numa-latency", Standing.UNMEASURED, why),))
        most = lab.plan.size or (_FULL if lab.plan.full else _QUICK)
        most = min(most, available_memory() // 8)
        try:
            with on_cpus_of(near):
                local = tuple(points(lab, memory_of(near.number, most)))
                remote = tuple(points(lab, memory_of(others[-1].number, most)))
        except CannotBind as error:
            return Found(answers=(Answer("numa-latency", Standing.UNMEASURED, str(error)),))
        return Found(
            plots=(
                Plot(
                    "Latency of an access in random order",
                    "working set", "B",
                    "time per access", "s",
                    (
                        Curve(f"on node {near.number}, where the thread runs", local),
                        Curve(f"on node {others[-1].number}", remote),
                    ),
                ),
            ),
            answers=(node_answer(local[-1].y, remote[-1].y),),
        )  # fmt: skip


def points(lab: Lab, memory: Any) -> Iterator[Point]:
    """Latencies over working sets up to the whole memory."""
    import numpy as np

    for nbytes in steps(_LEAST, memory.nbytes, 1):
        places = np.arange(0, nbytes // 8, _LINE // 8, dtype=np.uint64)
        yield latency(lab, nbytes, memory, places, _SECONDS)


def node_answer(local: float, remote: float) -> Answer:
    """Seconds of an access to memory of the thread's own node, and of another one."""
    times = remote / local
    return Answer(
        "numa-latency",
        standing([within(times, *_CLAIMED)]),
        f"{amount(local, Unit.SECONDS)} an access on the thread's own node, "
        f"{amount(remote, Unit.SECONDS)} on another: {ratio(times)} times",
    )
