from __future__ import annotations

import pytest

from memlint.findings import Finding, Severity
from tests.rules.linting import found, only

RULE = "sync-in-loop"


def program(read: str, *, after: str = "", device: str = '"cuda"') -> str:
    lines = "\n".join(f"        {line}" for line in read.splitlines())
    return f"""import torch
from torch import nn


def train(model, loader, optimizer, flag, rank, writer, every, device):
    criterion = nn.CrossEntropyLoss()
    for step, (x, y) in enumerate(loader):
        x, y = x.to({device}, non_blocking=True), y.to({device}, non_blocking=True)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
{lines}
    {after}
"""


def one(read: str) -> Finding:
    return only(program(read), RULE)


@pytest.mark.parametrize(
    "read",
    [
        "v = loss.item()",
        "v = loss.detach().cpu()",
        "v = loss.detach().cpu().numpy()",
        "v = loss.tolist()",
        'v = loss.to("cpu")',
        "v = float(loss)",
        "v = int(loss * 100)",
        "print(loss)",
        'print("loss", step, loss)',
        'print(f"{step}: {loss:.3f}")',
        "writer.add_scalar('loss', loss.item(), step)",
        "if rank == 0:\n    print(loss.item())",
        "if writer is not None:\n    writer.add_scalar('loss', loss.item(), step)",
        "if step == 3:\n    continue\nv = loss.item()",
        "v = {k: t.item() for k, t in {'a': loss, 'b': loss * 2}.items()}",
        "v = sum([loss, loss]).item()",
    ],
)
def test_a_read_in_every_step(read: str) -> None:
    finding = one(read)
    assert finding.severity is Severity.INFO
    assert "in every step of this training loop" in finding.message
    assert finding.fix is None
    assert finding.related[0].location.line == 7


def test_a_line_is_told_once() -> None:
    finding = one("print(loss.item(), x.mean().item(), float(loss))")
    assert "`loss.item()`" in finding.message
    assert len(found(program("a = loss.item()\nb = loss.item()"), RULE)) == 2


@pytest.mark.parametrize(
    "read",
    [
        "if step % every == 0:\n    print(loss.item())",
        "if step % every:\n    continue\nprint(loss.item())",
        "if step == 100:\n    print(loss.item())",
        "if writer.should_log():\n    print(loss.item())",
        "if flag(step):\n    print(loss.item())",
        "v = loss.item() if step % 10 == 0 else None",
        "v = loss.detach()",
        "v = x.shape[0] + x.size(0) + len(x)",
        "print(x.shape, step)",
        "v = float(step)",
        'v = loss.detach().to("cpu", non_blocking=True)',
        "state = writer.step(x.argmax(1).cpu().numpy())",
        "if loss > 3:\n    raise ValueError(f'{loss}')",
    ],
)
def test_silent(read: str) -> None:
    assert found(program(read), RULE) == []


def test_silent_after_the_loop() -> None:
    assert found(program("pass", after="return loss.item()"), RULE) == []


@pytest.mark.parametrize("device", ['"cpu"', "device", 'torch.device("mps")'])
def test_silent_on_other_devices(device: str) -> None:
    assert found(program("v = loss.item()", device=device), RULE) == []


@pytest.mark.parametrize(
    "device", ['torch.device("cuda:1")', '"cuda" if torch.cuda.is_available() else "cpu"']
)
def test_devices_that_are_cuda(device: str) -> None:
    assert found(program("v = loss.item()", device=device), RULE)


def test_a_loop_that_does_not_train_is_silent() -> None:
    text = program("v = loss.item()").replace("loss.backward()", "pass")
    assert found(text.replace("optimizer.zero_grad()", "pass"), RULE) == []


def test_tokens_and_samples() -> None:
    tokens = only(
        """import torch


def generate(model, ids, limit):
    ids = ids.cuda()
    for _ in range(limit):
        token = model(ids)[:, -1].argmax(-1).item()
        ids = ids + token
""",
        RULE,
    )
    assert "for every token" in tokens.message
    samples = only(
        """import torch


def scores(x):
    p = torch.softmax(x.cuda(), -1)
    return [p[i].max().item() for i in range(len(p))]
""",
        RULE,
    )
    assert "for every part of the tensor" in samples.message
