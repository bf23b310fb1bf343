"""Which functions may view a tensor with exchanged axes."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.view import may_view_exchanged


def views(text: str, more: str = "") -> bool:
    node = ast.parse(text).body[0]
    around = text
    if isinstance(node, ast.ClassDef):
        node = node.body[-1]
    return may_view_exchanged(node, around, f"{text}\n{more}")


def body(text: str) -> str:
    return "def f(x, y):\n" + "".join(f"    {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        "return x.transpose(1, 2).view(-1)",
        "y = x.t()\nreturn y.eq(0)[:2].view(-1)",
        "y = rearrange(x, 'a b -> b a')\nreturn drop(y).view_as(x)",
        "swap = lambda z: z.mT\nreturn swap(x).view(-1)",
        "if y:\n    x = x.permute(1, 0)\nreturn x.view(-1)",
        "for i in y:\n    x = x.view(-1)\n    x = x.swapaxes(0, 1)",
        "rows = []\nrows.append(x.T)\nreturn rows[0].view(-1)",
        "def turned(z):\n    return z.t()\nreturn turned(x).view(-1)",
        "self.kept = x.t()\nreturn self.kept.view(-1)",
    ],
)
def test_places(text: str) -> None:
    assert views(body(text))


@pytest.mark.parametrize(
    "text",
    [
        "return x.view(-1).t()",
        "x = x.view(2, 3).transpose(0, 1)\nreturn x.contiguous().view(-1)",
        "return (x @ y.t()).view(-1)",
        "y = x.t()\ny = torch.softmax(y, -1)\nreturn y.view(-1)",
        "n = x.t().shape\nreturn y.view(n)",
        "if y:\n    return x.t()\nreturn x.view(-1)",
    ],
)
def test_no_places(text: str) -> None:
    assert not views(body(text))


FLAT = body("return x.view(-1)")


def test_what_callers_give() -> None:
    assert views(FLAT, "def g(a):\n    return f(a.t(), a)\n")
    assert views(FLAT, "def g(a):\n    b = a.t()\n    return f(y=a, x=b)\n")
    assert views(FLAT, "a = made.t()\nf(a, a)\n")
    assert not views(FLAT, "def g(a):\n    return f(a, a.t())\n")
    assert not views(FLAT, "def g(a):\n    return f(a.t().contiguous(), a)\n")
    assert not views(FLAT, "def g(a):\n    return a.t()\n")


def test_what_helpers_give() -> None:
    text = body("return turned(x).view(-1)")
    assert views(text, "def turned(z):\n    return z.t()\n")
    assert views(text, "def turned(z):\n    return other(z)\n\ndef other(z):\n    return z.t()\n")
    assert not views(text, "def turned(z):\n    return z.t().contiguous()\n")


LAYER = "class Flat:\n    def forward(self, x):\n        return x.view(-1)\n"


def test_what_layers_are_given() -> None:
    user = (
        "class Net:\n    def __init__(self):\n        self.flat = {}\n\n"
        "    def forward(self, x):\n        return self.flat(x{})\n"
    )
    assert views(LAYER, user.format("Flat()", ".t()"))
    assert not views(LAYER, user.format("Flat()", ""))
    assert not views(LAYER, user.format("Other()", ".t()"))


def test_layers_whose_results_are_dense() -> None:
    text = "class A:\n    def f(self, x):\n        return self.proj(x.t()).view(-1)\n"
    assert views(text)
    assert not views(text, "self.proj = nn.Linear(3, 4)")


def test_attributes_that_other_methods_set() -> None:
    text = "class A:\n    def f(self, x):\n        return self.kept.view(-1)\n"
    assert views(text, "    def g(self, x):\n        self.kept = x.t()\n")
    assert not views(text, "    def g(self, x):\n        self.kept = x\n")


def test_other_names_of_what_exchanges() -> None:
    assert views(
        body("return turn(x, 'a b -> b a').view(-1)"), "from einops import rearrange as turn\n"
    )
    assert not views(body("return turn(x, 'a b -> b a').view(-1)"))
