"""Sessions that nobody measured."""

from __future__ import annotations

from dataclasses import replace

from memlint.bench.machine import Machine
from memlint.bench.plan import Plan
from memlint.bench.results import (
    Answer,
    Curve,
    Outcome,
    Plot,
    Point,
    Row,
    Session,
    Standing,
    Unit,
    Verdict,
)

MACHINE = Machine(
    cpu="Some CPU 9000 with a long name @ 3.00GHz",
    cpus=16,
    caches={"L1": 48 << 10, "L2": 2 << 20, "L3": 32 << 20},
    line=64,
    system="Linux 6.1.0 x86_64",
    python="3.12.1",
    memlint="0.1.0",
    packages={"numpy": "2.1.0", "numba": "0.61.0", "torch": "2.9.0"},
)

SLOWER = Row(
    bench="column-order-loop",
    variant="compiled",
    what="float64, 1024 x 1024",
    as_is_form="columns in the outer loop",
    alternative_form="rows in the outer loop",
    unit=Unit.SECONDS,
    size=1024,
    dtype="float64",
    device="cpu",
    threads=2,
    as_is=13.5e-3,
    alternative=1.43e-3,
    ratio=9.27,
    low=8.21,
    high=10.5,
    control_low=0.97,
    control_high=1.04,
    rounds=36,
    verdict=Verdict.SLOWER,
    nbytes=8 << 20,
)
EVEN = replace(
    SLOWER,
    variant="interpreted",
    what="float64, 128 x 128",
    size=128,
    as_is=3.71e-3,
    alternative=3.62e-3,
    ratio=1.02,
    low=0.97,
    high=1.16,
    verdict=Verdict.NO_DIFFERENCE,
)
FASTER = replace(
    SLOWER,
    bench="repeated-transposed-use",
    variant="",
    what="float32, 8 x 16 of a batch that is made anew for each step, and then some more words",
    as_is_form="the view is multiplied as it is",
    alternative_form="a dense copy of it",
    as_is=1e-6,
    alternative=2e-6,
    ratio=0.51,
    low=0.4,
    high=0.6,
    conversion=3e-6,
    net_ratio=0.2,
    verdict=Verdict.FASTER,
)
MORE = replace(
    SLOWER,
    bench="graph-kept",
    variant="",
    what="100 steps: bytes kept",
    as_is_form="total += loss",
    alternative_form="total += loss.item()",
    unit=Unit.BYTES,
    as_is=float(300 << 20),
    alternative=float(1 << 20),
    ratio=300.0,
    low=299.0,
    high=301.5,
    verdict=Verdict.MORE,
    nbytes=0,
)
LESS = replace(
    MORE, what="1 step: bytes kept", size=1, as_is=512.0, alternative=1024.0, ratio=0.5, low=0.5,
    high=0.5, verdict=Verdict.LESS,
)  # fmt: skip

CURVES = (
    Curve("column by column", tuple(
        Point(size, value, value * 0.9, value * 1.15)
        for size, value in ((256, 3.6e-10), (1000, 2.8e-10), (1024, 1.5e-9), (2048, 1.9e-9))
    )),
    Curve("row by row", tuple(
        Point(size, value, value, value)
        for size, value in ((256, 1.9e-10), (1000, 2.1e-10), (1024, 2.0e-10), (2048, 2.2e-10))
    )),
)  # fmt: skip
SCAN = Plot(
    "A compiled sum over a square array", "rows and columns", "", "time per byte", "s/B", CURVES
)
WORKING_SET = Plot(
    "One access in a working set",
    "working set", "B",
    "time per access", "s",
    (
        Curve("in order", tuple(
            Point(float(1 << power), 1e-9 * 1.05 ** (power - 12), 9e-10, 3e-9)
            for power in range(12, 30)
        )),
        Curve("at random", tuple(
            Point(float(1 << power), 1e-9 * 1.3 ** (power - 12), 8e-10 * 1.3 ** (power - 12),
                  1.3e-9 * 1.3 ** (power - 12))
            for power in range(12, 30)
        )),
    ),
    marks={"L1": 48 << 10, "L2": 2 << 20, "L3": 32 << 20, "beyond": 1 << 50},
)  # fmt: skip
SHARING = Plot(
    "Two threads that write side by side", "bytes between the elements", "", "time per write", "s",
    (Curve("two threads", tuple(
        Point(float(distance), 8e-9 if distance < 64 else 1e-9, 7e-9 if distance < 64 else 9e-10,
              9e-9 if distance < 64 else 1.1e-9)
        for distance in (8, 16, 32, 64, 128)
    )),),
    log_x=False, log_y=False,
)  # fmt: skip

NO_GPU = "torch sees no CUDA device"
OUTCOMES = (
    Outcome(
        "column-order-loop",
        "The inner loop of a compiled nest walks across the rows of an array, not along them.",
        rows=(SLOWER, EVEN),
        code="MEM101",
        notes=(f"cuda not measured: {NO_GPU}",),
        seconds=3.0,
    ),
    Outcome(
        "repeated-transposed-use", "`x.T` is used again and again.", rows=(FASTER,), code="MEM303"
    ),
    Outcome("graph-kept", "The graph of a loss is kept.", rows=(MORE, LESS), code="MEM503"),
    Outcome(
        "row-column-scan",
        "Rows against columns: a sum over a square array, walked in both orders.",
        plots=(SCAN,),
        answers=(
            Answer("column-scan", Standing.PARTLY, "12 times at 4096 x 4096"),
            Answer("column-order", Standing.DOES_NOT_HOLD, "1.2 to 24 times"),
        ),
    ),
    Outcome(
        "working-set",
        "One access by the size of what is read.",
        plots=(WORKING_SET,),
        answers=(Answer("dram-latency", Standing.HOLDS, "81 ns in 512 MiB"),),
    ),
    Outcome("false-sharing-distance", "Two threads.", plots=(SHARING,)),
    Outcome("blocking-transfer", "A copy waits.", code="MEM202", skipped=NO_GPU),
    Outcome("uncoalesced", "Threads read apart.", code="MEM102", skipped=NO_GPU),
    Outcome("broken-one", "It fails.", code="MEM999", failed="ValueError: <no> such | thing"),
)  # fmt: skip

SESSION = Session(MACHINE, Plan(threads=2), "2026-11-30T20:56:07+00:00", OUTCOMES)
EMPTY = Session(
    replace(MACHINE, cpus=0, caches={}, line=0, packages={}),
    Plan(),
    "2026-11-30T20:56:07+00:00",
    (),
)
