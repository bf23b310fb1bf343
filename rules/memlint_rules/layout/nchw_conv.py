"""MEM301 nchw-conv."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from memlint.analysis.edits import followed_by
from memlint.analysis.events import Convolution, ModelPlaced, Transfer, Use
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, DraftFix, Needs, Related, Rule
from memlint.tracer.chains import is_nchw, is_nhwc
from memlint.tracer.operands import is_large, spell
from memlint.tracer.records import FORWARD, InnerCopy, LayoutConversion, Operation
from memlint.tracer.sightings import Sighting

_LAYER = late_pattern(r"Conv(?:Transpose)?[23]d")
# Names of layers and networks; not of converters, contents and conversations.
_NETWORK = late_pattern(r"Conv(?!er[st]|ent|ey)")


def _convolves(text: str) -> bool:
    return "Conv" in text and _names(_LAYER, text)


def _has_layers(text: str) -> bool:
    return "Conv" in text and _names(_NETWORK, text)


def _names(layers: re.Pattern[str], text: str) -> bool:
    """Whether a text names layers, other than in a question what something is."""
    return any(
        "isinstance(" not in text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        for found in layers.finditer(text)
    )


class NchwConv(Rule):
    """A convolution model runs on tensor cores in the NCHW format.

    ## What it does

    Reports a model with 2-d or 3-d convolutions that the program makes, moves to a CUDA device
    and runs in a tensor-core precision (autocast, float16, bfloat16), eagerly, without ever
    choosing the channels_last format for it.

    ## Why it is slow

    The tensor-core convolutions of cuDNN work on NHWC data. Around each convolution of an NCHW
    model they convert inputs and outputs, or a slower kernel is chosen. A model whose weights
    are channels_last computes in that format from its first convolution on; its input need not
    be converted. One profile of an fp16 model on an RTX 5090 showed 12 % of the CUDA time in
    such conversions; PyTorch's tutorial reports 8 to 35 % on Volta cards for several networks,
    a gain that was not reproduced on an A100. It depends on card, shapes and operators, hence
    the severity *info*: try it and measure.

    ## When it is silent

    - full precision, CPU, MPS;
    - `torch.compile` and other compilers, which choose layouts by themselves; exports;
    - any sign that the model is or may be converted: `memory_format` in a `.to`, converted
      weights, or an input that is channels_last;
    - models that are moved but not run here, and modules that are only defined;
    - architectures that are not known, 1-d convolutions, a single patch embedding;
    - models in which no convolution of a known width would gain: grouped ones, and in training
      those that at least halve the channels, or networks of at most 64 channels throughout.

    ## Example

    ```python
    import torch
    from torchvision.models import resnet50


    def classify(images):
        model = resnet50(weights="DEFAULT").cuda().eval()
        with torch.inference_mode(), torch.autocast("cuda"):
            return [model(image.cuda()).argmax(1) for image in images]
    ```

    ## Use instead

    ```python
    import torch
    from torchvision.models import resnet50


    def classify(images):
        model = resnet50(weights="DEFAULT").cuda().eval()
        model = model.to(memory_format=torch.channels_last)
        with torch.inference_mode(), torch.autocast("cuda"):
            return [model(image.cuda()).argmax(1) for image in images]
    ```

    ## Fix safety

    Shown only. The values stay the same up to rounding, but `.view` on the output of a
    convolution may raise in the other format (`.reshape` and `.flatten` work), a plain
    `.contiguous()` in `forward` undoes the conversion, and some networks become slower.

    ## How to confirm

    Look for kernels named `nchwToNhwc` in a profile of one step, or time the step with and without
    the conversion. `memlint bench nchw-conv` measures it on your machine.

    ## References

    - [Channels last memory format in PyTorch](https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html)
    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [The profile on an RTX 5090](https://github.com/instanseg/instanseg/pull/144)
    - [The rule by which Inductor chooses layouts](https://github.com/pytorch/pytorch/blob/main/torch/_inductor/graph.py)
    """

    code = "MEM301"
    name = "nchw-conv"
    severity = Severity.INFO
    applicability = Applicability.DISPLAY
    needs = Needs(
        {"torch"},
        {
            _convolves,
            "torchvision",
            "timm",
            "hub.load",
            "segmentation_models",
        },
        {"autocast", ".half", "float16", "fp16", "bf16", "precision=1", "16-mixed", '="16"'},
        {"cuda", "gpu", "prepare("},
        units=[
            {".cuda(", ".to(", "prepare(", ".fit(", "device("},
            {_convolves, _has_layers, "torchvision", "timm", "hub.load", "segmentation_models"},
            {"autocast", "half", "float16", "fp16", "bf16", "precision", "default_dtype"},
        ],
        also={"channels_last", "compile"},
        across={_convolves},
        classwide=True,
    )
    needs_device = "cuda"

    def check(self, model: ModelPlaced) -> Iterator[Draft]:
        """An eager model on CUDA in a tensor-core precision that nobody converts."""
        move = next((m for m in model.moves if "cuda" in m.devices), None)
        spatial = [c for c in model.convolutions if c.dims in (2, 3)]
        if move is None or not spatial or not model.precisions or not model.calls:
            return
        if model.formats or model.compiles:
            return
        gaining = _gaining(spatial, training=bool(model.training))
        if not gaining:
            return
        first = gaining[0]
        yield self.finding(
            move.node,
            f"the convolutions of `{model.text}` run in a tensor-core precision but keep the "
            "NCHW format: cuDNN may convert to NHWC and back around each of them",
            _help(model.text, first),
            confidence=_confidence(model, move, model.precisions[0]),
            related=[
                Related(first.node, "a convolution of this model"),
                Related(model.precisions[0].node, "it runs in reduced precision here"),
            ],
            fix=_fix(model, move, first),
        )

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        """Convolutions in low precision on a GPU, of row-major images."""
        if operation.short != "convolution" or operation.phase != FORWARD:
            return
        image, weight = operation.operands[:2]
        if image.kind != "cuda" or image.dtype not in ("float16", "bfloat16"):
            return
        if not (is_nchw(image) and is_large(image)) or is_nhwc(weight):
            return
        yield Sighting(
            self,
            operation.site,
            f"a convolution takes {spell(image)}, row-major: the kernels for {image.dtype} want "
            "channels_last, and convert it each time",
            "convert model and images once: `.to(memory_format=torch.channels_last)`",
            self.severity,
            operation.count,
            operation.steps,
            image.array.nbytes * operation.count,
        )

    def observe_inside(self, copy: InnerCopy) -> Iterator[Sighting]:
        """Kernels that convert formats around a row-major convolution in full precision, which
        tensor cores compute as well (TF32)."""
        operation = copy.operation
        if operation.short != "convolution" or operation.phase != FORWARD or copy.operand:
            return
        image, weight = operation.operands[:2]
        if image.dtype != "float32" or not is_nchw(image) or is_nhwc(weight):
            return
        yield Sighting(
            self,
            operation.site,
            f"a convolution takes {spell(image)}, row-major: `{copy.kernel}` converts it, "
            f"{copy.seconds * 1e3:.3g} of {copy.whole * 1e3:.3g} ms in a profiled step",
            "convert model and images once: `.to(memory_format=torch.channels_last)`",
            self.severity,
            copy.count,
            1,
            image.array.nbytes * copy.count,
        )

    def observe_conversions(self, conversion: LayoutConversion) -> Iterator[Sighting]:
        """Kernels around a convolution that only bring arrays into another format."""
        if "convolution" not in conversion.operator.lower():
            return
        each = conversion.seconds / conversion.count * 1e6
        yield Sighting(
            self,
            conversion.site,
            f"the kernel of `{conversion.operator.rpartition('::')[2]}` works in another format: "
            f"{conversion.count} kernels convert {conversion.formats} for it, {each:.3g} us each",
            "convert model and images once: `.to(memory_format=torch.channels_last)`, and measure",
            self.severity,
            conversion.count,
            conversion.steps,
            0,
        )

    @bench(
        "runs three convolutions; the rule speaks of tensor cores, on a CPU the gain differs",
        as_is="weights in NCHW",
        alternative="weights in channels_last",
        needs=("torch", "bfloat16"),
        sizes=Sizes("rows and columns of the images", quick=28, full=(14, 28, 56, 112)),
        dtypes=("bfloat16", "float16"),
    )
    def bench_low_precision(self, size: Size) -> Pair:
        """In a tensor-core precision, on what the run's device has of it."""
        return _convolutions(size)

    @bench(
        "runs three convolutions in full precision, of which the rule does not speak",
        as_is="weights in NCHW",
        alternative="weights in channels_last",
        needs=("torch",),
        sizes=Sizes("rows and columns of the images", quick=28, full=(14, 28, 56, 112)),
        dtypes=("float32",),
    )
    def bench_full_precision(self, size: Size) -> Pair:
        """In float32."""
        return _convolutions(size)


def _convolutions(size: Size) -> Pair:
    """The images are NCHW for both: weights alone decide in which format is computed."""
    import torch
    import torch.nn.functional as F  # noqa: N812 - as everyone calls it

    from memlint.bench.tensors import normal

    def run(images: Any, weights: Any) -> Any:
        with torch.no_grad():
            for weight in weights:
                images = F.conv2d(images, weight, padding=1).relu()
        return images

    def nchw(images: Any, weights: Any, converted: Any) -> Any:
        return run(images, weights)

    def channels_last(images: Any, weights: Any, converted: Any) -> Any:
        return run(images, converted)

    def operands() -> tuple[Any, ...]:
        weights = tuple(normal(size, 64, 64, 3, 3, seed=seed) / 24 for seed in range(3))
        converted = tuple(one.contiguous(memory_format=torch.channels_last) for one in weights)
        return normal(size, 1, 64, size.number, size.number), weights, converted

    where = "the CPU" if size.device == "cpu" else size.device
    what = f"{size.dtype}, 1 x 64 x {size.number} x {size.number}, on {where}"
    return Pair(nchw, channels_last, operands, what, settle=size.settle)


def _format(convolution: Convolution) -> str:
    return "channels_last" if convolution.dims == 2 else "channels_last_3d"


def _conversion(text: str, convolution: Convolution) -> str:
    return f"{text} = {text}.to(memory_format=torch.{_format(convolution)})"


def _help(text: str, convolution: Convolution) -> str:
    return (
        f"try `{_conversion(text, convolution)}` and measure; `.view` after a convolution may "
        "have to become `.reshape`"
    )


def _fix(model: ModelPlaced, move: Transfer, convolution: Convolution) -> DraftFix | None:
    """Convert the model where it is moved, if that is a call of one of its methods."""
    call = move.node
    if model.source is None or not model.torch or not isinstance(call, ast.Call):
        return None
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("to", "cuda"):
        return None
    conversion = f".to(memory_format={model.torch}.{_format(convolution)})"
    edit = followed_by(model.source, call, conversion)
    if edit is None:
        return None
    message = f"convert the model where it is moved: `{conversion}`"
    return DraftFix(message, (edit,), Applicability.DISPLAY)


def _confidence(model: ModelPlaced, move: Transfer, precision: Use) -> Confidence:
    if model.complete and precision.certain and move.devices <= {"cuda", "cpu"}:
        return Confidence.HIGH
    return Confidence.MEDIUM


def _gaining(convolutions: list[Convolution], *, training: bool) -> list[Convolution]:
    """The convolutions that nothing is known to speak against."""
    if training and all(_width(c) is not None and (_width(c) or 0) <= 64 for c in convolutions):
        return []
    if len(convolutions) == 1 and _cuts_patches(convolutions[0]):
        return []
    return [c for c in convolutions if not _grouped(c) and not (training and _halves_channels(c))]


def _width(convolution: Convolution) -> int | None:
    if convolution.in_channels is None or convolution.out_channels is None:
        return None
    return max(convolution.in_channels, convolution.out_channels)


def _grouped(convolution: Convolution) -> bool:
    return convolution.groups is not None and convolution.groups > 1


def _halves_channels(convolution: Convolution) -> bool:
    before, after, kernel = (
        convolution.in_channels,
        convolution.out_channels,
        convolution.kernel_size,
    )
    if before is None or after is None or kernel is None:
        return False
    return kernel > 1 and 2 * after <= before


def _cuts_patches(convolution: Convolution) -> bool:
    size = convolution.kernel_size
    return size is not None and size > 1 and size == convolution.stride
