"""Programs that do unusual things with torch; each gives back what it has computed."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import io
import pickle
import queue
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call, grad, hessian, jacfwd, jvp, vmap
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset
from torch.utils.flop_counter import FlopCounterMode

Program = Callable[[], Any]
PROGRAMS: dict[str, Program] = {}


def odd(program: Program) -> Program:
    """Enter a program into the list."""
    PROGRAMS[program.__name__] = program
    return program


def x(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (8, 8)))


# Threads, and code that is not run in a row


@odd
def threads_that_train_side_by_side() -> Any:
    found: queue.Queue[torch.Tensor] = queue.Queue()
    inputs = [x(), x()]

    def train(given: torch.Tensor) -> None:
        weight = given.clone().requires_grad_()
        for _ in range(3):
            (weight.contiguous() @ given).square().mean().backward()
        assert weight.grad is not None
        found.put(weight.grad)

    workers = [threading.Thread(target=train, args=(one,)) for one in inputs]
    for one in workers:
        one.start()
    here = torch.exp(inputs[0])
    for one in workers:
        one.join()
    return [here, *sorted((found.get() for _ in workers), key=lambda one: float(one.sum()))]


@odd
def a_thread_that_ends_after_the_main_one_went_on() -> Any:
    results: list[torch.Tensor] = []
    go = threading.Event()

    def late() -> None:
        go.wait()
        results.append(torch.ones(3).contiguous().cpu() + 1)

    thread = threading.Thread(target=late)
    thread.start()
    torch.ones(2).exp()
    go.set()
    thread.join()
    return results


@odd
def a_generator_that_holds_no_grad_open() -> Any:
    def batches() -> Iterator[torch.Tensor]:
        with torch.no_grad():
            for n in range(3):
                yield torch.full((4,), float(n)).exp()

    weight = torch.ones(4, requires_grad=True)
    return [(one * weight).sum() for one in batches()]


@odd
def coroutines_that_take_turns() -> Any:
    async def work(n: int) -> torch.Tensor:
        total = torch.zeros(4)
        for _ in range(3):
            total = total + n
            await asyncio.sleep(0)
        return total.t().contiguous() if total.dim() > 1 else total

    async def stream() -> AsyncIterator[torch.Tensor]:
        for n in range(2):
            yield torch.arange(n + 1)

    async def main() -> list[torch.Tensor]:
        results = await asyncio.gather(work(1), work(2))
        return [*results, *[one async for one in stream()]]

    return asyncio.run(main())


class Squares(Dataset[torch.Tensor]):
    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((4,), float(index)).square() + torch.rand(4)

    def __len__(self) -> int:
        return 8


def _loaded(method: str) -> Any:
    loader = DataLoader(Squares(), 2, num_workers=2, multiprocessing_context=method, shuffle=True)
    return [batch.sum() for batch in loader]


@odd
def workers_that_were_forked() -> Any:
    return _loaded("fork")


@odd
def workers_that_were_spawned() -> Any:
    return _loaded("spawn")


@odd
def a_loader_that_is_left_halfway() -> Any:
    kept = []
    for batch in DataLoader(Squares(), 2):
        kept.append(batch)
        if len(kept) == 2:
            break
    return kept


# Autograd


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, given: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(given)
        return given**3

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        (given,) = ctx.saved_tensors
        return gradient * 3 * given**2  # type: ignore[no-any-return]


@odd
def a_function_with_its_own_backward() -> Any:
    given = x().requires_grad_()
    (gradient,) = torch.autograd.grad(Cube.apply(given).sum(), given, create_graph=True)
    gradient.sum().backward()
    return [gradient, given.grad]


class Failing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, given: torch.Tensor) -> torch.Tensor:
        return given * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        raise ArithmeticError("no gradient")


@odd
def a_backward_that_fails_and_is_tried_again() -> Any:
    given = x().requires_grad_()
    try:
        Failing.apply(given.exp()).sum().backward()
    except ArithmeticError as error:
        told = str(error)
    given.exp().sum().backward()
    return [told, given.grad]


@odd
def hooks_that_fail() -> Any:
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU())

    def hook(*given: Any) -> None:
        raise LookupError("hook")

    told = []
    given = x()
    for register in (net[0].register_forward_hook, net[0].register_full_backward_hook):
        handle = register(hook)
        try:
            net(given).sum().backward()
        except LookupError as error:
            told.append(str(error))
        handle.remove()
    net(given).sum().backward()
    return [told, net[0].weight.grad]


@odd
def hooks_that_compute() -> Any:
    net = nn.Linear(8, 8)
    seen = []
    net.register_forward_pre_hook(lambda module, given: (given[0] * 2,))
    net.weight.register_hook(lambda gradient: gradient.t().contiguous().t() * 0.5)
    net.weight.register_post_accumulate_grad_hook(lambda one: seen.append(one.grad.sum()))
    net(x()).sum().backward()
    return [seen, net.weight.grad]


@odd
def what_is_saved_is_packed() -> Any:
    given = x().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda one: one.numpy(), torch.from_numpy):
        out = given.exp().sin().sum()
    out.backward()
    with torch.autograd.graph.save_on_cpu():
        given.square().sum().backward()
    return given.grad


@odd
def checkpoints_of_both_kinds() -> Any:
    net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Tanh())
    given = x().requires_grad_()
    for reentrant in (True, False):
        checkpoint(net, given, use_reentrant=reentrant).sum().backward()
    return [given.grad, net[0].weight.grad]


@odd
def anomalies_are_looked_for() -> Any:
    given = torch.zeros(3, requires_grad=True)
    with warnings.catch_warnings(), torch.autograd.detect_anomaly():
        warnings.simplefilter("ignore")
        try:
            (given.sqrt() * 0).sum().backward()
        except RuntimeError as error:
            return "nan" in str(error)
    return None


@odd
def gradients_of_gradients_and_forward_mode() -> Any:
    given = x(4)
    directional = jvp(torch.sin, (given,), (torch.ones(4),))
    return [
        directional, hessian(lambda one: one.sin().sum())(given), jacfwd(torch.tanh)(given),
        vmap(grad(lambda one: (one**2).sum()), randomness="error")(x(3, 4)),
        vmap(lambda one: one + torch.rand(()), randomness="different")(torch.zeros(3)),
    ]  # fmt: skip


@odd
def a_model_called_with_other_weights() -> Any:
    net = nn.Linear(8, 8)
    weights = {name: one.detach() * 2 for name, one in net.named_parameters()}
    given = x()
    return grad(lambda own: functional_call(net, own, (given,)).sum())(weights)


# Other modes and subclasses


class Doubling(TorchDispatchMode):
    """Changes results, and raises where it is told to."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        return out * 2 if func is torch.ops.aten.exp.default else out


