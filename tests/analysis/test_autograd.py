"""The tables of what becomes of autograd's graph, against the library itself."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from memlint.analysis.knowledge import autograd

torch = pytest.importorskip("torch")
nn = torch.nn

SHAPES: tuple[tuple[Any, ...], ...] = (
    (), (4,), (4, 4), (4, 2), (4, 4, 3), (4, 4, 4), (4, 2, 8), (1, 1),
)  # fmt: skip
HAS_NONE = (
    "ReLU", "GELU", "Dropout", "Softmax", "MSELoss", "CrossEntropyLoss", "MaxPool2d", "Flatten",
    "Identity", "Sequential",
)  # fmt: skip


def module(name: str) -> Any:
    for shape in SHAPES:
        try:
            return getattr(nn, name)(*shape)
        except (TypeError, ValueError, AssertionError):
            continue
    raise AssertionError(name)


@pytest.mark.parametrize("name", sorted(autograd.WITH_PARAMETERS))
def test_layers_have_parameters(name: str) -> None:
    assert list(module(name.removeprefix("torch.nn.")).parameters())


@pytest.mark.parametrize("name", HAS_NONE)
def test_other_layers_are_not_in_the_table(name: str) -> None:
    assert not list(module(name).parameters())
    assert f"torch.nn.{name}" not in autograd.WITH_PARAMETERS


def arguments() -> list[tuple[Any, ...]]:
    x = torch.rand(3, 4)
    index = torch.zeros(3, 4, dtype=torch.long)
    return [
        (), (x,), (1,), (2, 0), (3, 4), (0, 1), ("cpu",), (0.5,), (torch.rand(4, 3),),
        (torch.rand(4),), (0, index), (torch.ones(3, 4) > 0,), (1, torch.tensor([0])), (-1,),
    ]  # fmt: skip


def tensors(result: Any) -> list[Any]:
    if isinstance(result, torch.Tensor):
        return [result]
    return (
        [one for one in result if isinstance(one, torch.Tensor)]
        if isinstance(result, (tuple, list))
        else []
    )


def results(name: str) -> list[Any]:
    found = []
    for given in arguments():
        for base in (torch.rand(3, 4) + 0.1, torch.rand(3, 3) + 0.1):
            x = base.clone().requires_grad_(True)
            try:
                found.append(getattr(x * 1, name)(*given))
            except (RuntimeError, TypeError, IndexError, ValueError):
                continue
    return found


@pytest.mark.parametrize("name", sorted(autograd.CARRYING))
def test_methods_that_carry_the_graph_on(name: str) -> None:
    firsts = [tensors(one)[0] for one in results(name) if tensors(one)]
    floats = [one for one in firsts if one.is_floating_point()]
    assert floats
    assert all(one.requires_grad for one in floats)


@pytest.mark.parametrize("name", sorted(autograd.LEAVING - {"backward", "numpy"}))
def test_methods_that_leave_the_graph_behind(name: str) -> None:
    found = results(name)
    if name == "item":
        found = [(torch.rand(1).requires_grad_(True) * 1).item()]
    assert found
    assert not any(one.requires_grad for result in found for one in tensors(result))


def test_numpy_is_refused_inside_a_graph() -> None:
    with pytest.raises(RuntimeError, match="requires grad"):
        (torch.rand(2).requires_grad_(True) * 1).numpy()


@pytest.mark.parametrize("name", sorted(autograd.WITH_PLACES))
def test_places_are_no_part_of_the_graph(name: str) -> None:
    x = torch.rand(3, 4, requires_grad=True) * 1
    argument = (2,) if name in ("topk", "kthvalue") else (1,)
    values, places = getattr(x, name)(*argument)
    assert values.requires_grad
    assert not places.requires_grad


@pytest.mark.parametrize("name", sorted(autograd.LEAVING_ATTRIBUTES - {"indices", "itemsize"}))
def test_attributes_are_no_part_of_the_graph(name: str) -> None:
    x = torch.rand(3, 4, requires_grad=True)
    assert not getattr(getattr(x, name), "requires_grad", False)


@pytest.mark.parametrize("name", sorted(autograd.JOINING | autograd.CARRYING_OTHERS))
def test_names_are_known_to_the_library(name: str) -> None:
    found = getattr(torch.Tensor, name, None) or getattr(torch, name)
    assert inspect.isroutine(found)
