"""Sieves: launches, copies to the host, pinned batches, wrapped models, what is done in loops."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest

from memlint.analysis.leading_names import arguments_of_calls
from memlint.analysis.places.host_array import LAUNCH, may_launch
from memlint.analysis.places.host_copy import may_copy_to_host
from memlint.analysis.places.loader import UNPINNED, may_pin_and_copy, may_pin_in_vain
from memlint.analysis.places.repeated import may_empty_caches, may_retain_graphs
from memlint.analysis.places.wrapping import may_wrap
from memlint.rule import UnitTest


def passes(
    test: UnitTest,
    body: str,
    *,
    above: str = "import torch",
    rest: str = "",
    head: str = "def f(self, x, n, device, loader):",
) -> bool:
    source = f"{above}\n\n\n{head}\n{indent(body, '    ')}\n{rest}"
    function = next(
        one
        for one in ast.parse(source).body
        if isinstance(one, ast.FunctionDef) and head.startswith(f"def {one.name}(")
    )
    return test(function, source, source)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return x.to('cpu', non_blocking=True)", True),
        ("return x.to('cpu', torch.float32, True)", True),
        ("n = False\nhost = torch.device('cpu')\nreturn x.to(host, non_blocking=not n)", True),
        ("return x.to(**{'device': 'cpu', 'non_blocking': True})", True),
        ("return x.to(self.home, non_blocking=True)", False),
        ("return x.to(device, non_blocking=True)", False),
        ("return x.to('cuda', non_blocking=True)", False),
        ("return x.to('cpu', non_blocking=False)", False),
        ("return x.to('cpu', non_blocking=n)", False),
        ("b = torch.empty(n, pin_memory=True)\nb.copy_(x, non_blocking=True)", True),
        ("x.copy_(n, non_blocking=True)", False),
        ("b = torch.empty(n)\nb.copy_(x, non_blocking=True)", False),
    ],
)
def test_copies_to_the_host(body: str, *, expected: bool) -> None:
    assert passes(may_copy_to_host, body) is expected


def test_what_tells_of_the_host_may_be_elsewhere() -> None:
    to_device = "return x.to(device, non_blocking=True)"
    assert passes(may_copy_to_host, to_device, rest="f(1, 2, 3, torch.device('cpu'), [])")
    assert passes(may_copy_to_host, "return x.to(A, non_blocking=True)", above="A = 'cpu'")
    assert passes(
        may_copy_to_host,
        "return x.to(self.home, non_blocking=self.quick)",
        rest="def g(self):\n    self.home = 'cpu'\n    self.quick: bool = True",
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return DataLoader(x, pin_memory=True, collate_fn=n)", True),
        ("return DataLoader(x, pin_memory=n, collate_fn=n)", True),
        ("return DataLoader(x, pin_memory=False, pin_memory_device='cuda')", True),
        ("return {'pin_memory': True}", True),
        ("return x.pin_memory('cuda')", True),
        ("return DataLoader(x, pin_memory=False)", False),
        ("return torch.empty(n, pin_memory=True)", False),
        ("return x.pin_memory()", False),
    ],
)
def test_pinning_in_vain(body: str, *, expected: bool) -> None:
    assert passes(may_pin_in_vain, body) is expected


def test_words_of_pinning_in_vain() -> None:
    for text in (
        "pin_memory_device='cuda'",
        "collate_fn=f",
        "batch_size=None",
        '"batch_size": None',
        "x.pin_memory(device)",
    ):
        assert UNPINNED.search(text)
    assert not UNPINNED.search("DataLoader(x, batch_size=3, pin_memory=True)\nx.pin_memory()")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for x in loader:\n    yield x.pin_memory().cuda()", True),
        ("for x, y in loader:\n    p = y[0].unsqueeze(0).pin_memory()\n    yield p.to(n)", True),
        ("return x.pin_memory().cuda()", False),
        ("for i in range(n):\n    yield torch.empty(n).pin_memory().cuda()", False),
        ("for x in loader:\n    yield x.pin_memory()", False),
        ("for x in loader:\n    yield x.cuda()", False),
    ],
)
def test_pinning_and_copying(body: str, *, expected: bool) -> None:
    assert passes(may_pin_and_copy, body) is expected


def test_pinning_for_a_caller() -> None:
    rest = "for y in loader:\n    f(None, y, 1, 'cuda', None).cuda()"
    assert passes(may_pin_and_copy, "return x.pin_memory()", rest=rest)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("kernel[n, 32](x)", True),
        ("GO(x)", True),
        ("self.launch(x)", True),
        ("kernel(x)", False),
        ("return x[n, 32]", False),
    ],
)
def test_launches(body: str, *, expected: bool) -> None:
    above = "GO = kernel[1, 2]\n\n\ndef init(self):\n    self.launch = kernel[1, 2]\n"
    assert passes(may_launch, body, above=above) is expected


def test_words_of_launches() -> None:
    assert LAUNCH.search("kernel[\n    3, 4\n](x)")
    assert LAUNCH.search("go = kernel[3, 4]")
    assert not LAUNCH.search("y = f(x)[0] + g(x[1])")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return torch.nn.DataParallel(x)", True),
        ("wrap = torch.nn.DataParallel if n else list\nreturn wrap(x)", True),
        ("return data_parallel(x, n)", True),
        ("return isinstance(x, torch.nn.DataParallel)", False),
        ("return type(x) == DataParallel", False),
        ("return x.module", False),
    ],
)
def test_wrapped_models(body: str, *, expected: bool) -> None:
    assert passes(may_wrap, body) is expected


def test_wrapped_by_another_name() -> None:
    above = "from torch.nn import DataParallel as Parallel"
    assert passes(may_wrap, "return Parallel(x)", above=above)


CLEAR = """
def clear():
    torch.cuda.empty_cache()


