"""Which functions may save a part of a tensor with all of its storage."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.saved_part import may_save_part


def saves(body: str, more: str = "", head: str = "def f(self, x, path):") -> bool:
    text = head + "\n" + "".join(f"    {line}\n" for line in body.splitlines())
    source = f"{text}\n{more}"
    return may_save_part(ast.parse(text).body[0], source, source)


@pytest.mark.parametrize(
    "body",
    [
        "x = torch.zeros(9)\ntorch.save(x[:3], path)",
        "x = torch.zeros(9)\ntorch.save({'a': [x[0].detach()]}, path)",
        "torch.save(x.chunk(4)[path], path)",
        "for row in torch.zeros(9):\n    pickle.dump(row, path)",
        "for i, part in enumerate(x.unbind(0)):\n    torch.save(part, path)",
        "x = net(x).cpu()\nfor i in range(9):\n    torch.save(obj=x[i], f=path)",
        "return pickle.dumps(torch.rand(9).view(3, 3)[0])",
        "item = dict(row=torch.rand(9)[1])\ntorch.save(item, path)",
    ],
)
def test_places(body: str) -> None:
    assert saves(body)


@pytest.mark.parametrize(
    "body",
    [
        "torch.save(x, path)",
        "x = torch.zeros(9)\ntorch.save(x, path)",
        "x = torch.zeros(9)\ntorch.save(x[:3].clone(), path)",
        "x = torch.zeros(9)\ntorch.save(x[1:], path)",
        "x = torch.zeros(9)\ntorch.save(x[x > 0], path)",
        "torch.save({'model': net.state_dict()['a']}, path)",
        "x = np.zeros(9)\npickle.dump(x[:3], path)",
        "x = torch.zeros(9)\nself.save(x[:3])",
        "x = torch.zeros(9)\njson.dump(x[:3], path)",
        "x = torch.zeros(9)\npath.put(x[0])",
    ],
)
def test_no_places(body: str) -> None:
    assert not saves(body)


def test_queues_of_processes() -> None:
    body = "x = torch.zeros(9)\npath.put(x[0])"
    assert saves(body, "import torch.multiprocessing as mp\n")


def test_what_callers_give() -> None:
    body = "torch.save({'value': value}, name)"
    head = "def write(name, value):"
    assert saves(body, "def g():\n    write('a', torch.zeros(9)[:3])\n", head)
    assert saves(body, "def g():\n    for r in torch.zeros(9):\n        write('a', r)\n", head)
    assert not saves(body, "def g():\n    write('a', torch.zeros(9))\n", head)
    assert not saves(body, "def g():\n    return torch.zeros(9)[:3]\n", head)


def test_what_helpers_give() -> None:
    assert saves("torch.save(head(x), path)", "def head(x):\n    return torch.rand(9)[:3]\n")
    assert not saves("torch.save(head(x), path)", "def head(x):\n    return torch.rand(9)\n")


def test_attributes_and_other_names() -> None:
    body = "torch.save(self.bank[: self.used], path)"
    assert saves(body, "        self.bank = torch.zeros(9)\n")
    assert not saves(body, "        self.bank = []\n")
    assert saves("write(torch.rand(9)[0], path)", "from torch import save as write\n")
    assert saves("t.save(t.rand(9)[0], path)", "import torch as t\n")
