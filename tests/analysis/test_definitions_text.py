"""Functions by the lines of a source, and what they are called by."""

from __future__ import annotations

import ast

from memlint.analysis.definitions_text import (
    definitions,
    is_called,
    names_for,
    owner_of,
    places_of,
)

SOURCE = '''import torch


@decorated
def first(
    x,
) -> int:
    """One
without margin."""
    def inner(y):
        return y
# a comment at the margin
    return second(x)


class Net(Base):
    size = 3

    def forward(self, x):
        return third(x)

    # a comment between
    async def fetch(self):
        return self.net(1)

    def __init__(self):
        self.net = Other(3)
        self.layers = ModuleList([
            Block(3),
        ])


for block in net.layers:
    first(block)
'''


def test_functions_and_what_is_outside() -> None:
    known = definitions(SOURCE)
    names = [(one.owner, one.name) for one in known.functions]
    assert names == [("", "first"), ("Net", "forward"), ("Net", "fetch"), ("Net", "__init__")]
    assert "size = 3" in known.outside
    assert "first(block)" in known.outside
    assert "return" not in known.outside


def test_each_function_can_be_parsed() -> None:
    for one in definitions(SOURCE).functions:
        parsed = one.parsed()
        assert isinstance(parsed, (ast.FunctionDef, ast.AsyncFunctionDef))
        assert parsed.name == one.name


def test_what_cannot_be_parsed_is_none() -> None:
    (broken,) = definitions("def f(x):\n    return (\n").functions
    assert broken.parsed() is None


def test_the_names_that_a_name_may_be_behind() -> None:
    assert {"net", "Other"} <= names_for("Other", SOURCE)
    assert {"layers", "block"} <= names_for("Block", SOURCE)
    assert "net" not in names_for("Block", SOURCE)


def test_the_places_of_a_word() -> None:
    assert list(places_of("net", "net.x = Net(net) # netto net_")) == [0, 12]
    assert list(places_of("", "net")) == []


def test_the_class_of_a_method() -> None:
    assert owner_of("class Net(Base):\n    def f(self): pass") == "Net"
    assert owner_of("@decorated\nclass Net:\n    pass") == "Net"
    assert owner_of("def f(): pass") == ""


def test_objects_that_are_made_may_be_called() -> None:
    source = "class A:\n    def forward(self, x): ...\n"
    assert not is_called("forward", "A", source)
    assert is_called("forward", "A", source + "a = A()\n")
    assert is_called("forward", "A", source + "class B(A): ...\n")
    assert not is_called("g", "", "def g(): ...\n")
    assert is_called("g", "", "def g(): ...\nh = g\n")
