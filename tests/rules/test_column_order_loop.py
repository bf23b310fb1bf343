"""What the programs of column-order-loop cannot say: wording, confidence, places, fixes."""

from __future__ import annotations

import pytest

from memlint.findings import Applicability, Confidence, Finding, Severity
from tests.rules.linting import fixed, found, only

RULE = "column-order-loop"

HEAD = """\
import numpy as np
from numba import njit, prange

"""


def nest(body: str, *, outer: str = "range(w)", inner: str = "range(h)", options: str = "") -> str:
    return (
        f"{HEAD}@njit{options}\n"
        "def kernel(a, out, h, w):\n"
        f"    for x in {outer}:\n"
        f"        for y in {inner}:\n"
        f"            {body}\n"
    )


def called_with(text: str, array: str) -> str:
    return f"{text}\ndef run(h, w):\n    kernel({array}, np.empty((h, w)), h, w)\n"


def place(finding: Finding) -> tuple[int, int]:
    return finding.location.line, finding.location.column


def test_an_unseen_array_is_assumed_row_major() -> None:
    finding = only(nest("out[y, x] = a[y, x] * 2.0"), RULE)
    assert finding.severity is Severity.WARNING
    assert finding.confidence is Confidence.MEDIUM
    assert "assuming that `out` is row-major" in finding.message
    assert place(finding) == (8, 13)


def test_a_seen_array_is_certain() -> None:
    text = called_with(nest("out[y, x] = a[y, x] * 2.0"), "np.zeros((h, w))")
    finding = only(text, RULE)
    assert finding.confidence is Confidence.HIGH
    assert "8 of the 64 bytes of each cache line" in finding.message
    assert "assuming" not in finding.message
    assert [r.location.line for r in finding.related] == [6, 11]


def test_rows_of_a_power_of_two_are_named() -> None:
    text = called_with(nest("a[y, x] += 1.0"), "np.zeros((300, 512))")
    message = only(text, RULE).message
    assert "(512 elements)" in message
    assert "4096 bytes long, a power of two" in message


def test_other_rows_are_not() -> None:
    text = called_with(nest("a[y, x] += 1.0"), "np.zeros((300, 500))")
    message = only(text, RULE).message
    assert "(500 elements)" in message
    assert "power of two" not in message


@pytest.mark.parametrize("array", ["np.zeros((w, h)).T", "np.zeros((h, w), order='F')"])
def test_one_column_major_caller_is_enough_for_silence(array: str) -> None:
    text = called_with(nest("a[y, x] += 1.0"), array)
    assert found(text, RULE) == []
    both = f"{text}\n\ndef other(b, h, w):\n    kernel(b, np.empty((h, w)), h, w)\n"
    assert found(both, RULE) == []


def test_the_fix_swaps_the_headers_and_nothing_else() -> None:
    text = nest("out[y, x] = a[y, x] * 2.0  # double", outer="range(0, w, 2)")
    finding = only(text, RULE)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert fixed(text, finding.fix) == text.replace(
        "    for x in range(0, w, 2):\n        for y in range(h):\n",
        "    for y in range(h):\n        for x in range(0, w, 2):\n",
    )


def test_the_outer_loop_stays_the_parallel_one() -> None:
    text = nest("out[y, x] = a[y, x]", outer="prange(w)", options="(parallel=True)")
    finding = only(text, RULE)
    assert "run `prange` over the rows" in finding.help
    assert finding.fix is not None
    mended = fixed(text, finding.fix)
    assert "for y in prange(h):\n        for x in range(w):" in mended
    assert found(mended, RULE) == []


@pytest.mark.parametrize(
    "body",
    [
        "out[y, x] = out[y - 1, x + 1] + a[y, x]",  # an iteration needs what another stores
        "out[y + 1, x] = out[y, x]",
        "out[y, x] = a[y, x]; best = max(best, a[y, x])",  # carried from one to the next
        "out[y, x] = a[y, x]; print(a[y, x])",  # the order can be seen
        "out[x] += a[y, x]",  # stores are shared by iterations
    ],
)
def test_no_fix_where_the_order_may_matter(body: str) -> None:
    (finding,) = found(nest(body), RULE)
    assert finding.fix is None


