"""The sieve of naive products must let pass whatever nests three loops around one."""

from __future__ import annotations

import pytest
from memlint_rules.locality.naive_matmul_loop import multiplies_in_deep_loops

NEST = "for i in a:\n    for j in b:\n        {}\n"


@pytest.mark.parametrize(
    "text",
    [
        NEST.format("for k in c:\n            out[i, j] += a[i, k] * b[k, j]"),
        NEST.format("while k < n:\n            s = s + a[i, k] * b[k, j]"),
        NEST.format("out[i, j] = sum(a[i, k] * b[k, j] for k in c)"),
        "for i, j, k in np.ndindex(2, 3, 4):\n    out[i, j] += a[i, k] * b[k, j]\n",
        "out = [[sum(\n    a[i][k] * b[k][j] for k in c) for j in b] for i in a]\n",
        NEST.format("s = '''\nfree\n'''\n        for k in c:\n            s -= x * b[k]"),
    ],
)
def test_products_in_three_loops_pass(text: str) -> None:
    assert multiplies_in_deep_loops(text)


@pytest.mark.parametrize(
    "text",
    [
        NEST.format("out[i, j] += a[i] * b[j]"),
        NEST.format("pass") + "for k in c:\n    s += a[k] * b[k]\n",
        "for i in a:\n    for j in b:\n        s = 0\n    for k in c:\n        s += a[i] * b[k]\n",
        NEST.format("for k in c:\n            out[i, j] = a[i, k] ** 2"),
        NEST.format("for k in c:\n            out[i, j] += a[i, k]"),
        "for i in a: f(i)\nfor j in b: f(j)\nfor k in c: f(k)\ns = x + a[i] * b[j]\n",
    ],
)
def test_shallower_ones_do_not(text: str) -> None:
    assert not multiplies_in_deep_loops(text)
