"""Which functions may keep parts of graphs from one iteration to the next: a sieve."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest

from memlint.analysis.places.retention import may_retain

HELPERS = """
class Meter:
    def update(self, value, n):
        self.total += value * n


def step(model, x):
    model(x).backward()


def shown(value):
    return value
"""


def may(body: str, *, name: str = "f", helpers: str = HELPERS, more: str = "") -> bool:
    head = f"def {name}(self, model, loader, losses, meter):"
    source = f"import torch\n{helpers}\n\n{head}\n{indent(body, '    ')}\n{more}"
    function = next(
        one
        for one in ast.parse(source).body
        if isinstance(one, ast.FunctionDef) and one.name == name
    )
    return may_retain(function, source, source)


@pytest.mark.parametrize(
    "body",
    [
        "for x in loader:\n    loss = model(x)\n    loss.backward()\n    total += loss",
        "for x in loader:\n    loss = model(x)\n    loss.backward()\n    total = total + loss",
        "while True:\n    torch.autograd.backward(loss)\n    losses.append(loss)",
        "for x in loader:\n    loss.backward()\n    losses[x] = loss",
        "for x in loader:\n    loss.backward()\n    meter.update(loss, len(x))",
        "for x in loader:\n    step(model, x)\n    losses += [model(x)]",
        "self.manual_backward(loss)\nself.losses.append(loss)",
        "def closure():\n    nonlocal total\n    total += loss\nfor x in loader:\n"
        "    loss.backward()\n    closure(loss)",
    ],
)
def test_what_may_retain(body: str) -> None:
    assert may(body)


@pytest.mark.parametrize(
    "body",
    [
        "for x in loader:\n    loss = model(x)\n    loss.backward()\n    total += loss.item()",
        "for x in loader:\n    loss.backward()\n    v = loss.detach()\n    losses.append(v)",
        "for x in loader:\n    loss.backward()\n    total += float(loss)",
        "for x in loader:\n    loss.backward()\n    n += 1",
        "for x in loader:\n    loss.backward()\n    losses['last'] = loss",
        "for x in loader:\n    loss.backward()\n    shown(loss)",
        "for x in loader:\n    losses.append(model(x))",
        "for x in loader:\n    loss.backward()",
        "loss.backward()\nself.steps += 1",
    ],
)
def test_what_does_not(body: str) -> None:
    assert not may(body)


def test_outputs_of_an_evaluation() -> None:
    body = "for x in loader:\n    losses.append(model(x))"
    assert may(body, name="validate", helpers="")
    assert may("model.eval()\n" + body, helpers="")
    assert not may("for x in loader:\n    losses.append(model(x).item())", name="validate")
    assert not may(body, name="validate", helpers="import pytest\n")
