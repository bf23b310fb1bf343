"""The sieve of models that are moved must let pass whatever may be one, and little else."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.model import moves_model


def passes(body: str, source: str = "") -> bool:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    text = f"def f(self, model, x, device):\n{lines}"
    return moves_model(ast.parse(text).body[0], text, text + source)


@pytest.mark.parametrize(
    "body",
    [
        "model.to(device)",
        "self.nets['G'].cuda()",
        "model = model.to(device)\ny = model(x)",
        "model = model.half().to(device)\nmodel.eval()",
        "self.net = Net(3).cuda().eval()",
        "net = torchvision.models.resnet50().to(device)",
        "net = torch.hub.load('a', 'b').to(device)",
        "net = torch.nn.DataParallel(model).cuda()",
        "model, loader = accelerator.prepare(model, loader)",
        "trainer.fit(model)",
        "with torch.device('cuda'):\n    model = Net()",
        "with device:\n    model = Net()",
    ],
)
def test_models_that_are_moved_pass(body: str) -> None:
    assert passes(body)


def test_what_is_called_elsewhere_passes() -> None:
    assert passes("return model.cuda()", "def g(model):\n    return model(1)\n")
    assert passes("self.net = self.net.cuda()", "def g(self):\n    return self.net(1)\n")


@pytest.mark.parametrize(
    "body",
    [
        "x = x.to(device)\nreturn model(x)",
        "x = torch.zeros(3).cuda()",
        "x = x.view(-1).float().to(device)",
        "x = f.get_tensor(k).to(device)",
        "x = x.to(dtype=y.dtype)",
        "for module in self.modules():\n    module(x)\n    module.cuda(device)",
        "return super().cuda()",
        "super().to(device)",
        "with torch.no_grad():\n    y = model(x)",
    ],
)
def test_arrays_and_parts_do_not(body: str) -> None:
    assert not passes(body)
