"""What the table of float64 says, against NumPy."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from memlint.analysis.knowledge import float64 as table

np = pytest.importorskip("numpy")

ARGUMENTS: dict[str, str] = {
    "zeros": "3", "ones": "3", "empty": "3", "eye": "3", "identity": "3", "linspace": "0, 1, 3",
    "logspace": "0, 1, 3", "geomspace": "1, 2, 3", "tri": "3", "loadtxt": "['1 2']",
    "genfromtxt": "['1 2']", "hanning": "3", "hamming": "3", "blackman": "3", "bartlett": "3",
    "kaiser": "3, 14", "random.rand": "3", "random.randn": "3", "random.beta": "1, 1, 3",
    "random.gamma": "1, 1, 3", "random.dirichlet": "[1, 1]", "random.random": "3",
    "random.multivariate_normal": "[0, 0], [[1, 0], [0, 1]]", "random.triangular": "0, 1, 2, 3",
    "random.vonmises": "0, 1, 3", "random.random_sample": "3", "random.sample": "3",
    "random.ranf": "3",
}  # fmt: skip


def call(name: str, arguments: str, **names: Any) -> Any:
    text = f"np.{name}({arguments})"
    ast.parse(text)
    return eval(text, {"np": np, **names})


@pytest.mark.parametrize("full", sorted(table.MAKERS))
def test_makers_give_float64(full: str) -> None:
    name = full.removeprefix("numpy.")
    arguments = ARGUMENTS.get(name, "size=3")
    assert call(name, arguments).dtype == np.float64


@pytest.mark.parametrize("full", sorted(table.FLOATING))
@pytest.mark.parametrize(("given", "result"), [("int64", "float64"), ("float32", "float32")])
def test_float_functions_make_float64_of_integers_alone(full: str, given: str, result: str) -> None:
    name = full.removeprefix("numpy.")
    x = np.array([[1, 1], [1, 1]], dtype=given)
    two = name in ("arctan2", "hypot", "divide", "true_divide")
    assert call(name, "x, x" if two else "x", x=x).dtype == result


@pytest.mark.parametrize("full", sorted(table.STRONG_SCALARS))
def test_a_scalar_of_numpy_makes_float64_of_float32(full: str) -> None:
    if int(np.__version__.partition(".")[0]) < 2:
        pytest.skip("scalars adapt before NumPy 2")
    name = full.removeprefix("numpy.")
    given = {"power": "2.0, 3", "prod": "2.5"}.get(name, "2")
    scalar = call(name, given)
    assert (np.zeros(2, np.float32) * scalar).dtype == np.float64


@pytest.mark.parametrize("full", sorted(table.WIDEST))
def test_float64_stays_float64(full: str) -> None:
    name = full.removeprefix("numpy.")
    x, y = np.ones((3, 3)), np.ones((3, 3), np.float32)
    given = {
        "cross": "x, y", "where": "x > 0, x, y", "clip": "x, 0, 1", "roll": "x, 1", "pad": "x, 1",
        "tile": "x, 2", "repeat": "x, 2", "take": "x, [0]", "reshape": "x, -1",
        "swapaxes": "x, 0, 1", "moveaxis": "x, 0, 1", "expand_dims": "x, 0",
        "broadcast_to": "x, (2, 3, 3)", "interp": "x[0], y[0], y[0]", "tensordot": "x, y",
    }.get(name)  # fmt: skip
    pairs = ("add", "subtract", "multiply", "power", "maximum", "minimum", "outer", "inner", "dot",
             "matmul", "vdot", "kron", "append")  # fmt: skip
    if given is None:
        lists = ("concatenate", "stack", "hstack", "vstack", "dstack", "column_stack")
        given = "x, y" if name in pairs else "[y, x]" if name in lists else "x"
    result = call(name, given, x=x, y=y)
    for one in result if isinstance(result, (tuple, list)) else [result]:
        assert one.dtype == np.float64
