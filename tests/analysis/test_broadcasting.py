"""Operations that are said to read a broadcast view as they read a copy do so."""

from __future__ import annotations

import math
from typing import Any

import pytest

from memlint.analysis.knowledge.broadcasting import (
    CASTS,
    INTO_ANOTHER,
    READS_BROADCAST,
    VIEWS,
)

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

ONE = {"cos", "sin", "exp", "log", "sqrt", "abs", "tanh", "sigmoid", "relu", "square"}
SUMS = {"sum", "mean", "prod", "amax", "amin", "norm"}
ALONG = {"softmax", "log_softmax", "logsumexp"}
BY_INDEX = {"gather", "scatter", "scatter_add", "take_along_dim", "take_along_axis"}
JOINS = {"cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"}
THREE = {"lerp", "addcmul", "addcdiv"}
VIEW_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "unsqueeze": (0,), "transpose": (0, 1), "permute": (1, 0), "movedim": (0, 1),
    "swapaxes": (0, 1), "expand": (4, 3), "narrow": (0, 0, 2), "select": (0, 1), "chunk": (2,),
    "split": (2,),
}  # fmt: skip


def _functions(name: str) -> list[Any]:
    if name in ("norm", "take_along_axis"):
        return [numpy.linalg.norm, torch.norm] if name == "norm" else [numpy.take_along_axis]
    spaces = (torch, torch.nn.functional, numpy)
    return [getattr(space, name) for space in spaces if hasattr(space, name)]


def _arguments(name: str, array: Any, other: Any) -> list[tuple[Any, ...]]:
    if name in ONE | SUMS:
        return [(array,)]
    if name in ALONG:
        return [(array, 0), (array, 1)]
    if name in BY_INDEX:
        return _by_index(name, array, other)
    if name in ("any", "all"):
        return [(array > 0.5,)]
    if name in ("matmul", "bmm", "baddbmm"):
        batch = (lambda one: one.expand(4, 3, 3)) if name != "matmul" else (lambda one: one)
        square, rows = batch(array[:3].T @ array[:3]), batch(array[:3])
        added = (square,) if name == "baddbmm" else ()
        return [(*added, square, rows), (*added, rows, square)]
    if name == "grid_sample":
        image = other[None, None].float()
        return [
            (image, array[None, :, :2].unsqueeze(1) * 2 - 1),
            (array[None, None], image[..., :2]),
        ]
    if name in JOINS:
        return [([array, other],)]
    if name in THREE:
        return [(other, array, array), (array, other, other)]
    if name in ("where", "masked_fill"):
        mask = array > 0.5
        return [(mask, array, other)] if name == "where" else [(other, mask, 0.0)]
    if name in ("clamp", "clip"):
        return [(array, 0.2, 0.7)]
    if name == "scaled_dot_product_attention":
        return [(other[None], other[None], other[None], array[:, :1].T.expand(4, 4) * 0)]
    if name.startswith(("logical", "bitwise")):
        return [(array > 0.5, other > 0.5)]
    return [(array, other), (other, array)]


def _by_index(name: str, array: Any, other: Any) -> list[tuple[Any, ...]]:
    """Both what is looked up and the places that are."""
    index = (array > 0.5).long() if hasattr(array, "long") else (array > 0.5).astype(int)
    if name.startswith("take"):
        return [(array, index, 0), (other, index, 0)]
    if name == "gather":
        return [(array, 0, index), (other, 0, index)]
    return [(array, 0, index, other), (other, 0, index, array)]


def _as_numpy(value: Any) -> Any:
    return value.numpy() if hasattr(value, "numpy") else value


@pytest.mark.parametrize("name", sorted(READS_BROADCAST))
def test_readers(name: str) -> None:
    row, other = torch.rand(1, 3) * 0.8 + 0.1, torch.rand(4, 3) * 0.8 + 0.1
    found = _functions(name)
    assert found
    for function in found:
        numpys = function is getattr(numpy, name, None)
        results = []
        for array in (row.repeat(4, 1), row.expand(4, 3)):
            for given in _arguments(name, array, other):
                if numpys:
                    given = tuple(
                        [_as_numpy(one) for one in part]
                        if isinstance(part, list)
                        else _as_numpy(part)
                        for part in given
                    )
                results.append(torch.as_tensor(_as_numpy(function(*given))))
        half = len(results) // 2
        for copy, view in zip(results[:half], results[half:], strict=True):
            assert torch.equal(copy, view) or torch.allclose(copy, view, rtol=1e-5)


@pytest.mark.parametrize("name", sorted(INTO_ANOTHER))
def test_in_place_forms_read_their_operands(name: str) -> None:
    row = torch.rand(1, 3) + 0.5
    results = []
    for array in (row.repeat(4, 1), row.expand(4, 3)):
        target = torch.ones(4, 3)
        match name:
            case "masked_fill_":
                given: tuple[Any, ...] = (array > 1, math.pi)
            case "addcmul_" | "addcdiv_":
                given = (array, array)
            case "lerp_":
                given = (array, 0.5)
            case "scatter_" | "scatter_add_":
                given = (0, (array > 1).long(), array)
            case _:
                given = (array,)
        results.append(getattr(target, name)(*given))
    assert torch.equal(*results)


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_views_share_memory(name: str) -> None:
    array = torch.rand(1, 3).expand(4, 3)
    found = getattr(array, name)
    if name in ("expand_as",):
        found = found(torch.empty(4, 3))
    elif callable(found):
        found = found(*VIEW_ARGUMENTS.get(name, ()))
    for one in found if isinstance(found, tuple) else (found,):
        assert one.untyped_storage().data_ptr() == array.untyped_storage().data_ptr()


@pytest.mark.parametrize("name", sorted(CASTS))
def test_casts_do_not_write(name: str) -> None:
    array = torch.rand(1, 3).expand(4, 3)
    before = array.clone()
    given = {"to": (torch.float64,), "type_as": (torch.ones(1, dtype=torch.int64),)}.get(name, ())
    getattr(array, name)(*given)
    assert torch.equal(array, before)
