"""Which functions may make the host wait: the sieve of ``sync-in-loop``."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest

from memlint.analysis.leading_names import called_otherwise, leading_to
from memlint.analysis.places.sync import TRAINING_CALL, may_wait

HELPERS = """
def number(part):
    return part.mean().item()


def score(text):
    return len(text)


def step(net, x):
    net(x).mean().backward()
"""


def may(body: str, *, head: str = "def f(net, x, loader, n):", helpers: str = HELPERS) -> bool:
    source = f"import torch\n\nDEVICE = 'cuda'\n{helpers}\n\n{head}\n{indent(body, '    ')}\n"
    function = ast.parse(source).body[-1]
    return may_wait(function, source, source)


@pytest.mark.parametrize(
    "body",
    [
        "for x in loader:\n    loss = net(x)\n    loss.backward()\n    print(loss)",
        "while True:\n    optimizer.zero_grad()\n    print(float(loss))",
        "for x in loader:\n    step(net, x)",
        "for x in loader:\n    self.step(x)",
        "scores = net(x)\nfor i in range(n):\n    yield scores[i].item()",
        "scores = net(x)\nfor i in range(n):\n    part = scores[i].detach()\n    yield float(part)",
        "return [s.cpu() for s in net(x)]",
        "for i, (a, b) in enumerate(zip(net(x), x)):\n    yield a.tolist()",
        "scores = net(x)\nfor i in range(n):\n    yield number(scores[i])",
        "while n:\n    token = net(x)[:, -1].argmax(-1)\n    n = token.item()",
        "for _ in range(n):\n    _, token = torch.max(net(x), dim=1)\n    x = int(token)",
        "s = net(x)\nfor i in range(n):\n    yield s[i].to('cpu')",
    ],
)
def test_what_may_wait(body: str) -> None:
    assert may(body)


@pytest.mark.parametrize(
    "body",
    [
        "return net(x).item()",
        "for x in loader:\n    print(net(x).mean().item())",
        "for name in sorted(n):\n    yield int(name)",
        "for line in open(x):\n    yield float(line.strip())",
        "for k, v in n.items():\n    yield k, int(v)",
        "for i in range(n):\n    yield int(i)",
        "s = [1, 2]\nfor i in range(n):\n    yield int(s[i])",
        "s = net(x)\nfor i in range(n):\n    yield s[i].to(torch.float16)",
        "s = net(x)\nfor i in range(n):\n    yield score(s[i])",
        "step(net, x)\nfor i in range(n):\n    print(i)",
    ],
)
def test_what_does_not(body: str) -> None:
    assert not may(body)


def test_without_a_device_nothing_waits() -> None:
    source = '"""Runs on cuda."""\ndef f(loader):\n    for x in loader:\n        x.backward()\n'
    function = ast.parse(source).body[-1]
    assert not may_wait(function, source, source)
    assert may_wait(function, source, source + "\nDEVICE = 'cuda'\n")


def test_a_step_that_is_handed_in() -> None:
    body = "for x in loader:\n    n(net, x)"
    assert not may(body)
    assert may(body, helpers=HELPERS + "\n\ndef main(net):\n    f(net, None, [], step)\n")


def test_names_that_lead_to_a_word() -> None:
    source = (
        "def a(x):\n    x.backward()\n\n\ndef b(x):\n    a(x)\n\n\n"
        "class C:\n    def forward(self, x):\n        return b(x)\n\n"
        "    def backward(self, x): ...\n"
    )
    found = leading_to(source, TRAINING_CALL)
    assert found == {"a", "b", "forward"}
    assert called_otherwise(source, found)
    assert not leading_to("# x.backward()\n", TRAINING_CALL)


def test_what_is_iterated_may_come_from_what_is_made_of_it() -> None:
    circle = (
        "parts = list(n)\nfor a, b in zip(parts, parts):\n    parts = list(a)\n    print(a.item())"
    )
    assert may(f"scores = net(x)\n{circle}\nfor i in range(n):\n    yield scores[i].item()")
