"""Programs that use a device, and what a trace of them shows there: the marks are those of
:mod:`tests.benchmarks.traced_programs`, and the device is spelled ``"cuda"``."""

from __future__ import annotations

import runpy
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.traced_programs import Place, Program, programs

FOLDER = Path(__file__).with_name("traced")
# What depends on how fast a machine is, or on its host alone.
_BESIDES = frozenset({"MEM216", "MEM217"})


def on_a_device() -> list[Program]:
    """All programs, by name."""
    return programs(FOLDER)


def places(program: Program, device: str) -> frozenset[Place]:
    """The places (line, code) that a trace of the program tells where it runs on ``device``."""
    from memlint.tracer.trace import Trace

    text = program.path.read_text("utf-8").replace('"cuda"', f'"{device}"')
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / program.path.name
        path.write_text(text, encoding="utf-8")
        with Trace(replay=False, quiet=True) as trace:
            runpy.run_path(str(path), run_name="__main__")
    told = {(one.location.line, one.code) for one in trace.findings}
    return frozenset(one for one in told if one[1] not in _BESIDES)


def differences(program: Program, device: str) -> Iterator[str]:
    """What is missing of what has to be told there, and what is told beside it."""
    told = places(program, device)
    for line, code in sorted(program.expected - told):
        yield f"{code} is missing at line {line}"
    for line, code in sorted(told - program.expected - program.allowed):
        yield f"{code} at line {line}"
