"""MEM302 channels-last-mismatch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, ClassVar

from memlint.analysis.edits import call_with_keyword
from memlint.analysis.events import Called, ProgramEnd, ProgramStart
from memlint.analysis.formats import CONVOLVING, Format, format_of
from memlint.analysis.methods import from_method
from memlint.analysis.places.permuted import PERMUTED, goes_elsewhere, may_densify, may_hand_on
from memlint.analysis.uses import uses_in
from memlint.analysis.values import Made, Ref, Tensor, Unknown, alternatives
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, DraftFix, Needs, Related, Replacement, Rule, Word
from memlint.source.model import Source
from memlint.tracer.chains import is_nchw, is_nhwc
from memlint.tracer.operands import is_dense_copy, is_large, megabytes, spell
from memlint.tracer.records import FORWARD, InnerCopy, LostFormat, MixedFormats, Operation
from memlint.tracer.sightings import CHANNELS_LAST, Claim, Part, Sighting

FORMATS = frozenset({Ref("torch.channels_last"), Ref("torch.channels_last_3d")})
UNKNOWN = Unknown()
JOINS = ("torch.cat", "torch.concat", "torch.concatenate")
_CONVOLUTIONS: frozenset[Word] = frozenset(
    {late_pattern(r"Conv(Transpose)?[23]d"), late_pattern(r"conv(_transpose)?[23]d")}
)
_OPERANDS = {
    0: (
        "input",
        "weight",
        "give it channels_last images: `.to(memory_format=torch.channels_last)`, once, where they "
        "come from",
    ),
    1: (
        "weight",
        "input",
        "convert the model once: `.to(memory_format=torch.channels_last)`; or keep the input "
        "row-major",
    ),
}
"""Of the operands of a convolution: its name, that of the other one, and what to write."""


class ChannelsLastMismatch(Rule):
    """An operation between convolutions loses the channels_last format.

    ## What it does

    Reports operations whose input has the channels_last format (it comes from a convolution of a
    model that the program converts, or is a permuted NHWC array) and whose result is row-major
    when the next convolution takes it: a plain `.contiguous()`, `contiguous_format`, a `cat` with
    a row-major part, an addition whose first operand is row-major, a `reshape` that copies.

    Of a traced run it also reports convolutions whose image and weight are in different formats. An
    image that comes from elsewhere has to be converted at some place: then this is *info*, and the
    replay tells whether converting it earlier would be any faster.

    ## Why it is slow

    The convolution has to bring the tensor back into its own format: two passes over it that
    compute nothing, in each forward pass, and again in backward. In one report on CPU the
    convolutions after such a call became 3.6 times slower (pytorch#172205); on GPUs the passes
    show as `nchwToNhwc` kernels. How much it is depends on the sizes, so measure.

    Where no model is converted and an NHWC array is permuted and copied, the severity is *info*:
    the copy is a pass too many, but which format is the faster one for the convolution depends on
    the card and the precision.

    ## When it is silent

    - channels_last is not in play in the file, and no NHWC array is permuted for a convolution
      alone.
    - The tensor goes to no convolution afterwards, or not directly: a head, a loss, attention.
    - `.contiguous(memory_format=torch.channels_last)`; reshapes that are views, which keep it.
    - The input of a converted model is not converted: that is one conversion, at the first
      convolution.
    - What comes before or after is not known: layers of unknown kind, parameters.

    ## Example

    ```python
    import torch
    from torch import nn


    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(64, 64, 3, padding=1)
            self.second = nn.Conv2d(64, 64, 3, padding=1)

        def forward(self, x):
            y = torch.relu(self.first(x)).contiguous()
            return self.second(y)


    def build():
        return Block().cuda().to(memory_format=torch.channels_last)
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn


    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(64, 64, 3, padding=1)
            self.second = nn.Conv2d(64, 64, 3, padding=1)

        def forward(self, x):
            y = torch.relu(self.first(x))
            return self.second(y)


    def build():
        return Block().cuda().to(memory_format=torch.channels_last)
    ```

    ## Fix safety

    Shown only: it leaves a plain `.contiguous()` out, or names the format. Values stay the same,
    but a `.view` further down may need the row-major order that goes away.

    ## How to confirm

    Print `y.is_contiguous(memory_format=torch.channels_last)` before and after the operation, or
    look for `nchwToNhwc` kernels and `aten::clone` in a profile. `memlint trace` reports operations
    that lose the format and convolutions that copy their input or weight in each call. `memlint
    bench channels-last-mismatch` measures it on your machine.

    ## References

    - [Channels last memory format in PyTorch](https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html)
    - [tensor.contiguous() before a convolution on CPU](https://github.com/pytorch/pytorch/issues/172205)
    - [A reshape that drops the format](https://github.com/pytorch/pytorch/issues/78611)
    """

    code = "MEM302"
    name = "channels-last-mismatch"
    severity = Severity.WARNING
    applicability = Applicability.DISPLAY
    needs = Needs(
        {"torch"},
        _CONVOLUTIONS,
        {"channels_last", *PERMUTED},
        units=[PERMUTED],
        values=[_CONVOLUTIONS],
        nearest=True,
        places=may_densify,
        callers=may_hand_on,
        # A method that cuts modules out of its model: what is left is not known then.
        also={late_pattern(r"self\.(\w+) = self\.\1\[")},
        # Whose model is converted, and which operations undo that, the whole program tells.
        whole={"torch.channels_last", "th.channels_last", "import channels_last"},
    )
    calls: ClassVar[frozenset[str]] = CONVOLVING | {".to"}

    def __init__(self, options: dict[str, object] | None = None) -> None:
        super().__init__(options)
        self._converted = False
        self._lost: dict[int, tuple[Called, Format, Made]] = {}

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """A new program."""
        self._converted = False
        self._lost = {}
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """Note conversions, and what convolutions are given."""
        if called.name == ".to":
            self._converted = self._converted or _converts_model(called)
        elif called.args.positional:
            found = format_of(called.args.positional[0])
            if found is not None and found.lost is not None:
                self._lost.setdefault(id(found.lost.node), (called, found, found.lost))
        yield from ()

    def check_end(self, end: ProgramEnd) -> Iterator[Draft]:
        """What was lost, if the format is in play."""
        for called, found, lost in self._lost.values():
            if self._converted or (found.asked and not _leaves(lost, end.tree)):
                yield self._finding(called, found, lost)

    def _finding(self, called: Called, found: Format, lost: Made) -> Draft:
        node = lost.node
        place = from_method(node) if isinstance(node, ast.Call) else node
        name = "channels_last_3d" if found.layout.rank == 5 else "channels_last"
        source = "the array is" if found.asked else "the output of the convolution is"
        cost = (
            "the next convolution works on a converted copy, or in the slower format"
            if self._converted
            else f"a copy without which the next convolution would run in {name}; measure both"
        )
        return self.finding(
            place,
            f"{source} {name} here, and {_what(lost)} makes it row-major again: {cost}",
            _help(lost, name),
            severity=Severity.WARNING if self._converted else Severity.INFO,
            confidence=Confidence.HIGH if self._converted else Confidence.MEDIUM,
            related=[Related(called.node, "the next convolution")],
            fix=_fix(called.source, lost),
        )

    def observe_losses(self, lost: LostFormat) -> Iterator[Sighting]:
        """Operations that give up channels_last, where it is paid for again."""
        operation = lost.operation
        operand = next(one for one in operation.operands if is_nhwc(one))
        nbytes = sum(2 * one.operands[0].array.nbytes * one.count for one in lost.paid)
        yield Sighting(
            self,
            operation.site,
            f"`{operation.short}` takes {spell(operand)}, channels_last, and gives a row-major "
            f"result; converting back reads and writes {megabytes(nbytes)}",
            "keep the format: `memory_format=torch.channels_last`, or give all operands the same",
            self.severity,
            operation.count,
            operation.steps,
            nbytes,
            related=tuple((one.site, "it is converted back here") for one in lost.paid[:4]),
            claims=(_keeping(lost),),
        )

    def observe_inside(self, copy: InnerCopy) -> Iterator[Sighting]:
        """Convolutions that convert an operand in each call, because the other has the format."""
        operation, operand = copy.operation, copy.operand
        if operation.phase != FORWARD or copy.index is None or copy.index not in _OPERANDS:
            return
        if operand is None or copy.copied is None or not is_large(operand):
            return
        if not is_nchw(operand) or not is_nhwc(copy.copied):
            return
        when = f", {copy.seconds * 1e3:.3g} of {copy.whole * 1e3:.3g} ms in a profiled step"
        yield self._mixed(operation, copy.index, when, copy.count, 1)

    def observe_convolutions(self, mixed: MixedFormats) -> Iterator[Sighting]:
        """Convolutions of operands in two formats, where no profiled step shows the copy."""
        operation = mixed.convolution
        yield self._mixed(operation, mixed.other, "", operation.count, operation.steps)

    def _mixed(
        self, operation: Operation, index: int, when: str, count: int, steps: int
    ) -> Sighting:
        name, other, advice = _OPERANDS[index]
        operand = operation.operands[index]
        # A weight keeps its format while it is trained; of images each one is another.
        uses = float(operation.count) if index == 1 else 1.0
        return Sighting(
            self,
            operation.site,
            f"the {name} of the convolution, {spell(operand)}, is row-major while its {other} is "
            f"channels_last: each call copies the {name}{when}",
            advice,
            # Images that come from elsewhere have to be converted at some place.
            Severity.INFO if index == 0 else self.severity,
            count,
            steps,
            2 * operand.array.nbytes * count,
            claims=(Claim(operation, (index,), uses, form=CHANNELS_LAST),),
        )

    @bench(
        "runs four convolutions whose weights and images are channels_last",
        as_is="conv(x).relu().contiguous()",
        alternative="conv(x).relu()",
        needs=("torch",),
        sizes=Sizes("rows and columns of the images", quick=28, full=(14, 28, 56, 112)),
        dtypes=("float32", "bfloat16", "float16"),
    )
    def bench(self, size: Size) -> Pair:
        """Back to NCHW after each convolution, against the format that it has."""
        import torch
        import torch.nn.functional as F  # noqa: N812 - as everyone calls it

        from memlint.bench.tensors import normal

        def losing(images: Any, weights: Any) -> Any:
            with torch.no_grad():
                for weight in weights:
                    images = F.conv2d(images, weight, padding=1).relu().contiguous()
            return images

        def keeping(images: Any, weights: Any) -> Any:
            with torch.no_grad():
                for weight in weights:
                    images = F.conv2d(images, weight, padding=1).relu()
            return images

        def operands() -> tuple[Any, ...]:
            images = normal(size, 1, 64, size.number, size.number)
            weights = [normal(size, 64, 64, 3, 3, seed=seed) / 24 for seed in range(4)]
            layout = torch.channels_last
            converted = tuple(one.contiguous(memory_format=layout) for one in weights)
            return images.contiguous(memory_format=layout), converted

        what = f"{size.dtype}, 1 x 64 x {size.number} x {size.number}"
        return Pair(losing, keeping, operands, what, settle=size.settle)


def _keeping(lost: LostFormat) -> Claim:
    """The operation that loses the format, if it is a copy, and what converts back to it."""
    main, parts = lost.operation, []
    if is_dense_copy(main):
        parts.append(Part(main, (0,), vanishes=True))
    for one in lost.paid:
        times = max(round(one.count / max(main.count, 1)), 1)
        parts.append(Part(one, (0,), times, _is_copy(one)))
    return Claim(lost.paid[0], (0,), 1.0, tuple(parts), CHANNELS_LAST, charged=False)


def _is_copy(operation: Operation) -> bool:
    return operation.short in ("clone", "_to_copy")


def _leaves(lost: Made, tree: ast.Module) -> bool:
    """Whether the row-major array goes elsewhere than into calls, where it may be wanted."""
    return not isinstance(lost.node, ast.expr) or goes_elsewhere(lost.node, uses_in(tree))


def _converts_model(called: Called) -> bool:
    """``model.to(memory_format=torch.channels_last)``, at least on some path."""
    given = called.args.get("memory_format")
    asked = any(one in FORMATS for one in alternatives(given))
    return asked and not any(
        isinstance(one, Tensor) for one in alternatives(called.receiver or UNKNOWN)
    )


def _what(lost: Made) -> str:
    if lost.name in JOINS:
        return "joining it with a row-major part"
    if lost.name.startswith("operator."):
        return "the row-major first operand"
    return f"`{lost.name.rpartition('.')[2]}`"


def _help(lost: Made, name: str) -> str:
    if lost.name == ".contiguous":
        return f"leave the call out, or pass `memory_format=torch.{name}`"
    if lost.name in JOINS:
        return f"bring all parts into the format first: `.to(memory_format=torch.{name})`"
    if lost.name.startswith("operator."):
        return "put the operand that has the format first, or convert the other one once"
    return f"keep the four axes, or follow with `.contiguous(memory_format=torch.{name})`"


def _fix(source: Source, lost: Made) -> DraftFix | None:
    call = lost.node
    if lost.name != ".contiguous" or not isinstance(call, ast.Call):
        return None
    if not isinstance(call.func, ast.Attribute):
        return None
    if call.args or call.keywords:
        edit = call_with_keyword(source, call, "memory_format", "torch.channels_last")
        if edit is None or call.args:
            return None
        return DraftFix("keep the format", (edit,), Applicability.DISPLAY)
    edit = Replacement(call, source.segment(call.func.value))
    return DraftFix("leave `.contiguous()` out", (edit,), Applicability.DISPLAY)
