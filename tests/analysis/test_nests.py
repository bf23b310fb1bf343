"""What the interpreter tells of loops."""

from __future__ import annotations

import ast

from memlint.analysis.events import Event, LoopNest, ProgramEnd
from memlint.analysis.interpreter import Interpreter
from memlint.analysis.values import Tensor, Unknown, alternatives
from memlint.source.model import Source


def events(text: str) -> list[Event]:
    interpreter = Interpreter(Source("program.py", text), ast.parse(text), "auto")
    return list(interpreter.events_of_program())


def nests(text: str) -> list[LoopNest]:
    return [event for event in events(text) if isinstance(event, LoopNest)]


def test_the_program_ends_once() -> None:
    told = events("x = 1\n")
    assert [type(event) for event in told].count(ProgramEnd) == 1
    assert isinstance(told[-1], ProgramEnd)


def test_a_nest_is_told_once_with_all_that_was_learnt() -> None:
    text = (
        "import numpy as np\n"
        "a = np.zeros((4, 5))\n"
        "for i in range(4):\n"
        "    for j in range(5):\n"
        "        a[i, j] = j\n"
        "    a = np.zeros((5, 4)).T\n"
    )
    (nest,) = nests(text)
    (access,) = nest.accesses
    layouts = {one.layout for one in alternatives(access.value) if isinstance(one, Tensor)}
    assert len(layouts) == 2


def test_a_value_of_the_iteration_before_is_seen() -> None:
    text = (
        "import numpy as np\n"
        "def f(rows, first):\n"
        "    for i in range(9):\n"
        "        if not first:\n"
        "            last[i] = 1\n"
        "        last = np.zeros(9)\n"
    )
    values = [access.value for nest in nests(text) for access in nest.accesses]
    assert any(isinstance(one, Tensor) for value in values for one in alternatives(value))


def test_calls_are_told_apart_from_what_others_may_call() -> None:
    text = (
        "import numpy as np\n"
        "def f(a):\n"
        "    for i in range(9):\n"
        "        a[i] = 1\n"
        "def g():\n"
        "    f(np.zeros(9))\n"
    )
    told = {nest.called: nest.accesses[0].value for nest in nests(text)}
    assert isinstance(told[True], Tensor)
    assert isinstance(told[False], Unknown)


def test_an_object_that_iterates_over_itself_ends() -> None:
    text = (
        "class Bag:\n"
        "    def __iter__(self):\n"
        "        return iter(self)\n"
        "    def show(self):\n"
        "        return [x for x in self]\n"
    )
    assert isinstance(events(text)[-1], ProgramEnd)


def test_trips_of_a_range_between_related_bounds() -> None:
    text = (
        "def f(a, n):\n"
        "    for i in range(len(a)):\n"
        "        for j in range(i - 2, i + 3):\n"
        "            a[j] = 0\n"
    )
    (nest,) = nests(text)
    assert [loop.trips for loop in nest.loops] == [None, 5]
