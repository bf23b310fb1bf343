"""The sieve of launches must let pass whatever may be one, and little else."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.launch import may_launch


def passes(body: str, source: str = "") -> bool:
    text = f"def f(self, x, grid, n):\n    {body}\n"
    return may_launch(ast.parse(text).body[0], text, text + source)


@pytest.mark.parametrize(
    "body",
    [
        "dist.all_reduce(x)",
        "torch.distributed.all_gather_into_tensor(n, x)",
        "broadcast(x, src=0)",
        "add_kernel[(n,)](x, n)",
        "add_kernel[lambda meta: (n,)](x, n)",
        "kernels.add[grid](x, n)",
        "kernels.add[grid_of(n)](x=x)",
    ],
)
def test_collectives_and_kernels_of_other_modules_pass(body: str) -> None:
    assert passes(body)


@pytest.mark.parametrize(
    "body",
    ["return ACT2FN[self.act](x)", "return fns[0](x)", "return x.sum()", "table[n] = x", "all_()"],
)
def test_other_calls_do_not(body: str) -> None:
    assert not passes(body)


@pytest.mark.parametrize("library", ["import triton", "import ctypes", "cupy.RawKernel('', 'f')"])
def test_any_function_passes_where_the_source_has_kernels_of_its_own(library: str) -> None:
    assert passes("return launcher(x)", library)
