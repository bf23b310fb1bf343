"""What the programs of prange-inner-loop cannot say: places, confidence, the fix."""

from __future__ import annotations

import pytest

from memlint.findings import Applicability, Confidence, Severity
from tests.rules.linting import fixed, found, only, reported

RULE = "prange-inner-loop"


def nest(body: str, *, before: str = "pass", bound: str = "a.shape[0]") -> str:
    return (
        "import numpy as np\nfrom numba import njit, prange\n\n"
        "@njit(parallel=True)\ndef kernel(a, out, n):\n"
        f"    for i in range({bound}):\n"
        f"        {before}\n"
        "        for j in prange(a.shape[1]):\n"
        f"            {body}\n"
    )


def test_it_is_told_at_the_inner_loop() -> None:
    finding = only(nest("out[i, j] = a[i, j] * 2.0"), RULE)
    assert (finding.location.line, finding.severity) == (8, Severity.WARNING)
    assert finding.confidence is Confidence.MEDIUM
    assert [place.location.line for place in finding.related] == [6]


def test_the_fix_exchanges_range_and_prange() -> None:
    text = nest("out[i, j] = a[i, j] * 2.0")
    finding = only(text, RULE)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    mended = fixed(text, finding.fix)
    assert "for i in prange(a.shape[0]):" in mended
    assert "for j in range(a.shape[1]):" in mended
    assert found(mended, RULE) == []


def test_columns_in_parallel_are_the_business_of_column_order_loop() -> None:
    text = nest("out[j, i] = a[j, i] * 2.0", bound="a.shape[1]").replace(
        "prange(a.shape[1])", "prange(a.shape[0])"
    )
    assert {name for _, name in reported(text)} == {"column-order-loop"}


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("out[j] = a[i, j]", "pass"),
        ("out[j] += a[i, j]", "pass"),
        ("out[i, j] = out[i - 1, j] + a[i, j]", "pass"),
        ("out[i, j] = a[i, j] + out[0, j]", "pass"),
        ("out[i, j] = a[i, j] + n", "n = n * 2"),
        ("out[i, j] = a[i, j]", "out[0, i] = 1.0"),
        ("out[i, j] = a[i, j]", "if n > i: break"),
        ("out[i, j] = np.sort(a[i])[j]", "pass"),
    ],
)
def test_iterations_that_need_each_other_stay(body: str, before: str) -> None:
    assert found(nest(body, before=before), RULE) == []


@pytest.mark.parametrize("bound", ["3", "16", "n_dims", "channels"])
def test_few_outer_iterations_are_left_alone(bound: str) -> None:
    assert found(nest("out[i, j] = a[i, j]", bound=bound), RULE) == []