@odd
def a_mode_of_the_program_s_own() -> Any:
    with Doubling():
        return torch.zeros(3).exp()


@odd
def operations_are_counted() -> Any:
    with FlopCounterMode(display=False) as counting:
        x() @ x()
    return counting.get_total_flops()


@odd
def tensors_without_numbers() -> Any:
    with FakeTensorMode():
        made = nn.Linear(8, 8)(torch.ones(4, 8))
    net = nn.Linear(8, 8, device="meta")
    return [made.shape, net(torch.ones(4, 8, device="meta")).shape]


@odd
def a_profiler_that_the_program_opened() -> Any:
    with (
        torch.profiler.profile(record_shapes=True) as profiler,
        torch.profiler.record_function("mine"),
    ):
        x() @ x()
    names = {one.key for one in profiler.key_averages()}
    return [name in names for name in ("mine", "aten::mm")]


@odd
def a_profiler_with_a_schedule() -> Any:
    ready = []
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=1)
    with torch.profiler.profile(
        schedule=schedule, on_trace_ready=lambda one: ready.append(one.step_num)
    ) as profiler:
        for _ in range(4):
            x() @ x()
            profiler.step()
    return ready


@odd
def a_profiler_around_some_steps() -> Any:
    """The tracer would profile one of them itself."""
    net = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    given, counts = x(), []
    for _ in range(2):
        with torch.profiler.profile() as profiler:
            for _ in range(3):
                net(given).sum().backward()
                optimizer.step()
        # Under a dispatch mode, any one, they are counted twice.
        counts.append({one.key: one.count for one in profiler.key_averages()}["aten::addmm"] >= 3)
    return [counts, net.weight.detach()]


