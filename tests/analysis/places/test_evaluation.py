"""Which functions may evaluate a model while autograd records: a sieve."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest

from memlint.analysis.places.evaluation import may_evaluate

EVALUATED = "\n\ndef load(path):\n    found = build(path)\n    found.eval()\n    return found\n"


def may(
    body: str,
    *,
    name: str = "f",
    above: str = "import torch\nfrom somewhere import helper, build\n",
    rest: str = EVALUATED,
    decorator: str = "",
) -> bool:
    head = f"{decorator}def {name}(x, loader):"
    source = f"{above}\n\n{head}\n{indent(body, '    ')}\n{rest}"
    function = next(one for one in ast.parse(source).body if isinstance(one, ast.FunctionDef))
    return may_evaluate(function, source, source)


@pytest.mark.parametrize(
    "body",
    [
        "model.eval()\nfor x in loader:\n    print(model(x))",
        "own = load(x)\nreturn [own(y) for y in loader]",
        "return self.backbone(x).argmax(-1)",
        "return [net(x).item() for net in loader]",
        "def inner(y):\n    return float(loader(y))\nreturn inner",
        "return clip.get_image_features(x).tolist()",
    ],
)
def test_what_may_evaluate(body: str) -> None:
    assert may(body)


@pytest.mark.parametrize(
    "body",
    [
        "return model(x)",
        "for x in loader:\n    print(torch.relu(x), helper(x), helper.model(x))",
        "for x in loader:\n    print(int(x), x.to(loader))",
        "return [own(y) for y in loader]",
    ],
)
def test_what_does_not(body: str) -> None:
    assert not may(body)


def test_a_model_must_be_put_into_evaluation_mode_or_the_function_be_called_so() -> None:
    body = "for x in loader:\n    print(model(x).item())"
    assert not may(body, rest="")
    assert may(body, name="validate", rest="")
    assert may(body)


def test_what_is_called_by_what_it_is_for_need_not_measure() -> None:
    assert may("return model(x)", name="predict")
    assert not may("return model(x)", name="forward")


def test_a_class_that_evaluates_itself() -> None:
    source = (
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n"
        "        self.layers = torch.nn.Linear(3, 3)\n\n    def predict(self, x):\n"
        "        self.eval()\n        return self.layers(x).item()\n"
    )
    class_ = ast.parse(source).body[-1]
    assert isinstance(class_, ast.ClassDef)
    assert may_evaluate(class_.body[-1], source, source)
    assert not may_evaluate(class_.body[0], source, source)


def test_without_recording_nothing_is_kept() -> None:
    body = "model.eval()\nfor x in loader:\n    print(model(x))"
    assert not may(body, decorator="@torch.no_grad()\n")
    assert may(body, decorator="@torch.inference_mode(False)\n")
    assert not may(body, above="import torch\nimport pytest\n")


def test_functions_that_lead_to_a_model() -> None:
    rest = EVALUATED + "\n\ndef run(x):\n    return model(x)\n\n\ndef go(x):\n    return run(x)\n"
    assert may("return [go(y) for y in loader]", rest=rest)
    assert not may("return [build(y) for y in loader]", rest=rest)
