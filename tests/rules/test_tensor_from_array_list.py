from __future__ import annotations

import warnings
from typing import Any

import pytest

from memlint.findings import Applicability, Finding
from tests.rules.linting import fixed, found, only

RULE = "tensor-from-array-list"


def program(
    elements: str, call: str = "torch.tensor(rows)", head: str = "import numpy as np"
) -> str:
    return f"""{head}
import torch


def make(count=40):
    rows = [{elements} for k in range(count)]
    return {call}
"""


def applicability(text: str) -> Applicability | None:
    finding = only(text, RULE)
    return finding.fix.applicability if finding.fix is not None else None


def mended(text: str) -> tuple[Finding, str]:
    finding = only(text, RULE)
    assert finding.fix is not None
    changed = fixed(text, finding.fix)
    assert found(changed, RULE) == []
    return finding, changed


def run(text: str) -> Any:
    scope: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, "program.py", "exec"), scope)
        return scope["make"]()


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "float16", "int64", "int32", "int16", "uint8", "int8", "bool"]
)
@pytest.mark.parametrize("call", ["torch.tensor(rows)", "torch.as_tensor(rows)"])
def test_the_fix_keeps_values_dtype_and_shape(dtype: str, call: str) -> None:
    torch = pytest.importorskip("torch")
    text = program(f"np.arange(k, k + 6).astype(np.{dtype})", call)
    finding, changed = mended(text)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE
    before, after = run(text), run(changed)
    assert (before.dtype, before.shape) == (after.dtype, after.shape)
    assert torch.equal(before, after)


@pytest.mark.parametrize(
    "call",
    [
        "torch.FloatTensor(rows)",
        "torch.DoubleTensor(rows)",
        "torch.LongTensor(rows)",
        "torch.IntTensor(rows)",
        "torch.ShortTensor(rows)",
        "torch.ByteTensor(rows)",
        "torch.Tensor(rows)",
        "torch.tensor(rows, dtype=torch.float32)",
        "torch.as_tensor(rows, dtype=torch.int64)",
        "torch.tensor(data=rows, dtype=torch.float64)",
    ],
)
def test_where_the_call_names_the_dtype_the_arrays_may_differ(call: str) -> None:
    torch = pytest.importorskip("torch")
    text = program("np.ones((2, 3), dtype='f8' if k % 2 else 'i8') * k", call)
    finding, changed = mended(text)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE
    before, after = run(text), run(changed)
    assert (before.dtype, before.shape) == (after.dtype, after.shape)
    assert torch.equal(before, after)


def test_arrays_of_unknown_dtype_may_be_promoted_by_numpy() -> None:
    assert applicability(program("np.load(str(k))")) is Applicability.UNSAFE
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    mixed = [numpy.ones(3, numpy.float32), numpy.ones(3, numpy.int64)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.tensor(mixed).dtype != torch.tensor(numpy.array(mixed)).dtype


def test_numpy_is_called_what_the_module_calls_it() -> None:
    text = program("numpy.zeros(100)", head="import numpy")
    assert "torch.tensor(numpy.array(rows))" in mended(text)[1]


def test_no_fix_where_numpy_has_no_name() -> None:
    text = program("zeros(100)", head="from numpy import zeros")
    assert only(text, RULE).fix is None


def test_the_message_names_the_list_and_the_call() -> None:
    message = only(program("np.zeros(100)", "torch.FloatTensor(rows)"), RULE).message
    assert message.startswith("`torch.FloatTensor` reads `rows` of NumPy arrays")


def test_torch_warns_of_what_is_reported() -> None:
    pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    import torch

    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="extremely slow"):
            torch.tensor([numpy.zeros(3)])
    finally:
        torch.set_warn_always(False)
