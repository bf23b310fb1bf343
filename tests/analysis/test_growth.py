"""A few lines can ask for more than any machine has; reading them must not try to give it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MEMLINT = Path(sys.executable).with_name("memlint")
HEAD = """\
import numba, torch, numpy as np
from torch.utils.data import DataLoader

@numba.njit
def columns(a):
    for j in range(a.shape[1]):
        for i in range(a.shape[0]):
            a[i, j] += 1

def program(x, q, data):
"""
TAIL = """\
    loader = DataLoader(data, batch_size=x)
    y = torch.zeros(x).t().data_ptr()
    for batch in loader:
        batch.cuda()

program(3, 4, [])
"""
DOUBLED = 60


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory by ulimit")
@pytest.mark.parametrize(
    "lines",
    [
        ["x = 3"] + ["x = x * x"] * DOUBLED,
        ["x = 10 ** 64"] + ["x = x ** 64"] * 8,
        ["x = 1"] + ["x = x << 64"] * 500,
        ["x = 'ab'"] + ["x = x + x"] * DOUBLED,
        ["x = 'ab'"] + ["x = f'{x}{x}'"] * DOUBLED,
        ["x = 0x" + "f" * 9000, "x = f'{x}'"],
        ["x = (1, 2)"] + ["x = x + x"] * DOUBLED,
        ["x = (1, 2)"] + ["x = (*x, *x)"] * DOUBLED,
        ["x = [1]"] + ["x.extend(x)"] * DOUBLED,
        ["x = [1]"] + ["x += x"] * DOUBLED,
        ["x = (1,)"] + ["x = (x, x)"] * DOUBLED,
        ["x = {'a': 1}"] + ["x = {'a': x, 'b': x}"] * DOUBLED,
        ["x = [0] * 10 ** 9"],
        ["t = torch.zeros(10 ** 9, 3)", "x = t.split(1)", "y = torch.chunk(t, 10 ** 9)"],
        ["x = torch.tensor_split(q, 2 ** 40)", "y = np.split(np.zeros((10 ** 9, 2)), 10 ** 9)"],
        ["a = q.transpose(10 ** 9, 0).data_ptr()", "b = q.movedim(0, 10 ** 12).data_ptr()"],
        ["a = q.swapaxes(-(10 ** 9), 1).data_ptr()", "b = q.permute(*range(10 ** 9)).data_ptr()"],
        ["for i in range(10 ** 30):", "    x = torch.zeros(i)"],
        ["a = torch.arange(10 ** 30)", "b = np.arange(0, 10 ** 30, 1)", "c = b[:: 10 ** 30]"],
        ["a = torch.arange(10 ** 18, -(10 ** 18), -1)", "b = np.zeros(2 ** 61)[1 :: 2 ** 60]"],
        ["x = tuple(range(10 ** 9))", "y = list(range(10 ** 9))", "z = [0 for i in y]"],
    ],
    ids=range(21),
)
def test_no_program_is_followed_beyond_reason(tmp_path: Path, lines: list[str]) -> None:
    (tmp_path / "a.py").write_text(HEAD + "".join(f"    {line}\n" for line in lines) + TAIL)
    command = f"ulimit -v 3000000; exec {MEMLINT} check a.py --isolated --no-cache -q --select ALL"
    ran = subprocess.run(
        ["/bin/sh", "-c", command], cwd=tmp_path, capture_output=True, timeout=30, text=True
    )
    assert ran.stderr == ""
    assert "MEM101" in ran.stdout
    assert ran.returncode == 1


def test_many_starts_of_workers_take_no_longer_than_they_are(tmp_path: Path) -> None:
    starts = "    threading.Thread(target=program, args=(x, q)).start()\n" * 4000
    text = f"import threading\n{HEAD}    q[x] += 1\n\ndef starts(x, q):\n{starts}"
    (tmp_path / "a.py").write_text(text)
    ran = subprocess.run(
        [MEMLINT, "check", "a.py", "--isolated", "--no-cache", "-q", "--select", "ALL"],
        cwd=tmp_path, capture_output=True, timeout=30, text=True,
    )  # fmt: skip
    assert ran.stderr == ""
    assert "MEM101" in ran.stdout