def test_no_fix_where_the_outer_loop_holds_more() -> None:
    text = (
        f"{HEAD}@njit\n"
        "def kernel(a, out):\n"
        "    for x in range(a.shape[1]):\n"
        "        total = 0.0\n"
        "        for y in range(a.shape[0]):\n"
        "            total += a[y, x]\n"
        "        out[x] = total\n"
    )
    finding = only(text, RULE)
    assert finding.fix is None
    assert "np.ascontiguousarray(a.T)" in finding.help


def test_windows_and_segments_are_left_alone() -> None:
    for inner in ("range(s, min(s + 32, h))", "range(ends[s], ends[s + 1])"):
        text = (
            f"{HEAD}@njit\n"
            "def kernel(a, ends, h, w):\n"
            "    total = 0.0\n"
            "    for s in range(0, h, 32):\n"
            "        for x in range(w):\n"
            f"            for y in {inner}:\n"
            "                total += a[y, x]\n"
            "    return total\n"
        )
        assert found(text, RULE) == []


@pytest.mark.parametrize("call", ["work(a[y])", "np.median(a[y])", "a[y].mean()", "callback(y, x)"])
def test_nests_that_do_their_work_in_a_call_are_left_alone(call: str) -> None:
    text = (
        f"{HEAD}@njit\n"
        "def work(row):\n"
        "    total = 0.0\n"
        "    for v in row:\n"
        "        total += v * v\n"
        "    return total\n\n\n"
        "@njit\n"
        "def kernel(a, out, callback):\n"
        "    for x in range(a.shape[1]):\n"
        "        for y in range(a.shape[0]):\n"
        f"            out[y, x] = {call}\n"
    )
    assert found(text, RULE) == []


def test_a_small_helper_is_no_work() -> None:
    text = (
        f"{HEAD}@njit\n"
        "def half(v):\n"
        "    return 0.5 * v\n\n\n"
        "@njit\n"
        "def kernel(a, out):\n"
        "    for x in range(a.shape[1]):\n"
        "        for y in range(a.shape[0]):\n"
        "            out[y, x] = half(a[y, x])\n"
    )
    assert len(found(text, RULE)) == 1


def test_a_table_that_is_walked_again_and_again_is_left_alone() -> None:
    text = (
        f"{HEAD}@njit\n"
        "def correlate(signal, weights, picks, out, taps, lanes):\n"
        "    for i in range(out.size):\n"
        "        total = 0.0\n"
        "        for j in range(taps):\n"
        "            for k in range(lanes):\n"
        "                total += weights[k, j] * signal[picks[k], i]\n"
        "        out[i] = total\n"
    )
    assert found(text, RULE) == []


def test_columns_in_python_are_information() -> None:
    text = (
        "import numpy as np\n\n"
        "table = np.zeros((20_000, 4096), dtype=np.float32)\n"
        "for j in range(4096):\n"
        "    table[:, j] -= table[:, j].mean()\n"
    )
    finding = only(text, RULE)
    assert finding.severity is Severity.INFO
    assert finding.confidence is Confidence.HIGH
    assert "4096 columns: 4 of the 64 bytes" in finding.message
    assert finding.fix is None
    assert [r.location.line for r in finding.related] == [3]


def test_a_loop_over_a_transpose_is_told_how_to_copy() -> None:
    text = (
        "import numpy as np\n\n"
        "table = np.zeros((20_000, 4096))\n"
        "means = [column.mean() for column in table.T]\n"
    )
    finding = only(text, RULE)
    assert "`np.ascontiguousarray(table.T)`" in finding.help
    assert "each item of `table.T`" in finding.message
