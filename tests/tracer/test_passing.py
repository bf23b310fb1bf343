"""What the tracer must let pass: other modes, subclasses, compiled code, children, errors."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from tests.tracer.tracing import Run, traced

A = torch.ones(16, 16)


def _fail_while_traced(seen: list[Run]) -> None:
    with traced() as run:
        seen.append(run)
        torch.exp(A)
        raise ZeroDivisionError


def test_an_exception_leaves_no_mode_behind() -> None:
    seen = []
    with pytest.raises(ZeroDivisionError):
        _fail_while_traced(seen)
    (run,) = seen
    assert _get_current_dispatch_mode_stack() == []
    assert "contiguous" not in vars(torch.Tensor)
    assert run.only("exp").count == 1


def test_an_operation_that_raises_raises_the_same() -> None:
    with traced() as run, pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        A @ torch.ones(3, 3)
    assert run.named("mm") == []


def test_inference_mode_is_taken_apart() -> None:
    model = nn.Linear(16, 16)
    with torch.inference_mode(), traced() as run:
        model(A)
        A.t().reshape(-1)
    assert [one.short for one in run.operations] == ["t", "addmm", "t", "clone", "_unsafe_view"]
    assert run.only("clone").hidden == 1


def test_compiled_code_stays_compiled() -> None:
    compiled_runs = []

    def backend(graph: Any, inputs: Any) -> Any:
        def run(*args: Any) -> Any:
            compiled_runs.append(1)
            return graph.forward(*args)

        return run

    function = torch.compile(lambda x: torch.tanh(x) + 1, backend=backend)
    with traced() as run:
        first = function(A)
        second = function(A)
    assert torch.equal(first, torch.tanh(A) + 1)
    assert torch.equal(first, second)
    assert len(compiled_runs) == 2
    assert run.only("tanh").count == 2


class Tagged(torch.Tensor):
    """A subclass that goes by torch functions."""


class Wrapping(torch.Tensor):
    """A subclass that takes dispatched calls apart."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Wrapping:
        made: Wrapping = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, inner.shape, dtype=inner.dtype
        )
        made.inner = inner
        return made

    def __repr__(self) -> str:  # type: ignore[override]
        return "Wrapping"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        inner = [one.inner if isinstance(one, Wrapping) else one for one in args]
        return Wrapping(func(*inner, **(kwargs or {})))


def test_subclasses_keep_their_type() -> None:
    with traced():
        tagged = torch.exp(A.as_subclass(Tagged))
    assert type(tagged) is Tagged


def test_a_subclass_that_dispatches_is_seen_by_its_parts() -> None:
    with traced() as run:
        wrapped = torch.exp(Wrapping(A))
    assert type(wrapped) is Wrapping
    assert torch.equal(wrapped.inner, torch.exp(A))
    assert run.only("exp").operands[0].array.shape == (16, 16)


def test_functorch_is_passed_through() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x).sum()

    bare = torch.vmap(torch.func.grad(f))(A)
    with traced() as run:
        watched = torch.vmap(torch.func.grad(f))(A)
        jacobian = torch.func.jacrev(torch.tanh)(A[0])
    assert torch.equal(bare, watched)
    assert jacobian.shape == (16, 16)
    assert run.named("tanh")


def test_dynamo_compiles_nothing_of_the_tracer() -> None:
    compiled = []

    def backend(graph: torch.fx.GraphModule, inputs: object) -> object:
        compiled.append(graph)
        return graph.forward

    def breaks(x: torch.Tensor) -> torch.Tensor:
        for one in (part for part in (x.sin(), x.cos())):
            torch._dynamo.graph_break()
            x = x + one.exp()
        return x

    torch.compile(breaks, backend=backend)(A)
    alone = len(compiled)
    torch._dynamo.reset()
    compiled.clear()
    with traced() as run:
        out = torch.compile(breaks, backend=backend)(A)
    assert torch.equal(out, breaks(A))
    assert len(compiled) == alone
    assert sum(one.count for one in run.named("exp")) == 2


def test_compiled_code_may_call_the_methods_that_are_wrapped() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.t().contiguous().float().to(torch.float32).cpu() + 1

    with traced() as run:
        out = torch.compile(f, backend="eager", fullgraph=True)(A)
    assert torch.equal(out, f(A))
    assert run.only("clone").count == 1


def test_nothing_is_noted_of_tensors_that_stand_for_others() -> None:
    with traced() as run:
        with FakeTensorMode():
            made = torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")
        program = torch.export.export(nn.Linear(16, 16), (A,))
    assert made.device.type == "cuda"
    assert torch.equal(program.module()(A), program.module()(A))
    assert run.named("mm") == []
    assert {one.operands[0].device for one in run.operations if one.operands} <= {"cpu"}


def test_distributed_tensors_are_seen_by_their_parts() -> None:
    distributed = pytest.importorskip("torch.distributed.tensor")
    if not torch.distributed.is_available() or torch.distributed.is_initialized():
        pytest.skip("needs a process group of its own")
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
        whole = distributed.distribute_tensor(A, mesh, [distributed.Shard(0)])
        with traced() as run:
            out = whole @ whole
            torch.distributed.all_reduce(torch.ones(3))
    finally:
        torch.distributed.destroy_process_group()
    assert type(out) is distributed.DTensor
    assert torch.equal(out.to_local(), A @ A)
    assert run.only("mm").operands[0].array.shape == (16, 16)
    assert run.named("allreduce_")


def test_nested_tensors_are_passed_through() -> None:
    nested = torch.nested.nested_tensor([A[:3], A[:5]], layout=torch.jagged)
    with traced():
        out = nested * 2
    assert torch.equal(out.unbind()[1], A[:5] * 2)


def test_sparse_and_meta_tensors_are_noted() -> None:
    with traced() as run:
        torch.mm(torch.eye(4).to_sparse(), torch.ones(4, 4))
        torch.exp(torch.ones(3, device="meta"))
    sparse = [one for one in run.operations if any(not x.array.strides for x in one.operands)]
    assert sparse
    assert run.only("exp").operands[0].device == "meta"


def test_higher_order_operators_are_passed_through() -> None:
    from torch._higher_order_ops.cond import cond

    with traced():
        out = cond(torch.tensor(True), torch.sin, torch.cos, (A,))
    assert torch.equal(out, torch.sin(A))


def test_other_threads_are_left_alone() -> None:
    results = []
    with traced() as run:
        thread = threading.Thread(target=lambda: results.append(torch.tanh(A)))
        thread.start()
        thread.join()
    assert torch.equal(results[0], torch.tanh(A))
    assert run.named("tanh") == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_is_silent() -> None:
    with traced() as run:
        torch.exp(A)
        child = os.fork()
        if not child:
            A.contiguous()
            torch.exp(A)
            seen = run.session.recorder.seen
            asked = len(list(run.session.recorder.requests()))
            os._exit(0 if (seen, asked) == (1, 0) else 1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert run.session.recorder.seen == 1


def test_autocast_and_hooks_work() -> None:
    model = nn.Linear(16, 16)
    seen = []
    model.register_full_backward_hook(lambda module, into, out: seen.append(out[0].shape))
    with traced(), torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(A.requires_grad_())
        out.float().sum().backward()
    assert out.dtype is torch.bfloat16
    assert seen == [torch.Size([16, 16])]
    A.requires_grad_(False)
