"""Which functions may map a file to no use."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.mapping import may_map_in_vain


def maps(body: str, more: str = "") -> bool:
    text = "def f(self, path):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return may_map_in_vain(ast.parse(text).body[0], text, f"{text}\n{more}")


@pytest.mark.parametrize(
    "body",
    [
        "return np.array(np.load(path, mmap_mode='r'))",
        "return np.load(path, 'r').copy()",
        "x = np.memmap(path, mode='r')\nreturn torch.tensor(x)",
        "return np.memmap(path, float32, 'c').tolist()",
        "return np.load('x.npz', mmap_mode='r')",
        "for i in path:\n    yield np.load('x.npz')['x'][i]",
        "self.archive = np.load('x.npz')",
        "return torch.load(BytesIO(path), mmap=True)",
        "with open(path) as source:\n    return np.load(source, mmap_mode='r')",
        "options = {'mmap': True}\nbuf = io.BytesIO(path)\nreturn torch.load(buf, **options)",
    ],
)
def test_places(body: str) -> None:
    assert maps(body)


@pytest.mark.parametrize(
    "body",
    [
        "return np.load(path, mmap_mode='r')",
        "return np.array(np.load(path, mmap_mode=None))",
        "x = np.memmap(path, mode='w+')\nreturn np.array(x)",
        "return torch.load(path, mmap=True)",
        "return torch.load(BytesIO(path))",
        "x = np.load('x.npz')\ny = x['y']",
        "return download('x.npz')",
    ],
)
def test_no_places(body: str) -> None:
    assert not maps(body)


def test_what_others_do_with_it() -> None:
    assert maps("return np.load(path, mmap_mode='r')", "def g():\n    return f(1).copy()\n")
    body = "return torch.load(path, mmap=True)"
    assert maps(body, "def g(p):\n    with open(p) as s:\n        return f(s)\n")
    assert not maps(body, "def g(p):\n    with open(p) as s:\n        return f(p)\n")
    assert maps("return np.array(mapped(path, mode='r'))", "from numpy import memmap as mapped\n")
