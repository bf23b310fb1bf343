"""Which functions may make float64 by default."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.float64 import may_be_float64


def makes(body: str, more: str = "", name: str = "f") -> bool:
    text = f"def {name}(self, x, y):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return may_be_float64(ast.parse(text).body[0], text, f"{text}\n{more}")


@pytest.mark.parametrize(
    "body",
    [
        "return torch.from_numpy(np.random.rand(3, 4))",
        "y = np.linspace(0, 1, x)\nreturn torch.tensor(y * 2)",
        "y = numpy.hamming(x)\nreturn from_numpy(y[None])",
        "rows = []\nrows.append(np.eye(i))\nreturn torch.as_tensor(rows)",
        "image = Image.open(x)\nreturn torch.from_numpy(np.asarray(image) / 255)",
        "return torch.tensor(np.array([0.1, 0.2]))",
        "def inner(z):\n    return torch.tensor(z)\nreturn inner(np.ones(3))",
        "y = np.zeros(3, dtype=np.float32)\nreturn y * np.sqrt(2)",
        "return y.astype('float32') / np.arange(3)",
    ],
)
def test_places(body: str) -> None:
    assert makes(body)


@pytest.mark.parametrize(
    "body",
    [
        "return torch.tensor([1.0, 2.0])",
        "return torch.tensor(0.5)",
        "return torch.from_numpy(np.load(x))",
        "return torch.from_numpy(np.zeros(3)).float()",
        "return torch.tensor(np.zeros(3), dtype=torch.float32)",
        "return torch.from_numpy(np.zeros(3, dtype=np.float32))",
        "return torch.from_numpy(np.zeros(3).astype(np.float32))",
        "return torch.tensor(np.zeros(3).shape)",
        "return torch.tensor(x)",
        "y = np.zeros(3, dtype=np.float32)\nreturn y * math.sqrt(2)",
        "y = np.zeros(3)\nreturn y * np.sqrt(2)",
        "def inner(z):\n    return torch.tensor(z)\nreturn inner(x)",
    ],
)
def test_no_places(body: str) -> None:
    assert not makes(body)


def test_what_helpers_give() -> None:
    body = "return torch.from_numpy(table(x))"
    assert makes(body, "def table(n):\n    return np.eye(n)\n")
    assert makes(
        body, "def table(n):\n    return other(n)\n\ndef other(n):\n    return np.eye(n)\n"
    )
    assert not makes(body, "def table(n):\n    return n\n")


def test_what_callers_give() -> None:
    body = "return torch.from_numpy(x)"
    assert makes(body, "def g(a):\n    return f(np.eye(a))\n")
    assert makes(body, "f(np.eye(3))\n")
    assert not makes(body, "def g(a):\n    return f(a)\n\ndef h():\n    return np.eye(3)\n")


def test_what_names_hold() -> None:
    assert makes("return torch.from_numpy(MEAN)", "MEAN = np.array([0.1, 0.2])")
    assert not makes("return torch.from_numpy(MEAN)", "MEAN = load()")
    assert makes("return torch.tensor(self.table)", "self.table = np.ones(3)")
    assert not makes("return torch.tensor(self.table)", "self.table = np.load(3)")
    assert makes("return make(np.ones(3))", "from torch import from_numpy as make")
    assert makes("return torch.tensor(blank(3))", "from numpy import zeros as blank\n")
