from __future__ import annotations

from typing import Any

import pytest

from memlint.findings import Applicability, Severity
from tests.rules.linting import fixed, found, only

RULE = "pin-memory-inert"


def program(arguments: str) -> str:
    return f"""import torch
from torch.utils.data import DataLoader


class Batch:
    def __init__(self, rows):
        self.rows = torch.stack(rows)


def feed(dataset):
    return DataLoader({arguments})
"""


def test_the_device_alone_is_a_warning_without_a_fix() -> None:
    finding = only(program("dataset, pin_memory_device='cuda'"), RULE)
    assert finding.severity is Severity.WARNING
    assert finding.fix is None
    assert "alone pins nothing" in finding.message


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("dataset, pin_memory=True, pin_memory_device='cuda'", "dataset, pin_memory=True"),
        (
            "dataset, pin_memory_device='cuda:0', pin_memory=True, num_workers=2",
            "dataset, pin_memory=True, num_workers=2",
        ),
        (
            "\n        dataset,\n        pin_memory=True,\n        pin_memory_device='cuda',\n    ",
            "\n        dataset,\n        pin_memory=True,\n    ",
        ),
    ],
)
def test_beside_pin_memory_the_device_is_dropped(before: str, after: str) -> None:
    finding = only(program(before), RULE)
    assert finding.severity is Severity.INFO
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE
    changed = fixed(program(before), finding.fix)
    assert changed == program(after)
    assert found(changed, RULE) == []


def test_the_loader_is_the_same_without_the_device() -> None:
    data = pytest.importorskip("torch.utils.data")
    with_device = data.DataLoader([1, 2, 3], pin_memory=True, pin_memory_device="cuda")
    without = data.DataLoader([1, 2, 3], pin_memory=True)
    assert with_device.pin_memory is without.pin_memory is True


def test_a_batch_class_is_named() -> None:
    finding = only(program("dataset, collate_fn=Batch, pin_memory=True, num_workers=2"), RULE)
    assert finding.message.startswith("this `DataLoader` yields `Batch` objects")
    assert "method `pin_memory(self)`" in finding.help


def test_what_pinning_does_with_each_kind_of_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    from torch.utils.data._utils.pin_memory import pin_memory

    pinned: list[Any] = []

    def note(tensor: Any, *args: Any) -> Any:
        pinned.append(tensor)
        return tensor

    monkeypatch.setattr(torch.Tensor, "pin_memory", note)

    class Plain:
        rows = torch.ones(2)

    class Pinning(Plain):
        def pin_memory(self) -> str:
            return "pinned"

    plain, array = Plain(), numpy.ones(2)
    assert pin_memory(plain) is plain
    assert pin_memory(array) is array
    assert pinned == []
    assert pin_memory(Pinning()) == "pinned"
    pin_memory({"x": [torch.ones(1)]})
    assert len(pinned) == 1


def test_a_device_given_to_a_tensor_is_dropped() -> None:
    text = "import torch\n\n\ndef stage(n):\n    return torch.empty(n).pin_memory('cuda')\n"
    finding = only(text, RULE)
    assert finding.fix is not None
    assert fixed(text, finding.fix).endswith("return torch.empty(n).pin_memory()\n")


def test_pinning_replaces_the_finding_about_missing_pinning() -> None:
    text = program("dataset, num_workers=2, pin_memory_device='cuda'") + (
        "\n\ndef run(dataset, net):\n    for x in feed(dataset):\n        net(x.cuda())\n"
    )
    assert only(text, RULE)
    assert found(text, "missing-pin-memory") == []
