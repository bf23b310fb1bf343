"""What the programs of cuda-uncoalesced-index cannot say: confidence, sources, launches, fix."""

from __future__ import annotations

import pytest

from memlint.config import Settings
from memlint.findings import Applicability, Confidence, Finding
from memlint.linter.file import Job, Plan
from memlint.linter.rules import all_rules
from tests.rules.linting import ROOT, fixed, found, only

RULE = "cuda-uncoalesced-index"

KERNEL = """\
import numpy as np
from numba import cuda

@cuda.jit
def kernel(a, out, width):
    i, j = cuda.grid(2)
    {body}
"""


def doubtful(text: str) -> list[Finding]:
    """What is found with the lowest confidence, too."""
    rules = [rule for rule in all_rules().rules.values() if rule.name == RULE]
    settings = Settings(ROOT, min_confidence=Confidence.LOW)
    data = text.encode()
    job = Job("program.py", "program.py", 0, len(data), data=data)
    return list(Plan(settings, rules, all_rules().rules).run(job).findings)


def test_a_parameter_is_assumed_row_major() -> None:
    finding = only(KERNEL.format(body="out[i, j] = a[i, j]"), RULE)
    assert finding.confidence is Confidence.MEDIUM
    assert "assuming that `out` is row-major" in finding.message


def test_a_launch_tells_the_layout() -> None:
    text = KERNEL.format(body="out[i, j] = 1.0")
    launch = "\nkernel[(8, 8), (16, 16)](None, cuda.to_device(np.zeros((99, 99){order})), 99)\n"
    assert only(text + launch.format(order=""), RULE).confidence is Confidence.HIGH
    assert found(text + launch.format(order=", order='F'"), RULE) == []


def test_a_launch_tells_the_block() -> None:
    text = KERNEL.format(body="out[i, j] = 1.0")
    narrow = text + "\nkernel[(8, 8), (1, 256)](None, cuda.to_device(np.zeros((99, 99))), 99)\n"
    assert found(narrow, RULE) == []


def test_the_shown_fix_swaps_the_names() -> None:
    text = KERNEL.format(body="out[i, j] = a[i, j]")
    finding = only(text, RULE)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.DISPLAY
    mended = fixed(text, finding.fix)
    assert "j, i = cuda.grid(2)" in mended
    assert found(mended, RULE) == []


@pytest.mark.parametrize(
    "body",
    [
        "out[j, i] = a[i, j]",
        "out[i, 0] = a[i, 1]",
        "out[0, j] = 1.0",
        "out[i + j, j] = 1.0",
        "out[i] = a[j]",
        "out[j * width + i] = 1.0",
    ],
)
def test_other_indices_are_none(body: str) -> None:
    assert found(KERNEL.format(body=body), RULE) == []


SOURCE = """\
import cupy as cp

kernel = cp.RawKernel(r'''
extern "C" __global__ void fill(float* out, int height, int width) {{
    int row = blockIdx.{rows} * blockDim.{rows} + threadIdx.{rows};
    int col = blockIdx.{columns} * blockDim.{columns} + threadIdx.{columns};
    {tile}
    if (row < height && col < width) out[row * width + col] = 1.0f;
}}
''', "fill")
"""


def test_cuda_sources_are_told_with_low_confidence() -> None:
    text = SOURCE.format(rows="x", columns="y", tile="")
    assert found(text, RULE) == []
    (finding,) = doubtful(text)
    assert finding.confidence is Confidence.LOW
    assert "in the CUDA kernel `fill`, `out[row * width + col]`" in finding.message


def test_sound_cuda_sources_are_not() -> None:
    assert doubtful(SOURCE.format(rows="y", columns="x", tile="")) == []
    tile = "__shared__ float tile[32][32];"
    assert doubtful(SOURCE.format(rows="x", columns="y", tile=tile)) == []
