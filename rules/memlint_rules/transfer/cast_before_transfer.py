"""MEM213 cast-before-transfer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.places.moved import moves_what_it_widens
from memlint.analysis.shown import shown
from memlint.analysis.uses import Uses, uses_in
from memlint.analysis.widening import Widening, moved_first, widening_of
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Severity
from memlint.late_pattern import name_pattern
from memlint.rule import Draft, DraftFix, Needs, Related, Rule
from memlint.tracer.operands import ITEMSIZES, is_large, megabytes, move_of
from memlint.tracer.records import Operation
from memlint.tracer.sightings import Sighting

HELP = "move the narrow tensor, and cast it on the device: `x.to(device).float()`"
CASTS = name_pattern(r"\.(float|double|long|int|float32|float64|int32|int64|type)\b")
NARROW = name_pattern(
    r"u?int8|int16|int32|float16|\bbool\b|\.half\b|\.short\b|ByteTensor|imread|imdecode|"
    r"Image\b|decode_|read_image"
)


class CastBeforeTransfer(Rule):
    """Numbers are widened on the host and then moved.

    ## What it does

    Reports a move to a device of what `.float()`, `.long()` or another cast has just made wider,
    where the dtype before is known to be narrower (images of `uint8`, indices of `int32`), and
    `x.to(device, torch.float32)`, which converts on the host first.

    ## Why it is slow

    All the bytes go over the bus: four times as many for an image of `uint8` as `float32`, twice
    as many for `int32` as `int64`. The host, too, makes another tensor and writes it, into
    memory that is not pinned. The device does the same cast at the speed of its memory. With
    `x.to(device, dtype)` the conversion runs where the copy starts, unless it is
    `non_blocking`. It matters for images and other large batches, not for a few numbers.

    ## When it is silent

    - the dtype before the cast is not known, or not narrower;
    - the tensor is made just before, of nothing but numbers: `create-then-move` reports it;
    - it is not known to lie in host memory;
    - the cast is done in NumPy (`a.astype(np.float32)`);
    - the wide tensor is used on the host as well;
    - `.half()` and `.bfloat16()` of `float32`, which make less of it.

    ## Example

    ```python
    import torch
    from torchvision.io import read_image


    def load(path, device):
        image = read_image(path)
        return image.float().to(device)
    ```

    ## Use instead

    ```python
    import torch
    from torchvision.io import read_image


    def load(path, device):
        image = read_image(path)
        return image.to(device).float()
    ```

    ## Fix safety

    Safe where the cast stands right before the move: widening is exact on every device. Where
    something is computed in between, only the message is given: rounding may differ.

    ## How to confirm

    In a profile, look at the bytes of the host-to-device copy, and at the `aten::to` or
    `aten::_to_copy` on the CPU just before it. `memlint bench cast-before-transfer` measures it on
    your machine, where it has a CUDA device.

    ## References

    - [Copy.cu of PyTorch: where a copy converts](https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/cuda/Copy.cu)
    - [A guide on good usage of non_blocking and pin_memory()](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """

    code = "MEM213"
    name = "cast-before-transfer"
    severity = Severity.INFO
    needs_device = "cuda"
    applicability = Applicability.SAFE
    needs = Needs(
        {"torch"},
        {".to(", ".cuda("},
        {CASTS},
        {NARROW},
        units=[{".to(", ".cuda("}],
        nearest=True,
        places=moves_what_it_widens,
        callers=moves_what_it_widens,
    )
    calls = frozenset({".to", ".cuda"})

    def __init__(self, options: dict[str, object] | None = None) -> None:
        super().__init__(options)
        self._tree: ast.Module | None = None
        self._uses: Uses | None = None

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Take note of the program."""
        self._tree, self._uses = start.tree, None
        yield from ()

    def check_move(self, move: Called) -> Iterator[Draft]:
        """A move of numbers that were widened before."""
        if self._uses is None:
            assert self._tree is not None
            self._uses = uses_in(self._tree)
        found = widening_of(move, self._uses)
        if found is None:
            return
        related = [Related(found.cast.node, "widened here")] if found.cast is not None else []
        yield self.finding(move.node, _message(found), HELP, related=related, fix=_fix(found))

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        """Arrays that are widened on the host and then go to a device."""
        move = move_of(operation)
        if move is None or not move.to_device or move.made_by != "_to_copy":
            return
        maker = move.maker
        width = ITEMSIZES.get(maker.took) if maker is not None else None
        if maker is None or width is None or width >= move.source.array.itemsize:
            return
        if not is_large(move.source):
            return
        saved = move.source.array.elements * (move.source.array.itemsize - width)
        yield Sighting(
            self,
            maker.site,
            f"{maker.took} becomes {move.source.dtype} on the host and goes to "
            f"{move.target.device} then: {megabytes(saved)} more than need be, each time",
            "move first, and cast on the device",
            self.severity,
            operation.count,
            operation.steps,
            saved * operation.count,
            related=((operation.site, "it is moved here"),),
        )

    @bench(
        "moves uint8 images to the device as float32",
        as_is="images.float().to(device)",
        alternative="images.to(device).float()",
        needs=("cuda",),
        sizes=Sizes("images", quick=16, full=(1, 16, 64, 256)),
    )
    def bench_images(self, size: Size) -> Pair:
        """Four times the bytes."""

        def wide(images: Any) -> Any:
            return images.float().to(size.device)

        def narrow(images: Any) -> Any:
            return images.to(size.device).float()

        return _images(wide, narrow, size)

    @bench(
        "moves uint8 images to the device as float32, in one call",
        as_is="images.to(device, torch.float32)",
        alternative="images.to(device).float()",
        needs=("cuda",),
        sizes=Sizes("images", quick=16, full=(1, 16, 64, 256)),
        quick=False,
    )
    def bench_one_call(self, size: Size) -> Pair:
        """Where torch chooses on which side it converts."""
        import torch

        def in_one_call(images: Any) -> Any:
            return images.to(size.device, torch.float32)

        def narrow(images: Any) -> Any:
            return images.to(size.device).float()

        return _images(in_one_call, narrow, size)

    @bench(
        "moves int32 indices to the device as int64",
        as_is="indices.long().to(device)",
        alternative="indices.to(device).long()",
        needs=("cuda",),
        sizes=Sizes("indices", quick=1 << 18, full=(1 << 10, 1 << 18, 1 << 24)),
    )
    def bench_indices(self, size: Size) -> Pair:
        """Twice the bytes."""
        import torch

        def wide(indices: Any) -> Any:
            return indices.long().to(size.device)

        def narrow(indices: Any) -> Any:
            return indices.to(size.device).long()

        def operands() -> tuple[Any, ...]:
            return (torch.arange(size.number, dtype=torch.int32),)

        return Pair(wide, narrow, operands, f"{size.number} indices", settle=size.settle)


def _images(as_is: Any, alternative: Any, size: Size) -> Pair:
    import torch

    def operands() -> tuple[Any, ...]:
        generator = torch.Generator().manual_seed(0)
        shape = (size.number, 3, 224, 224)
        return (torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator),)

    what = f"uint8, {size.number} x 3 x 224 x 224"
    return Pair(as_is, alternative, operands, what, settle=size.settle)


def _message(found: Widening) -> str:
    return (
        f"{found.narrow} is made {found.wide} on the host, and then moved by "
        f"{shown(found.move.node)}: {found.factor} times the bytes go over the bus"
    )


def _fix(found: Widening) -> DraftFix | None:
    edit = moved_first(found, found.move.source)
    if edit is None:
        return None
    return DraftFix(f"cast on the device: `{edit.content}`", (edit,), Applicability.SAFE)
