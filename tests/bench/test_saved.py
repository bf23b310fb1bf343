"""What autograd keeps is counted, to the byte, and as long as it is kept."""

from __future__ import annotations

from typing import Any

import pytest

from memlint.bench.saved import SavedTensors

torch = pytest.importorskip("torch")


def squares(x: Any, times: int) -> Any:
    for _ in range(times):
        x = x.square()
    return x


def test_each_operation_keeps_its_operand() -> None:
    x = torch.ones(1000, requires_grad=True)
    saved = SavedTensors()
    with saved.watching():
        output = squares(x, 3)
    assert saved.nbytes() == 3 * 4000
    assert saved.nbytes(besides=[x]) == 2 * 4000
    assert saved.nbytes(held=[output], besides=[x]) == 3 * 4000


def test_memory_that_is_kept_twice_counts_once() -> None:
    x = torch.ones(1000, requires_grad=True)
    saved = SavedTensors()
    with saved.watching():
        output = x.view(10, 100).square().sum() + x.square().sum()
    assert saved.nbytes() == 4000
    assert output.requires_grad


def test_what_a_result_alone_keeps_goes_with_it() -> None:
    x = torch.ones(1000, requires_grad=True)
    saved = SavedTensors()
    with saved.watching():
        output = squares(x, 3).exp()  # which keeps its own result
    assert saved.nbytes() == 4 * 4000
    del output
    assert saved.nbytes() == 0


def test_a_backward_pass_frees_what_it_has_used_and_gives_the_same_gradients() -> None:
    gradients = []
    for saved in (None, SavedTensors()):
        x = torch.arange(4.0, requires_grad=True)
        if saved is None:
            output = squares(x, 2)
        else:
            with saved.watching():
                output = squares(x, 2)
        output.sum().backward()
        gradients.append(x.grad)
        assert saved is None or saved.nbytes() == 0
    assert torch.equal(*gradients)


def test_nothing_is_kept_without_a_graph() -> None:
    saved = SavedTensors()
    with saved.watching(), torch.no_grad():
        output = squares(torch.ones(1000, requires_grad=True), 3)
    assert saved.nbytes() == 0
    assert saved.nbytes(held=[output]) == 4000
