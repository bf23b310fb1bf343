"""What the programs of naive-matmul-loop cannot say: wording, confidence, the shown product."""

from __future__ import annotations

import pytest

from memlint.findings import Applicability, Confidence
from tests.rules.linting import fixed, found, only

RULE = "naive-matmul-loop"


def nest(body: str, *, order: str = "ijk", head: str = "", made: str = "") -> str:
    text = f"import numpy as np\nfrom numba import njit\n\n{head}def product(a, b, c):\n"
    text += "    n, m = c.shape\n    p = a.shape[1]\n" + made
    bounds = {"i": "n", "j": "m", "k": "p"}
    for depth, name in enumerate(order):
        text += "    " * (depth + 1) + f"for {name} in range({bounds[name]}):\n"
    return text + "    " * (len(order) + 1) + body + "\n"


@pytest.mark.parametrize("order", ["ijk", "ikj", "jik", "jki", "kij", "kji"])
def test_any_order_of_the_loops_is_found(order: str) -> None:
    finding = only(nest("c[i, j] += a[i, k] * b[k, j]", order=order), RULE)
    assert "write `a @ b`" in finding.help
    assert finding.location.line == 10


@pytest.mark.parametrize(
    ("body", "product"),
    [
        ("c[i, j] += b[k, j] * a[i, k]", "a @ b"),
        ("c[i, j] += a[k, i] * b[k, j]", "a.T @ b"),
        ("c[i, j] += a[i, k] * b[j, k]", "a @ b.T"),
        ("c[j, i] += a[i, k] * b[k, j]", "b.T @ a.T"),
        ("c[i][j] = c[i][j] + a[i][k] * b[k][j]", "a @ b"),
        ("c[i, j] -= a[i, k] * b[k, j]", "a @ b"),
    ],
)
def test_the_product_is_written_out(body: str, product: str) -> None:
    assert f"`{product}`" in only(nest(body), RULE).help


def test_the_shown_fix_replaces_the_nest() -> None:
    text = nest("c[i, j] += a[i, k] * b[k, j]")
    finding = only(text, RULE)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.DISPLAY
    mended = fixed(text, finding.fix)
    assert mended.endswith("    p = a.shape[1]\n    c += a @ b\n")


def test_what_else_the_loops_do_is_not_replaced() -> None:
    text = nest("c[i, j] += a[i, k] * b[k, j]; c[i, 0] += 1.0")
    assert only(text, RULE).fix is None


def test_compiled_code_is_told_of_the_order() -> None:
    text = nest("c[i, j] += a[i, k] * b[k, j]", head="@njit\n")
    finding = only(text, RULE)
    assert "in the order `i`, `k`, `j`" in finding.help
    assert "ten times as long as BLAS" in finding.message


def test_known_floats_are_certain_and_parameters_are_not() -> None:
    text = nest("c[i, j] += a[i, k] * b[k, j]")
    assert only(text, RULE).confidence is Confidence.MEDIUM
    made = "    a, b = np.ones((n, 500)), np.ones((500, m))\n    p = 500\n"
    known = nest("c[i, j] += a[i, k] * b[k, j]", made=made)
    assert only(known, RULE).confidence is Confidence.HIGH


@pytest.mark.parametrize(
    "body",
    [
        "c[i, j] += a[i, k] + b[k, j]",
        "c[i, j] *= a[i, k] * b[k, j]",
        "c[i, j] = max(c[i, j], a[i, k] * b[k, j])",
        "c[i, j] += a[i, k] * b[k, j] * k",
        "c[i, j] += a[i, k] * b[i, j]",
        "c[i, j] += a[i, k] * a[i, k]",
        "c[i, j] += a[i, 2 * k] * b[k, j]",
        "c[i, j] += a[i, k] * c[k, j]",
        "c[i, 0] += a[i, k] * b[k, j]",
        "c[i, j] += a[i, k] * b[k, j] if i != k else 0.0",
    ],
)
def test_other_sums_are_none(body: str) -> None:
    assert found(nest(body), RULE) == []
