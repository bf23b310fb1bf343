"""Which functions may read a large checkpoint whole."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.load import may_load


def loads(body: str, more: str = "") -> bool:
    text = "def f(self, path):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return may_load(ast.parse(text).body[0], text, f"{text}\n{more}")


@pytest.mark.parametrize(
    "body",
    [
        "return torch.load(path)",
        "return torch.load(path, map_location='cpu')",
        "return torch.serialization.load(f=path)",
        "return torch.load(**path)",
        "for f in path:\n    yield torch.load(f)",
        "return [torch.load(f) for f in path]",
        "return map(torch.load, path)",
    ],
)
def test_places(body: str) -> None:
    assert loads(body)


@pytest.mark.parametrize(
    "body",
    [
        "return json.load(path)",
        "return np.load(path)",
        "return torch.jit.load(path)",
        "return torch.hub.load(path, 'net')",
        "return torch.load(path, mmap=True)",
        "return torch.load(path, pickle_module=dill)",
        "with open(path, 'rb') as f:\n    return torch.load(f)",
        "return torch.load('scheduler.pt')",
        "return torch.load(self.buffer)",
    ],
)
def test_no_places(body: str) -> None:
    assert not loads(body)


def test_other_names() -> None:
    assert loads("return th.load(path)", "import torch as th\n")
    assert loads("return load(path)", "from torch import load\n")
    assert loads("return weights(path)", "from torch import load as weights\n")
    assert loads("return self.read(path)", "        self.read = torch.load\n")
    assert not loads("return self.read(path)", "        self.read = torch.load(path)\n")


def test_samples_of_data_sets() -> None:
    def of_class(head: str) -> bool:
        text = f"{head}:\n    def f(self, path):\n        return torch.load(path)\n"
        return may_load(ast.parse(text).body[0].body[0], text, text)  # type: ignore[attr-defined]

    assert of_class("class Net(nn.Module)")
    assert not of_class("class Clips(Dataset)")
    assert not of_class("class ClipDataset")
