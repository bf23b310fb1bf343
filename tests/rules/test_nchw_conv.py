from __future__ import annotations

import pytest

from memlint.findings import Applicability, Confidence, Severity
from tests.rules.linting import fixed, found, only

RULE = "nchw-conv"


def program(
    *,
    layer: str = "nn.Conv2d(64, 128, 3)",
    move: str = "net = net.cuda()",
    region: str = 'torch.autocast("cuda")',
    x: str = "x",
    after: str = "",
    last: str = "",
) -> str:
    return f"""import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = {layer}

    def forward(self, x):
        return self.conv(x)


def run(images, amp, device, other):
    net = Net()
    {move}
    {after or "pass"}
    for x in images:
        with {region}:
            y = net({x})
            {last or "pass"}
"""


def test_it_names_the_model_the_layer_and_the_precision() -> None:
    finding = only(program(), RULE)
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.HIGH)
    assert finding.location.line == 16
    assert "`net`" in finding.message
    assert "net = net.to(memory_format=torch.channels_last)" in finding.help
    assert [place.location.line for place in finding.related] == [8, 20]


def test_the_fix_converts_where_the_model_is_moved_and_is_only_shown() -> None:
    fix = only(program(), RULE).fix
    assert fix is not None
    assert fix.applicability is Applicability.DISPLAY
    changed = fixed(program(), fix)
    assert "net = net.cuda().to(memory_format=torch.channels_last)\n" in changed
    assert found(changed, RULE) == []


def test_three_dimensions_have_their_own_format() -> None:
    assert "channels_last_3d" in only(program(layer="nn.Conv3d(8, 128, 3)"), RULE).help


def test_autocast_behind_a_flag_is_less_sure() -> None:
    finding = only(program(region='torch.autocast("cuda", enabled=amp)'), RULE)
    assert finding.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    "region",
    [
        'torch.autocast("cuda", enabled=False)',
        'torch.autocast("cpu", torch.bfloat16)',
        "torch.cpu.amp.autocast()",
        "torch.no_grad()",
    ],
)
def test_silent_without_a_tensor_core_precision(region: str) -> None:
    assert found(program(region=region), RULE) == []


def test_the_innermost_region_decides() -> None:
    text = program(region='torch.autocast("cuda"), torch.autocast("cuda", enabled=False)')
    assert found(text, RULE) == []


@pytest.mark.parametrize(
    "move",
    [
        "net.to('cuda')",
        "net = net.to(torch.device('cuda', 1))",
        "net = nn.DataParallel(net).cuda()",
        "net = net.to('cuda' if torch.cuda.is_available() else 'cpu')",
    ],
)
def test_moves_to_cuda(move: str) -> None:
    assert found(program(move=move), RULE)


@pytest.mark.parametrize("move", ["net.to('cpu')", "net.to(device)", "net.to('mps')", "pass"])
def test_silent_elsewhere(move: str) -> None:
    assert found(program(move=move), RULE) == []


@pytest.mark.parametrize(
    "after",
    [
        "net = net.to(memory_format=torch.channels_last)",
        "net.conv.to(memory_format=torch.channels_last)",
        "net = net.to(memory_format=other)",
        "other.to(memory_format=torch.channels_last)",
        "net = torch.compile(net)",
        "net.compile()",
        "net = torch.jit.script(net)",
        "images = [i.contiguous(memory_format=torch.channels_last) for i in images]",
        "images = [i.permute(0, 3, 1, 2) for i in images]",
    ],
)
def test_silent_where_the_program_may_convert(after: str) -> None:
    assert found(program(after=after), RULE) == []


def test_a_word_in_a_comment_converts_nothing() -> None:
    assert found("# one day: channels_last\n" + program(), RULE)


@pytest.mark.parametrize(
    ("layer", "gains"),
    [
        ("nn.Conv2d(64, 128, 3)", True),
        ("nn.ConvTranspose2d(64, 128, 3)", True),
        ("nn.LazyConv2d(128, 3)", True),
        ("nn.Conv1d(64, 128, 3)", False),
        ("nn.Conv2d(64, 128, 3, groups=4)", False),
        ("nn.Conv2d(128, 128, 3, 1, 1, 1, 128)", False),
        ("nn.Conv2d(3, 768, 16, stride=16)", False),
        ("nn.Conv2d(3, 768, (16, 16), (16, 16))", False),
        ("nn.Conv2d(64, 64, 3)", True),
        ("nn.Linear(64, 64)", False),
    ],
)
def test_which_convolutions_gain(layer: str, gains: bool) -> None:
    assert bool(found(program(layer=layer), RULE)) is gains


@pytest.mark.parametrize(
    ("layer", "gains"),
    [
        ("nn.Conv2d(64, 64, 3)", False),
        ("nn.Conv2d(256, 128, 3)", False),
        ("nn.Conv2d(256, 128, 1)", True),
        ("nn.Conv2d(128, 128, 3)", True),
    ],
)
def test_fewer_gain_in_training(layer: str, gains: bool) -> None:
    text = program(layer=layer, last="y.sum().backward()")
    assert bool(found(text, RULE)) is gains


def test_a_cast_that_is_undone_does_not_count() -> None:
    plain = program(region="torch.no_grad()", after="net.half()")
    assert found(plain, RULE)
    assert found(plain.replace("net.half()", "net.half().float()"), RULE) == []
