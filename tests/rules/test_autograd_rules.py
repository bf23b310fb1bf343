"""What the rules about graphs of autograd say, and how strongly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memlint.findings import Applicability, Severity
from tests.rules.linting import fixed, found, only

TRAINING = """\
import torch


def train(model, loader, optimizer, loss_fn):
    total = 0.0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""
EVALUATION = """\
import torch


def evaluate(model, loader, loss_fn):
    model.eval()
    total = 0.0
    for x, y in loader:
        total += loss_fn(model(x), y)
    return total
"""


def test_a_graph_that_was_walked_is_information() -> None:
    finding = only(TRAINING, "graph-retention")
    assert finding.severity is Severity.INFO
    assert "`total` keeps `loss`" in finding.message
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert "total += loss.detach()" in fixed(TRAINING, finding.fix)


METERED = """\
class Tracker:
    def __init__(self):
        self.kept = []

    def update(self, key, value, n=1):
        self.kept.append(value * n)


def train(model, loader, optimizer, loss_fn, name):
    tracker = Tracker()
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tracker.update(name, GIVEN, n=len(x))
"""


def test_of_a_meters_arguments_it_is_the_loss_that_is_detached() -> None:
    program = METERED.replace("GIVEN", "loss")
    finding = only(program, "graph-retention")
    assert "`tracker` keeps `loss`" in finding.message
    assert finding.fix is not None
    mended = fixed(program, finding.fix)
    assert "tracker.update(name, loss.detach(), n=len(x))" in mended
    assert found(mended, "graph-retention") == []


def test_a_meters_call_is_left_where_the_argument_is_not_known() -> None:
    finding = only(METERED.replace("GIVEN", "loss * 2"), "graph-retention")
    assert finding.fix is None


def test_a_graph_that_nothing_walks_is_a_warning() -> None:
    finding = only(EVALUATION, "graph-retention")
    assert finding.severity is Severity.WARNING
    assert "all activations" in finding.message


def test_recording_is_turned_off_by_a_decorator() -> None:
    finding = only(EVALUATION, "eval-without-no-grad")
    assert finding.fix is not None
    mended = fixed(EVALUATION, finding.fix)
    assert "@torch.no_grad()\ndef evaluate(" in mended
    assert found(mended, "graph-retention") == []


@pytest.mark.parametrize(
    "guard",
    [
        "with torch.no_grad():",
        "with torch.inference_mode():",
        "with torch.set_grad_enabled(False):",
        "with torch.no_grad(), torch.autocast('cuda'):",
        "with torch.autocast('cuda'), torch.inference_mode(mode=True):",
    ],
)
def test_guards(guard: str) -> None:
    lines = EVALUATION.splitlines()
    body = [f"    {line}" for line in lines[6:8]]
    program = "\n".join([*lines[:6], f"    {guard}", *body, lines[8], ""])
    assert found(program, "eval-without-no-grad") == []


@pytest.mark.parametrize(
    "switch", ["with torch.inference_mode(mode=False):", "with torch.enable_grad():"]
)
def test_no_guards(switch: str) -> None:
    lines = EVALUATION.splitlines()
    body = [f"    {line}" for line in lines[6:8]]
    program = "\n".join([*lines[:6], f"    {switch}", *body, lines[8], ""])
    assert len(found(program, "eval-without-no-grad")) == 1


LEAK = """\
import sys
import torch

net = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(3)))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
reset = sys.argv[1]
import gc, weakref
alive = weakref.WeakSet()
for _ in range(5):
    if reset == "zero_grad":
        optimizer.zero_grad()
    elif reset == "keep":
        optimizer.zero_grad(set_to_none=False)
    x = torch.randn(8, 64)
    loss = net(x).square().mean()
    loss.backward(create_graph=True)
    optimizer.step()
    alive.add(x)
del x, loss
gc.collect()
print(len(alive))
"""


@pytest.mark.parametrize(("reset", "left"), [("nothing", 5), ("zero_grad", 1)])
def test_what_create_graph_leaves_behind(reset: str, left: int, tmp_path: Path) -> None:
    """A reset of the gradients in each step breaks the cycle: then nothing is reported."""
    pytest.importorskip("torch")
    script = tmp_path / "leak.py"
    script.write_text(LEAK)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), reset],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(done.stdout) <= left
    assert (int(done.stdout) > 1) is (reset == "nothing")
