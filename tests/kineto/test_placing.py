"""Calls are placed where the source leaves no choice, and nowhere else."""

from __future__ import annotations

import ast
import textwrap

import pytest

from memlint.kineto.frames import Call, Called, Function
from memlint.kineto.functions import Bodies
from memlint.kineto.placing import Placer

ANY = Call(Called.ANYHOW, "")


def named(name: str) -> Call:
    return Call(Called.NAMED, name)


def operator(name: str) -> Call:
    return Call(Called.OPERATOR, name)


def calls_of(text: str) -> list[Call]:
    """``relu @add *`` are a call by its name, an operator, and a call by any name."""
    made = {"*": lambda _: ANY, "@": lambda one: operator(one[1:])}
    return [made.get(one[0], named)(one) for one in text.split()]


def placed(source: str, calls: str, *, whole: bool = True) -> str:
    """The lines of the calls within the function, ``?`` where there is none."""
    tree = ast.parse(textwrap.dedent(source).strip())
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    body = Bodies(tree).find(Function("f.py", function.lineno, function.name))
    assert body is not None
    found = Placer(body).place(calls_of(calls), whole=whole)
    return " ".join("?" if one is None else str(one.node.lineno) for one in found)


STRAIGHT = """
def f(x, y):
    a = x.relu()
    b = self.first(a)
    c = a + b
    d = self.second(c).relu()
    return c + d
"""


def test_straight() -> None:
    assert placed(STRAIGHT, "relu * @add * relu @add") == "2 3 4 5 5 6"


def test_sums_of_numbers_have_no_events() -> None:
    """One sum of two was of numbers: which one, is not known."""
    assert placed(STRAIGHT, "relu * * relu @add") == "2 3 5 5 6"
    assert placed("def f(x, n):\n a = n + 1\n b = x + n\n return b", "@add") == "?"


def test_whatever_comes_before_the_first_call_that_is_known() -> None:
    """A list of calls that begins in the middle tells less."""
    assert placed(STRAIGHT, "relu", whole=True) == "2"
    assert placed(STRAIGHT, "relu", whole=False) == "?"


LOOP = """
def f(xs, y):
    for x in xs:
        a = x.t()
        b = a.t()
        y.append(b)
    return y.t()
"""


def test_loops() -> None:
    assert placed(LOOP, "t t append t t append") == "3 4 5 3 4 5"
    # The last one may be that behind the loop, or that of another turn.
    assert placed(LOOP, "t t append t") == "3 4 5 ?"


def test_turns_of_a_loop() -> None:
    source = """
    def f(xs):
        for x in xs:
            a = x.t() + 1
            b = x.t().relu() + a
            c = b.t()
    """
    assert placed(source, "t @add t relu @add t t @add t relu @add t") == (
        "3 3 4 4 4 5 3 3 4 4 4 5"
    )


BRANCHES = """
def f(a, b):
    if a.shape[0] > 3:
        c = a.t()
        return a * c
    c = b.t()
    return a - c
"""


@pytest.mark.parametrize(("calls", "lines"), [("t @mul", "3 4"), ("t @sub", "? 6")])
def test_branches(calls: str, lines: str) -> None:
    """What comes after a branch may have been preceded by it."""
    assert placed(BRANCHES, calls) == lines


def test_a_branch_in_a_loop() -> None:
    source = """
    def f(xs):
        for x in xs:
            if x.dim():
                x = x.t()
            else:
                x = x.t().relu()
            x.sum()
    """
    assert placed(source, "dim t sum dim t relu sum") == "3 ? 7 3 ? 6 7"


def test_an_exception_breaks_the_turns() -> None:
    source = """
    def f(x):
        for i in range(3):
            try:
                a = x.t()
                b = x.t()
            except ValueError:
                pass
    """
    assert placed(source, "range t t t") == "2 ? ? ?"


def test_tests_of_truth() -> None:
    source = """
    def f(x):
        if x > 3:
            y = float(x)
        while x.sum():
            x = x - 1
        return bool(x)
    """
    assert placed(source, "@gt @is_nonzero @item sum @is_nonzero @sub") == "2 2 3 4 4 5"


def test_iterations_and_comprehensions() -> None:
    source = """
    def f(loader):
        for batch in loader:
            batch.sum()
    """
    assert placed(source, "__iter__ __next__ sum __next__ sum __next__") == "2 2 3 2 3 2"


def test_a_call_that_is_not_in_the_source() -> None:
    assert placed("def f(x):\n return g(x)", "relu") == "?"


def test_nested_functions_have_calls_of_their_own() -> None:
    source = """
    def f(x):
        def g(y):
            return y.t()
        h = lambda z: z.t()
        return x.t()
    """
    assert placed(source, "t") == "5"


def test_functions_are_found_by_their_first_line() -> None:
    tree = ast.parse(
        "class A:\n    @dec\n    def f(self):\n        pass\n\n    def f(self):\n        pass\n"
        "x = [y.t() for y in z]\n"
    )
    bodies = Bodies(tree)
    names = {2: "A.f", 6: "A.f"}
    for line, name in names.items():
        body = bodies.find(Function("a.py", line, "f"))
        assert body is not None
        assert (body.name, body.line) == (name, line)
    # A function that ran already is named with the line that it had reached.
    body = bodies.find(Function("a.py", 7, "f"))
    assert body is not None
    assert body.line == 6
    assert bodies.find(Function("a.py", 9, "g")) is None
    comprehension = bodies.find(Function("a.py", 8, "<listcomp>"))
    assert comprehension is not None
    assert comprehension.name == "<listcomp>"
