"""Programs made at random are run, and their calls placed: where a line is told, it is right."""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterator
from random import Random
from typing import Any

from memlint.kineto.frames import Call, Called, Function
from memlint.kineto.functions import Bodies
from memlint.kineto.placing import Placer

NAMES = tuple("abcdeghijkl")
MOST_CALLS = 200


class Recorder:
    """Stands for all objects of a program: notes which of its methods is called on which line.

    ``p`` is the next of a list of decisions, ``n`` the number of turns of a loop."""

    def __init__(self, decisions: list[bool]) -> None:
        self._decisions = iter(decisions * 50)
        self.calls: list[tuple[str, int]] = []

    @property
    def p(self) -> bool:
        return next(self._decisions, False)

    @property
    def n(self) -> range:
        return range(1 + self.p + self.p)

    def __getattr__(self, name: str) -> Any:
        def method(*_: Any) -> Recorder:
            if len(self.calls) >= MOST_CALLS:
                raise StopIteration
            self.calls.append((name, sys._getframe(1).f_lineno))
            return self

        return method


def block(random: Random, depth: int, *, looped: bool) -> list[str]:
    """Statements, a few of them with statements of their own."""
    rows: list[str] = []
    for _ in range(random.randint(1, 4)):
        kind = random.choice(KINDS) if depth else "call"
        rows += statement(random, kind, depth - 1, looped=looped)
    return rows


KINDS = ("call", "call", "call", "if", "else", "for", "while", "try", "leave", "choice")


def statement(random: Random, kind: str, depth: int, *, looped: bool) -> list[str]:
    one, other = (f"x.{random.choice(NAMES)}" for _ in range(2))

    def inner(*, loops: bool = False) -> list[str]:
        return indented(block(random, depth, looped=looped or loops))

    match kind:
        case "if":
            return ["if x.p:", *inner()]
        case "else":
            return ["if x.p:", *inner(), "else:", *inner()]
        case "for":
            return ["for _ in x.n:", *inner(loops=True)]
        case "while":
            return ["while x.p:", *inner(loops=True)]
        case "try":
            failing = ["    if x.p: raise ValueError"]
            return ["try:", *inner(), *failing, *inner(), "except ValueError:", *inner()]
        case "leave":
            return [f"if x.p: {random.choice(['break', 'continue']) if looped else 'return'}"]
        case "choice":
            return [f"y = ({one}()", f"     if x.p else {other}())"]
        case _:
            return [random.choice([f"{one}()", f"{one}().{other[2:]}()", f"y = {one}({other}())"])]


def indented(rows: list[str]) -> list[str]:
    return [f"    {row}" for row in rows]


def run(text: str, decisions: list[bool]) -> list[tuple[str, int]]:
    scope: dict[str, Any] = {}
    exec(compile(text, "program.py", "exec"), scope)
    recorder = Recorder(decisions)
    with contextlib.suppress(StopIteration):
        scope["f"](recorder)
    return recorder.calls


def renamed(calls: list[tuple[str, int]], hidden: frozenset[str]) -> Iterator[Call]:
    """The calls as a profiler tells them: of some the names in the source are not known."""
    for name, _ in calls:
        yield Call(Called.ANYHOW, "") if name in hidden else Call(Called.NAMED, name)


def told_of(seed: int) -> tuple[int, int]:
    """How many calls of a program were made, and how many were placed: all of them rightly."""
    random = Random(seed)
    text = (
        "def f(x):\n"
        + "\n".join(indented(block(random, random.randint(1, 3), looped=False)))
        + "\n"
    )
    calls = run(text, [random.random() < 0.5 for _ in range(40)])
    start = random.choice([0, 0, random.randint(0, 12)])
    calls = calls[start:][: random.choice([MOST_CALLS, random.randint(1, 12)])]
    hidden = random.choice([frozenset(), frozenset("c"), frozenset("bc")])
    body = Bodies(ast.parse(text)).find(Function("program.py", 1, "f"))
    assert body is not None
    found = Placer(body).place(list(renamed(calls, hidden)), whole=start == 0)
    for (name, line), one in zip(calls, found, strict=True):
        assert one is None or one.node.lineno == line, (seed, name, line, one.node.lineno, text)
    return len(calls), sum(one is not None for one in found)


def test_lines_that_are_told_are_right() -> None:
    counts = [told_of(seed) for seed in range(3000)]
    made, placed = (sum(column) for column in zip(*counts, strict=True))
    assert made > 10_000
    # Real programs have more names, and leave less open.
    assert placed > 0.2 * made
