"""The sieve must let pass whatever may be an accumulation, and little else."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.growing import may_grow, may_join


def function(body: str, head: str = "def f(x, out, parts):") -> str:
    return head + "\n" + "".join(f"    {line}\n" for line in body.splitlines())


def looped(body: str, head: str = "for x in parts:") -> str:
    return function(head + "\n" + "".join(f"    {line}\n" for line in body.splitlines()))


def grows(text: str, more: str = "") -> bool:
    source = f"{text}\n{more}"
    place = ast.parse(text).body[-1]
    if not isinstance(place, (ast.FunctionDef, ast.ClassDef)):
        place = ast.parse(text)  # type: ignore[assignment]
    elif isinstance(place, ast.ClassDef):
        place = place.body[-1]
    return may_grow(place, text, source)


@pytest.mark.parametrize(
    "text",
    [
        "    out = np.append(out, x)\n",
        "    out = (\n        np.append(out, x)\n    )\n",
        "    f(key=np.append(out, x))\n",
        "    out = x if y else append(out, x)\n",
        "    out = torch.cat([out, x])\n",
        "    out = np.r_[out, x]\n",
        "from numpy import append\n",
        "from torch import cat as join\n",
    ],
)
def test_texts_that_join(text: str) -> None:
    assert may_join(text)


@pytest.mark.parametrize(
    "text", ["    rows.append(out)\n", "for x in y:\n    rows.append(x)\n", "category = stacked\n"]
)
def test_texts_that_do_not(text: str) -> None:
    assert not may_join(text)


@pytest.mark.parametrize(
    "body",
    [
        "out = torch.cat([out, x])",
        "out = np.append(out, x)",
        "longer = torch.cat([out, x])\nout = longer",
        "for y in x:\n    out = torch.cat([out, y])",
        "self.rows: Tensor = torch.vstack([self.rows, x])",
        "out['rows'] = torch.cat([out['rows'], x])",
        "out = np.r_[out, x]",
        "def inner():\n    y = x\nout = torch.cat([out, x])",
    ],
)
def test_growth_in_a_loop(body: str) -> None:
    assert grows(looped(body))
    assert grows(looped(body, "while x:"))


@pytest.mark.parametrize(
    "body",
    [
        "y = torch.cat([out, x])",
        "out = torch.cat(parts)",
        "out = torch.cat([out[1:], x])",
        "out = x\nout = torch.cat([out, x])",
        "out.append(x)",
    ],
)
def test_no_growth_in_a_loop(body: str) -> None:
    assert not grows(looped(body))


@pytest.mark.parametrize(
    "head", ["for x in (a, b):", "for i in range(4):", "for layer in self.layers:"]
)
def test_no_growth_in_short_loops(head: str) -> None:
    assert not grows(looped("out = torch.cat([out, x])", head))


def test_growth_outside_of_functions() -> None:
    assert grows("for x in y:\n    out = np.append(out, x)\n")
    assert not grows("out = np.append(out, x)\n")


def test_growth_under_another_name() -> None:
    text = looped("out = join([out, x])")
    assert grows(text, "from torch import cat as join")
    assert grows(text, "join = torch.cat")
    assert not grows(text)


PUSH = function("return torch.cat([out, x])", "def push(out, x):")
MERGE = function("y = torch.cat([out, x])\nreturn y.sum()", "def push(out, x):")


def test_growth_by_the_loop_of_a_caller() -> None:
    caller = looped("out = push(out, x)")
    assert grows(PUSH, caller)
    assert not grows(MERGE, caller)
    assert not grows(PUSH, looped("y = push(out, x)"))
    assert not grows(PUSH, function("out = push(out, x)"))
    assert not grows(PUSH)


def test_growth_by_the_loop_of_a_callers_caller() -> None:
    middle = function("return push(out, x)", "def through(out, x):")
    assert grows(PUSH, middle + looped("out = through(out, x)"))
    assert not grows(PUSH, middle + looped("y = through(out, x)"))


def test_growth_by_the_loop_of_who_is_given_the_function() -> None:
    assert grows(PUSH, "table = {'push': push}\n" + looped("out = step(out, x)"))
    assert not grows(PUSH, "table = {'push': push}\n" + looped("y = step(out, x)"))


def test_growth_by_methods() -> None:
    def method(name: str) -> str:
        body = "self.rows = torch.cat([self.rows, x])"
        inside = function(body, f"def {name}(self, x):").replace("\n", "\n    ")
        return f"class A:\n    {inside}\n"

    assert grows(method("update"))
    assert not grows(method("rebuild"))
    assert grows(method("rebuild"), looped("out.rebuild(x)"))
    assert not grows(method("rebuild"), function("out.rebuild(x)"))


def test_growth_by_a_network_that_is_called() -> None:
    text = f"class A:\n    {PUSH}".replace("push(", "forward(self, ").replace(
        "\n    r", "\n        r"
    )
    assert grows(text, looped("out = net(out, x)"))
    assert not grows(text, looped("y = net(out, x)"))