@odd
def a_profiler_that_begins_within_a_step() -> Any:
    net = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    profiler = torch.profiler.profile()
    for step in range(6):
        net(x()).sum().backward()
        if step == 3:
            profiler.start()
        optimizer.step()
    profiler.stop()
    return [one.count >= 2 for one in profiler.key_averages() if one.key == "aten::addmm"]


class Logged(torch.Tensor):
    """A subclass that goes by torch functions."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})


@odd
def a_subclass_with_the_methods_that_are_wrapped() -> Any:
    made = x().as_subclass(Logged)
    kept = [made.contiguous(), made.to(torch.float64), made.float(), made.cpu()]
    return [[type(one) is Logged for one in kept], [one.as_subclass(torch.Tensor) for one in kept]]


@odd
def masked_tensors_and_nested_ones() -> Any:
    nested = torch.nested.nested_tensor([x(2, 4), x(3, 4)], layout=torch.jagged)
    out = nn.functional.linear(nested, torch.ones(4, 4)).contiguous()
    old = torch.nested.nested_tensor([x(2, 4), x(3, 4)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        masked = torch.masked.masked_tensor(torch.arange(4.0), torch.tensor([True, False] * 2))
    return [*out.unbind(), (old * 2).to_padded_tensor(0.0), (masked * 2).get_data()]


# Layouts and dtypes


@odd
def sparse_tensors_of_all_layouts() -> Any:
    dense = torch.eye(8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = [dense.to_sparse(), dense.to_sparse_csr(), dense.to_sparse_csc()]
        kept.append(dense.to_sparse_bsr((2, 2)))
        products = [one.matmul(torch.ones(8, 8)) for one in kept]
        weight = dense.to_sparse().requires_grad_()
        torch.sparse.mm(weight, torch.ones(8, 2)).sum().backward()
    embedding = nn.Embedding(8, 4, sparse=True)
    embedding(torch.tensor([1, 3])).sum().backward()
    assert weight.grad is not None
    assert embedding.weight.grad is not None
    return [*products, weight.grad.to_dense(), embedding.weight.grad.coalesce().values()]


@odd
def numbers_of_all_kinds() -> Any:
    wave = torch.fft.fft(x(8)).conj()
    real = torch.view_as_real(wave.resolve_conj())
    negative = wave.imag
    small = torch.ones(4).to(torch.float8_e4m3fn).float()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantized = torch.quantize_per_tensor(torch.arange(4.0), 0.1, 0, torch.quint8)
        whole = quantized.dequantize().contiguous()
    return [wave.abs(), real, negative + 0, small, whole, torch.ones(4).bool().sum()]


@odd
def shapes_of_all_kinds() -> Any:
    empty = torch.empty(0, 3)
    deep = torch.ones([1] * 25)
    return [
        empty.sum(0), empty.t().contiguous(), torch.cat([empty, torch.ones(2, 3)]),
        torch.tensor(3.0).contiguous() * 2, deep.permute(*reversed(range(25))).contiguous().shape,
        torch.ones(1).expand(4, 5).contiguous(), torch.ones(1).expand(4, 5) + 1,
        torch.arange(12.0).as_strided((3, 3), (2, 1)) + 1,
        torch.arange(12.0).unfold(0, 4, 2).sum(1), x().t()[::2, ::3].reshape(-1),
        torch.ones(3, 4).resize_(2, 2), torch.ones(0).reshape(0, 4).sum(1),
    ]  # fmt: skip


@odd
def storages_that_are_shared_and_changed() -> Any:
    base = torch.arange(6.0)
    with torch.no_grad():
        view = base.view(2, 3).t()
        view.add_(1)
        base.set_(torch.ones(4))  # type: ignore[call-overload]
    shared = torch.from_numpy(torch.arange(4.0).numpy())
    shared.mul_(2)
    return [base, view, shared, torch.frombuffer(bytearray(8), dtype=torch.int32)]


# Objects of the program


@odd
def models_are_copied_pickled_saved() -> Any:
    net = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    twin = copy.deepcopy(net)
    third = pickle.loads(pickle.dumps(net))
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    twin.load_state_dict(torch.load(file))
    method = pickle.dumps(torch.Tensor.contiguous)
    given = x()
    return [one(given) for one in (net, twin, third)] + [len(method) > 0]


@odd
def parametrizations_and_pruning() -> Any:
    net = nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))
    nn.utils.parametrizations.orthogonal(other := nn.Linear(8, 8))
    net(other(x())).sum().backward()
    return [one.grad for one in net.parameters()]


@odd
def optimizers_that_fail_or_call_back() -> Any:
    net = nn.Linear(8, 1)
    given = x()
    fits = torch.optim.LBFGS(net.parameters(), max_iter=4)

    def closure() -> torch.Tensor:
        fits.zero_grad()
        loss = net(given).square().mean()
        loss.backward()
        return loss

    losses = [fits.step(closure)]
    steps = torch.optim.SGD(net.parameters(), lr=0.1)

    def failing() -> torch.Tensor:
        raise LookupError("closure")

    with contextlib.suppress(LookupError):
        steps.step(failing)
    losses.append(steps.step(closure))
    return [losses, net.weight.detach()]


def _twice(given: torch.Tensor) -> torch.Tensor:
    return given.contiguous().to(torch.float32) * 2


@odd
def code_for_torch_s_own_interpreter() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(_twice, (torch.ones(3),))
        scripted = torch.jit.script(nn.Sequential(nn.Linear(8, 8), nn.ReLU()))
    symbolic = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(8, 8), nn.ReLU()))
    return [traced(torch.ones(3)), scripted(x()), symbolic(x()), "contiguous" in traced.code]


@odd
def programs_that_are_exported() -> Any:
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    program = torch.export.export(net, (x(),))
    made = torch.fx.experimental.proxy_tensor.make_fx(_twice)(torch.ones(3))
    return [program.module()(x()), made(torch.ones(3)), made.code]


@odd
def compiled_code_that_breaks_its_graph() -> Any:
    def broken(given: torch.Tensor) -> torch.Tensor:
        given = given.t().contiguous()
        if given.sum() > 0:
            return given * 2
        return given * 3

    return torch.compile(broken, backend="aot_eager")(x().abs().requires_grad_())


@torch.library.custom_op("memlint_tests::shifted", mutates_args=())
def shifted(given: torch.Tensor, by: float) -> torch.Tensor:
    return given + by


@shifted.register_fake
def _(given: torch.Tensor, by: float) -> torch.Tensor:
    return torch.empty_like(given)


shifted.register_autograd(lambda ctx, gradient: (gradient * 3, None))


@odd
def operators_of_the_program_s_own() -> Any:
    given = x().requires_grad_()
    shifted(given, 2.0).sum().backward()
    library = torch.library.Library("memlint_tests", "FRAGMENT")
    library.define("pair(Tensor a, *, Tensor? b=None, str how='x') -> (Tensor, Tensor[])")
    library.impl("pair", lambda a, b=None, how="x": (a + 1, [a, a.t().clone()]), "CPU")
    first, others = torch.ops.memlint_tests.pair(torch.ones(2, 2), how="y")
    library._destroy()
    return [given.grad, first, *others]


@odd
def default_devices_and_dtypes() -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            shape = torch.ones(3).device.type
        return [shape, torch.ones(3) + torch.rand(3)]
    finally:
        torch.set_default_dtype(before)


@odd
def random_numbers_of_several_generators() -> Any:
    own = torch.Generator().manual_seed(5)
    with torch.random.fork_rng():
        torch.rand(3)
    order = torch.randperm(8, generator=own)
    return [order, torch.rand(3, generator=own), torch.bernoulli(torch.full((4,), 0.5))]
