"""Unusual programs compute the same, bit by bit, under the tracer, which leaves nothing behind."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

import memlint
from tests.tracer.odd_programs import PROGRAMS, Program


def _left() -> dict[str, Any]:
    """What a trace could leave behind."""
    return {
        "modes": _get_current_dispatch_mode_stack(),
        "functions": torch._C._len_torch_function_stack(),
        "methods": {name: getattr(torch.Tensor, name) for name in ("contiguous", "to", "float")},
        "grad": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "task": torch._C._current_graph_task_id(),
    }


def _run(program: Program) -> Any:
    torch.manual_seed(11)
    return program(), torch.get_rng_state()


def _assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, torch.Tensor):
        assert (one.dtype, one.shape, one.layout) == (other.dtype, other.shape, other.layout)
        assert one.layout is not torch.strided or one.stride() == other.stride()
        assert torch.equal(one, other)
    elif isinstance(one, dict):
        _assert_same(list(one.items()), list(other.items()))
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for mine, its in zip(one, other, strict=True):
            _assert_same(mine, its)
    else:
        assert one == other


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_odd_program_computes_the_same(name: str) -> None:
    bare, before = _run(PROGRAMS[name]), _left()
    with memlint.trace(quiet=True, replay=False) as trace:
        watched = _run(PROGRAMS[name])
    assert _left() == before
    _assert_same(bare, watched)
    trace.document()
