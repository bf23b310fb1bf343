"""A large trace is read in less memory than it takes on disk."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource")

SIZE = 64 << 20
PROGRAM = """\
import resource, sys
from memlint.kineto.analysis import analyze

def peak():
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

before = peak()
evidence = analyze(sys.argv[1])
print(peak() - before, evidence.meta["operations"])
"""


def event(number: int) -> str:
    """Operators of many shapes, each with a call around it."""
    shape = [64 + number % 50, 64]
    args = {
        "External id": number, "Sequence number": number, "Concrete Inputs": ["", "", "1"],
        "Input type": ["float", "float", "Scalar"], "Input Dims": [shape, shape, []],
        "Input Strides": [[64, 1], [1, shape[0]], []],
    }  # fmt: skip
    call = f"<built-in method add of Tensor object at {0x7F0000000000 + number:#x}>"
    begin = 5190550801706.25 + 20 * number
    every = (
        {"ph": "X", "cat": "python_function", "name": call, "pid": 1, "tid": 1, "ts": begin,
         "dur": 15, "args": {"Python parent id": 1, "Python id": number}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": begin + 1,
         "dur": 10.5, "args": args},
    )  # fmt: skip
    return ",\n".join(json.dumps(one, indent=1) for one in every)


def test_memory_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    number = 0
    with path.open("w") as file:
        file.write('{"traceEvents": [\n')
        while file.tell() < SIZE:
            file.write(event(number) + ",\n")
            number += 1
        file.write(event(number) + "\n]}")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, path], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    grown, operations = map(int, done.stdout.split())
    assert operations == number + 1
    # Its events as objects would take some five times its size.
    assert grown < 0.8 * SIZE
