"""The sieve of walks across rows must let pass whatever may be one, and little else."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.column import may_walk_columns


def passes(body: str, more: str = "") -> bool:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    text = f"def f(a, out, n):\n{lines}"
    return may_walk_columns(ast.parse(text).body[0], text, f"{text}\n{more}")


@pytest.mark.parametrize(
    "body",
    [
        "for j in range(n):\n    g(a[:, j])",
        "for j in range(n):\n    a[..., j] = 0",
        "for j in range(n):\n    k = j + 1\n    g(a[:, k])",
        "return [g(a[:, j]) for j in range(n)]",
        "for column in a.T:\n    g(column)",
        "for i, column in enumerate(a.unbind(1)):\n    g(column)",
        "for j in range(n):\n    g(a.select(1, j))",
        "for j in range(n):\n    g(a.take(j, axis=1))",
        "j = 0\nwhile j < n:\n    g(a[:, j])\n    j += 1",
    ],
)
def test_columns_one_after_the_other_pass(body: str) -> None:
    assert passes(body)


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(n):\n    for j in range(n):\n        out[i, j] = a[j, i]",
        "for i in range(n):\n    for j in range(n):\n        out[i][j] = a[j][i]",
        "for place in np.ndindex(a.shape):\n    out[place] = a[place]",
        "for i, j in np.ndindex(a.shape):\n    out[i, j] = 1",
    ],
)
def test_nests_pass_where_there_is_numba(body: str) -> None:
    assert passes(body, "import numba")
    assert not passes(body)


def test_helpers_and_turned_arrays_pass_where_there_is_numba() -> None:
    single = "for i in range(n):\n    out[i, n] = a[i, n]"
    assert passes(single, "import numba\nfor j in range(9):\n    f(a, out, j)")
    assert not passes(single, "import numba\nf(a, out, 1)")
    rows = "for j in range(n):\n    row = a[j]\n    for i in range(n):\n        g(row[i])"
    assert passes(rows, "import numba\nf(x.T, out, 1)")
    assert not passes(rows, "import numba\nf(x, out, 1)")


@pytest.mark.parametrize(
    "body",
    [
        "g(a[:, n])",
        "for j in range(n):\n    g(a[:, n])",
        "for j in range(n):\n    g(a[:, 0])",
        "for j in range(n):\n    g(a[j])",
        "for j in range(n):\n    g(a.select(0, j))",
        "for row in a:\n    g(row)",
        "return a.T",
    ],
)
def test_rows_and_single_columns_do_not(body: str) -> None:
    assert not passes(body)
