"""Which functions may make a tensor of a list of arrays."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.array_list import may_be_of_arrays


def makes(body: str, more: str = "", head: str = "def f(self, x, y):") -> bool:
    text = head + "\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return may_be_of_arrays(ast.parse(text).body[0], f"{text}\n{more}", f"{text}\n{more}")


@pytest.mark.parametrize(
    "body",
    [
        "return torch.tensor([np.load(p) for p in x])",
        "rows = []\nfor p in x:\n    rows.append(cv2.imread(p))\nreturn torch.as_tensor(rows)",
        "rows = [None] * 3\nrows[0] = y.numpy()\nreturn FloatTensor(rows)",
        "a, b = zip(*[(np.eye(3), i) for i in x])\nreturn torch.tensor(data=a)",
        "return torch.LongTensor(np.nonzero(np.asarray(x)))",
        "seen = {'a': []}\nseen['a'].append(np.eye(3))\nreturn torch.tensor(seen['a'])",
        "y = np.eye(3)\nif x:\n    y = [y]\nreturn torch.Tensor(y)",
    ],
)
def test_places(body: str) -> None:
    assert makes(body)


@pytest.mark.parametrize(
    "body",
    [
        "return torch.tensor(np.load(x))",
        "return torch.tensor([len(np.load(p)) for p in x])",
        "return torch.tensor(np.stack([np.load(p) for p in x]))",
        "return np.asarray([np.load(p) for p in x])",
        "return torch.tensor([1, 2])",
        "return torch.tensor([torch.eye(3) for p in x])",
        "return torch.tensor([np.eye(3).shape[0]])",
        "return torch.tensor(x)",
        "return torch.tensor(self.model.config.means)",
    ],
)
def test_no_places(body: str) -> None:
    assert not makes(body)


def test_annotations() -> None:
    assert makes("return torch.tensor([x])", head="def f(x: np.ndarray):")
    assert not makes("return torch.tensor([x])", head="def f(x: int):")


def test_what_is_elsewhere() -> None:
    assert makes("return torch.tensor([x])", "def g(p):\n    return f(np.load(p))\n")
    assert not makes("return torch.tensor([x])", "def g(p):\n    return np.load(p)\n")
    assert makes("return torch.tensor([one(p) for p in x])", "def one(p):\n    return np.load(p)\n")
    assert not makes("return torch.tensor([one(p) for p in x])", "def one(p):\n    return p\n")
    assert makes("return torch.tensor(self.rows)", "    self.rows.append(np.eye(3))\n")
    assert not makes("return torch.tensor(self.rows)", "    np.eye(3)\n")
    assert makes("return make([np.eye(3)])", "from torch import tensor as make\n")
    assert makes("return torch.tensor([asarray(x)])", "from numpy import asarray\n")
    assert makes("return torch.tensor([onp.load(x)])", "import numpy as onp\n")


def test_what_an_attribute_holds() -> None:
    body = "return torch.tensor(self.rows)"
    filled = "class A:\n    def add(self, p):\n        self.rows.append(np.load(p))\n"
    assert makes(body, filled)
    assert not makes(body, filled.replace("np.load(p)", "len(np.load(p))"))
    assert not makes(body, "class A:\n    rows = np.eye(3)\n")
    assert makes(body, "class A:\n    @property\n    def rows(self):\n        return [np.eye(3)]\n")


def test_what_comes_from_modules_of_which_nothing_is_known() -> None:
    known = "from numpy import load as made\n"
    assert makes("return torch.tensor([made(p) for p in x])", known)
    unknown = "from somewhere import made\nz = np.eye(3)\n"
    assert not makes("return torch.tensor([made(p) for p in x])", unknown)
