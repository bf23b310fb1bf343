"""What the programs of prange-shared-accumulator cannot say: wording, confidence, indices."""

from __future__ import annotations

import pytest

from memlint.findings import Confidence, Finding, Severity
from tests.rules.linting import found, only

RULE = "prange-shared-accumulator"

HEAD = """\
import numpy as np
from numba import njit, prange

"""


def loop(body: str, *, options: str = "(parallel=True)", inner: str = "") -> str:
    text = f"{HEAD}@njit{options}\ndef kernel(x, y, b, n, m):\n    for i in prange(n):\n"
    if inner:
        text += f"        for j in {inner}:\n    "
    return f"{text}        {body}\n"


def test_the_same_element_is_certain() -> None:
    finding = only(loop("y[0] += x[i]"), RULE)
    assert finding.severity is Severity.ERROR
    assert finding.confidence is Confidence.HIGH
    assert "update the same `y[0]`" in finding.message
    assert [place.location.line for place in finding.related] == [6]
    assert finding.fix is None


def test_an_element_that_the_data_say_is_not() -> None:
    finding = only(loop("y[b[i]] += x[i]"), RULE)
    assert finding.confidence is Confidence.MEDIUM
    assert "come to the same index of `y[b[i]]`" in finding.message


def test_a_whole_slice_is_to_lose_its_brackets() -> None:
    assert "leave out the slice" in only(loop("y[:] += x[i]"), RULE).help


def shared(body: str, inner: str = "") -> list[Finding]:
    return found(loop(body, inner=inner), RULE)


@pytest.mark.parametrize(
    ("body", "inner"),
    [
        ("y[m] -= x[i]", ""),
        ("y[i % m] += x[i]", ""),
        ("y[i & 7] += x[i]", ""),
        ("y[int(x[i])] += 1", ""),
        ("y[b[i] + 1] = y[b[i] + 1] + x[i]", ""),
        ("y[j] += x[i]", "range(m)"),
        ("y[j] += x[i]", "range(i)"),
        ("y[i + j] += x[i]", "range(m)"),
        ("y[i - j] += x[i]", "range(2)"),
        ("y[0, j] += x[i]", "range(m)"),
    ],
)
def test_shared_elements(body: str, inner: str) -> None:
    assert len(shared(body, inner)) == 1


@pytest.mark.parametrize(
    ("body", "inner"),
    [
        ("y[i] += x[0]", ""),
        ("y[i, m] += x[0]", ""),
        ("y[b[i], i] += x[0]", ""),
        ("y[n - i] += x[0]", ""),
        ("y[b[i]] = x[i]", ""),
        ("y[i * m + j] += x[i]", "range(m)"),
        ("y[4 * i + j] += x[i]", "range(4)"),
        ("y[j] += x[i]", "range(i * m, (i + 1) * m)"),
        ("y[j] += x[i]", "range(b[i], b[i + 1])"),
        ("y[j] += x[i]", "range(i, m, n)"),
        ("y[i : i + 1] += x[i]", ""),
    ],
)
def test_elements_of_their_own(body: str, inner: str) -> None:
    assert shared(body, inner) == []


def test_only_loops_that_run_in_parallel_count() -> None:
    assert found(loop("y[0] += x[i]", options=""), RULE) == []
    assert found(loop("y[0] += x[i]", options="(parallel=False)"), RULE) == []


def test_an_array_of_each_iteration_is_its_own() -> None:
    assert shared("z = np.zeros(3); z[0] += x[i]") == []
    assert shared("z = x[i]; z[0] += 1") == []
    assert len(shared("z = x[0]; z[0] += 1")) == 1
