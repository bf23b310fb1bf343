"""Which functions may move what they have just made, or made wider: two sieves."""

from __future__ import annotations

import ast
from collections.abc import Callable
from textwrap import indent

import pytest

from memlint.analysis.places.moved import moves_what_it_makes, moves_what_it_widens

Test = Callable[[ast.AST, str, str], bool]


def passes(test: Test, body: str, *, head: str = "import torch", rest: str = "") -> bool:
    source = f"{head}\n\n\ndef f(x, n, device, given):\n{indent(body, '    ')}\n{rest}"
    function = next(one for one in ast.parse(source).body if isinstance(one, ast.FunctionDef))
    return test(function, source, source)


@pytest.mark.parametrize(
    "body",
    [
        "return torch.zeros(n).to(device)",
        "return torch.zeros(n, device=None).cuda()",
        "z = torch.zeros(n)\nif device:\n    z = z.cuda()\nreturn z",
        "return (torch.rand(n) * 2 - 1).to(x.device)",
        "return torch.exp(-torch.arange(n) / n).to(device=device, dtype=torch.float16)",
        "return torch.tril(torch.ones(n, n)).bool().type_as(x)",
        "return Variable(torch.randn(n)).cuda()",
    ],
)
def test_what_is_made_and_moved(body: str) -> None:
    assert passes(moves_what_it_makes, body)


@pytest.mark.parametrize(
    "body",
    [
        "return torch.zeros(n).to(torch.float16)",
        "return torch.zeros(n).to('cpu')",
        "return torch.zeros(n, device=x.device).to(device)",
        "z = torch.zeros(n)\nreturn x.to(device) + z",
        "return x.to(device)",
        "return torch.stack([torch.zeros(n)]).to(device)",
        "return torch.zeros(n)",
    ],
)
def test_what_is_not(body: str) -> None:
    assert not passes(moves_what_it_makes, body)


def test_makers_by_other_names() -> None:
    body = "return empty_of(n).to(device)"
    assert passes(moves_what_it_makes, body, head="from torch import zeros as empty_of")
    assert passes(moves_what_it_makes, body, head="import torch\nempty_of = torch.empty")
    assert not passes(moves_what_it_makes, body)


def test_with_a_default_device_nothing_is_made_on_the_host() -> None:
    head = "import torch\ntorch.set_default_device('cuda')"
    assert not passes(moves_what_it_makes, "return torch.zeros(n).to(device)", head=head)


def test_what_a_module_does_counts_in_loops_only() -> None:
    once, loop = "x = torch.zeros(3).cuda()", "for i in range(3):\n    x = torch.zeros(3).cuda()"
    assert not moves_what_it_makes(ast.parse(once), once, once)
    assert moves_what_it_makes(ast.parse(loop), loop, loop)


@pytest.mark.parametrize(
    "body",
    [
        "return read_image(n).float().to(device)",
        "y = torch.zeros(n, dtype=torch.uint8)\nreturn y.to(device, torch.float32)",
        "y = torch.from_numpy(cv2.imread(n)).permute(2, 0, 1)\nreturn (y.float() / 255).cuda()",
        "y = (torch.arange(n) > 0).long()\nreturn y.to(device)",
        "kind = torch.float32\ny = torch.ones(n, dtype=torch.bool).to(kind)\nreturn y.to(device)",
        "y = np.zeros(n).astype(np.uint8)\nreturn torch.from_numpy(y).float().cuda()",
    ],
)
def test_what_is_widened_and_moved(body: str) -> None:
    assert passes(moves_what_it_widens, body)


@pytest.mark.parametrize(
    "body",
    [
        "return torch.zeros(n).to(device, torch.float32)",
        "y = somewhere(n, dtype=given)\nreturn y.to(device, given)",
        "return read_image(n).to(device).float()",
        "return read_image(n).float()",
        "return x.float().to(device)",
        "return read_image(n).to(device, given)",
        "return read_image(n).to(device, x.dtype)",
        "return self.pipe(n).float().to(device)",
        "return read_image(n).to(torch.uint8)",
        "y = (x > 0).long()\nreturn y.to(device)",
        "return torch.arange(n, dtype=torch.int64).to(device, torch.float)",
    ],
)
def test_what_is_not_widened_before(body: str) -> None:
    assert not passes(moves_what_it_widens, body)


def test_what_a_function_of_the_program_gives() -> None:
    body = "y = make(n)\nreturn y.double().to(device)"
    assert not passes(moves_what_it_widens, body)
    assert passes(moves_what_it_widens, body, rest="\n\ndef make(n):\n    return zeros(n)\n")
    single = body.replace("double", "float")
    assert not passes(moves_what_it_widens, single, rest="\n\ndef make(n):\n    return zeros(n)\n")


def test_what_callers_give_may_be_narrow() -> None:
    rest = "\n\ndef g(n):\n    return f(read_image(n), 1, 'cuda', torch.float32)\n"
    assert passes(moves_what_it_widens, "return x.float().to(device)", rest=rest)
    assert passes(moves_what_it_widens, "return x.to(device, given)", rest=rest)
