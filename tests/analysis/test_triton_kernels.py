from __future__ import annotations

import ast

import pytest

from memlint.analysis.triton_kernels import Addresses, flat_pointers


def kernel(body: str) -> ast.FunctionDef:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    (node,) = ast.parse(f"def kernel(x, y, n, stride_x, BS):\n{lines}").body
    assert isinstance(node, ast.FunctionDef)
    return node


OFFSETS = "i = tl.program_id(0) * BS + tl.arange(0, BS)\n"
COPY = "tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)"


def test_a_flat_kernel_names_its_pointers() -> None:
    assert flat_pointers(kernel(OFFSETS + COPY)) == {"x", "y"}
    apart = "pid = tl.program_id(0)\nstart = pid * BS\ni = start + tl.arange(0, BS)\n"
    assert flat_pointers(kernel(apart + COPY)) == {"x", "y"}


@pytest.mark.parametrize(
    "body",
    [
        OFFSETS + "tl.store(y + i, tl.load(x + i % n))",
        OFFSETS + "tl.store(y + i, tl.load(x + i) * i)",
        OFFSETS + "tl.store(y + i, tl.cumsum(tl.load(x + i), 0))",
        OFFSETS + f"for k in range(n):\n    {COPY}",
        OFFSETS + f"i = i + n\n{COPY}",
        OFFSETS + "tl.store(y + i, tl.load(x + n))",
        f"i = tl.program_id(0) * BS + tl.program_id(1) + tl.arange(0, BS)\n{COPY}",
        f"i = tl.arange(0, BS)\n{COPY}",
        "pass",
    ],
)
def test_kernels_that_mind_the_place_of_an_element_are_not_flat(body: str) -> None:
    assert flat_pointers(kernel(body)) is None


def test_reads_and_writes_are_followed_through_names() -> None:
    found = Addresses(kernel("p = x + n\nq = p + 1\ntl.store(q, tl.load(y))"))
    assert "x" in found.stored
    assert "x" not in found.loaded
    assert "y" in found.loaded
    assert "y" not in found.stored


def test_strides_go_with_the_pointers_that_they_are_added_to() -> None:
    body = "x += tl.program_id(0) * stride_x\nk = tl.load(x)\ntl.store(y + k, k)"
    assert Addresses(kernel(body)).go_with(frozenset({"stride_x"})) >= {"x"}
    assert "y" not in Addresses(kernel(body)).go_with(frozenset({"stride_x"}))


def test_block_pointers_take_strides() -> None:
    body = (
        "p = tl.make_block_ptr(base=x, shape=(n,), strides=(stride_x,), offsets=(0,))\ntl.load(p)"
    )
    assert "x" in Addresses(kernel(body)).go_with(frozenset({"stride_x"}))
