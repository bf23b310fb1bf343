"""MEM204 create-then-move."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from memlint.analysis.births import MOVES, Birth, birth_of, made_there, names_device
from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.places.moved import moves_what_it_makes
from memlint.analysis.uses import Uses, uses_in
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Severity
from memlint.late_pattern import name_pattern
from memlint.rule import Draft, DraftFix, Needs, Rule
from memlint.tracer.operands import FACTORIES, megabytes, move_of
from memlint.tracer.records import LOADING, Operation
from memlint.tracer.sightings import Sighting

HELP = "pass `device=` to the function that makes the tensor, and drop the move"
MADE = name_pattern(
    r"\b(zeros|ones|empty|full|eye|arange|tri[lu]_indices|linspace|logspace|range|hann_window|"
    r"hamming_window|kaiser_window|rand|randn|randint|randperm|normal)\b"
)
MOVED = frozenset({".to(", ".cuda(", ".type_as(", ".type("})
# With a default device, factories make tensors elsewhere than in host memory.
DEFAULTS = ("set_default_device", "set_default_tensor_type")


class CreateThenMove(Rule):
    """A tensor is made in host memory and then moved to the device.

    ## What it does

    Reports `.to(device)`, `.cuda()` and `.type_as(x)` of a tensor that `torch.zeros`,
    `torch.randn`, `torch.arange` or another such function has just made, with nothing of the
    host's data in it. The function takes `device=` and can make the tensor where it is needed.

    ## Why it is slow

    The host allocates and fills memory, the driver copies it over the bus, and since that memory
    is pageable the calling thread waits until the copy is done. Made on the device, the same
    tensor costs one allocation from a pool and one kernel, and the host goes on. In a forward
    pass or a training step that happens every time. PyTorch's tuning guide says to create
    tensors directly on the target device. What it saves grows with the tensor; for small ones it
    is the wait that counts.

    ## When it is silent

    - the tensor is given data (`torch.tensor(data)`, `torch.from_numpy(a)`): that is on the host
      anyway;
    - `device=`, `generator=` or `pin_memory=` is given: a seeded host generator gives the same
      numbers on every card, a pinned buffer is there to be filled;
    - the tensor is written to, or used otherwise, before it is moved;
    - the destination is the CPU, or is not known to be a device (`x.to(dtype)`);
    - the program sets a default device;
    - it runs once, in the module body;
    - it is made before the loop in which it is moved: `loop-invariant-transfer` tells of it;
    - `*_like` and `new_*`, which follow another tensor.

    ## Example

    ```python
    import torch


    def initial_state(layers, batch, hidden, x):
        h = torch.zeros(layers, batch, hidden).to(x.device)
        noise = torch.randn(batch, hidden).cuda()
        return h, noise
    ```

    ## Use instead

    ```python
    import torch


    def initial_state(layers, batch, hidden, x):
        h = torch.zeros(layers, batch, hidden, device=x.device)
        noise = torch.randn(batch, hidden, device="cuda")
        return h, noise
    ```

    ## Fix safety

    Safe where the numbers do not depend on the device: `zeros`, `ones`, `full`, `eye`, `empty`
    and `arange` of integers. Unsafe for random numbers, since the CPU and each CUDA device have
    generators of their own: the same seed then gives other numbers. Unsafe, too, where floating
    point is rounded on the way, and for `x.cuda(gpu)` where `gpu` may be `None`: that is the
    current card for `cuda`, but the host for `device=`.

    ## How to confirm

    Look for copies from host to device in a profile whose source was made by `aten::zeros`,
    `aten::randn` or `aten::arange` just before. `memlint bench create-then-move` measures it on
    your machine, where it has a CUDA device.

    ## References

    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [mmsegmentation issue 3231](https://github.com/open-mmlab/mmsegmentation/issues/3231)
    """

    code = "MEM204"
    name = "create-then-move"
    severity = Severity.INFO
    needs_device = "cuda"
    applicability = Applicability.SAFE
    needs = Needs(
        {"torch"},
        {MADE},
        MOVED,
        units=[MOVED],
        nearest=True,
        places=moves_what_it_makes,
        callers=moves_what_it_makes,
    )
    calls = MOVES
    supersedes = ("cast-before-transfer",)

    def __init__(self, options: dict[str, object] | None = None) -> None:
        super().__init__(options)
        self._uses: Uses | None = None
        self._tree: ast.Module | None = None

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Take note of the program."""
        self._tree, self._uses = start.tree, None
        yield from ()

    def check_move(self, move: Called) -> Iterator[Draft]:
        """A move of what was made just before."""
        if move.context.function is None and not move.context.loops:
            return
        if any(map(move.source.holds, DEFAULTS)) or _under_device(move):
            return
        if self._uses is None:
            assert self._tree is not None
            self._uses = uses_in(self._tree)
        birth = birth_of(move, self._uses)
        if birth is not None:
            yield self.finding(move.node, _message(birth), HELP, fix=_fix(birth))

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        """Arrays that are made on the host and go to a device as they are."""
        move = move_of(operation)
        if move is None or not move.to_device or move.made_by not in FACTORIES:
            return
        if move.maker is None or move.maker.phase == LOADING:
            return
        nbytes = move.source.array.nbytes * operation.count
        yield Sighting(
            self,
            move.maker.site,
            f"`{move.made_by}` fills {megabytes(move.source.array.nbytes)} of host memory, which "
            f"are then copied to {move.target.device}",
            "make it there: `device=...`",
            self.severity,
            operation.count,
            operation.steps,
            nbytes,
            related=((operation.site, "it is moved here"),),
        )

    @bench(
        "makes a tensor of zeros for the device",
        as_is="torch.zeros(n).to(device)",
        alternative="torch.zeros(n, device=device)",
        needs=("cuda",),
        sizes=Sizes("elements", quick=1 << 18, full=(1 << 10, 1 << 18, 1 << 24)),
    )
    def bench_zeros(self, size: Size) -> Pair:
        """Numbers that are the same on every device."""
        import torch

        def on_the_host() -> Any:
            return torch.zeros(size.number).to(size.device)

        def on_the_device() -> Any:
            return torch.zeros(size.number, device=size.device)

        what = f"float32, {size.number} elements"
        return Pair(on_the_host, on_the_device, tuple, what, settle=size.settle)

    @bench(
        "makes a tensor of random numbers for the device",
        as_is="torch.randn(n).to(device)",
        alternative="torch.randn(n, device=device)",
        needs=("cuda",),
        sizes=Sizes("elements", quick=1 << 18, full=(1 << 10, 1 << 18, 1 << 22)),
    )
    def bench_random(self, size: Size) -> Pair:
        """Random numbers, which each device draws in its own way."""
        import torch

        def on_the_host() -> Any:
            return torch.randn(size.number).to(size.device)

        def on_the_device() -> Any:
            return torch.randn(size.number, device=size.device)

        what = f"float32, {size.number} elements"
        return Pair(on_the_host, on_the_device, tuple, what, comparable=False, settle=size.settle)


def _under_device(move: Called) -> bool:
    return any(
        getattr(manager, "cls", "") in ("torch.device", "torch.cuda.device")
        for manager in move.context.managers
    )


def _message(birth: Birth) -> str:
    made = birth.factory.name
    text = (
        f"`{made}` makes this tensor in host memory and `{birth.move.name[1:]}` copies it to the "
        "device: a host allocation and a copy that the host waits for, each time this runs"
    )
    return f"{text} (numbers drawn on the device will be others)" if birth.random else text


def _fix(birth: Birth) -> DraftFix | None:
    edit = made_there(birth, birth.move.source)
    if edit is None:
        return None
    leaf = any(key == "requires_grad" for key, _ in birth.factory.keywords)
    rounded = birth.factory.name == "torch.full" and birth.move.name == ".type_as"
    safe = birth.exact and not leaf and not rounded and names_device(birth.move)
    return DraftFix(
        f"make it on the device: `{edit.content}`",
        (edit,),
        Applicability.SAFE if safe else Applicability.UNSAFE,
    )