def tidy():
    clear()
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for x in loader:\n    torch.cuda.empty_cache()", True),
        ("for x in loader:\n    tidy()", True),
        ("for x in loader:\n    self.tidy()", True),
        ("for x in loader:\n    n()", False),
        ("torch.cuda.empty_cache()", False),
        ("for x in loader:\n    pass\ntidy()", False),
    ],
)
def test_caches_that_are_emptied(body: str, *, expected: bool) -> None:
    assert passes(may_empty_caches, body, rest=CLEAR) is expected


def test_caches_that_are_emptied_under_other_names() -> None:
    loop = "for x in loader:\n    drop()"
    assert passes(may_empty_caches, loop, above="from torch.cuda import empty_cache as drop")
    assert passes(may_empty_caches, loop, above="drop = torch.cuda.empty_cache")
    handed = "for x in loader:\n    n()"
    assert passes(may_empty_caches, handed, rest=CLEAR + "\n\nf(0, 0, tidy, 0, 0)\n")
    once, head = "torch.cuda.empty_cache()", "def training_step(self, batch):"
    assert passes(may_empty_caches, once, head=head)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for y in loader:\n    x.backward(retain_graph=True)", True),
        ("for y in loader:\n    x.backward(**n)", True),
        ("for y in loader:\n    step(x)", True),
        ("for y in loader:\n    x.backward()", False),
        ("x.backward(retain_graph=True)", False),
    ],
)
def test_graphs_that_are_kept(body: str, *, expected: bool) -> None:
    rest = "def step(loss):\n    loss.backward(retain_graph=True)\n"
    assert passes(may_retain_graphs, body, rest=rest) is expected


def test_arguments_of_calls() -> None:
    source = "def f(a):\n    pass\n\n\nf(g(1), h((2)))\nx.f(3)\n# f(4)\nrf(5)\n"
    assert list(arguments_of_calls(source, "f")) == ["g(1), h((2)))", "3)"]
