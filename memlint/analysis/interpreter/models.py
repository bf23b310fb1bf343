"""Models: what layers they hold, and what is done to them as a whole."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis import knowledge
from memlint.analysis.axes import channels_last_format
from memlint.analysis.events import Convolution
from memlint.analysis.interpreter.calls import facts_of
from memlint.analysis.interpreter.machine import UNKNOWN, name_of, text_of
from memlint.analysis.interpreter.objects import Objects
from memlint.analysis.interpreter.records import ModelRecord
from memlint.analysis.knowledge import Args
from memlint.analysis.values import (
    Absent,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Ref,
    Sequence,
    Tensor,
    Unknown,
    Value,
    alternatives,
    devices_of,
    must_be,
)

MODULE = "torch.nn.Module"
CONVOLUTIONS = {
    f"torch.nn.{lazy}Conv{transpose}{dims}d": (dims, bool(transpose))
    for lazy in ("", "Lazy")
    for transpose in ("", "Transpose")
    for dims in (1, 2, 3)
}
CONVOLUTION_PARAMETERS = (
    "in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups",
)  # fmt: skip
TRANSPOSED_PARAMETERS = (
    "in_channels", "out_channels", "kernel_size", "stride", "padding", "output_padding", "groups",
)  # fmt: skip
# Constructors of convolutional networks that are known by their name.
ARCHITECTURES = (
    "resnet", "resnext", "wide_resnet", "vgg", "alexnet", "densenet", "inception", "googlenet",
    "fcn_", "deeplabv3", "unet", "squeezenet", "darknet",
)  # fmt: skip
SELF_METHODS = frozenset(
    {"to", "cuda", "cpu", "half", "bfloat16", "float", "double", "eval", "train", "type",
     "requires_grad_", "apply", "compile", "share_memory", "to_empty", "xpu", "module"}
)  # fmt: skip
PRECISE = frozenset({"fp16", "bf16", "float16", "bfloat16", "16", "16-mixed", "bf16-mixed"})
HALF = frozenset({"float16", "bfloat16"})
AUTOCAST = frozenset(
    {
        "torch.autocast",
        "torch.amp.autocast",
        "torch.cuda.amp.autocast",
        "torch.amp.autocast_mode.autocast",
    }
)
COMPILERS = (
    "torch.compile", "torch.jit.script", "torch.jit.trace", "torch._dynamo.optimize",
    "torch_tensorrt.compile", "intel_extension_for_pytorch.optimize",
)  # fmt: skip


class Models(Objects):
    """Modules as values."""

    def is_module(self, value: Value) -> bool:
        if isinstance(value, Instance):
            return any(
                base == MODULE or base.endswith(("Module", "Model")) or base.startswith("torch.nn.")
                for base in self.library_bases(value.cls)
            )
        return isinstance(value, Object) and (
            value.cls.startswith(("torch.nn.", "torchvision.models.", "timm."))
            and value.site not in self.loaders
            and value.cls.rpartition(".")[2][:1].isalpha()
        )

    def model(self, value: Value) -> ModelRecord:
        assert isinstance(value, (Instance, Object))
        record = self.models.get(value.site)
        if record is None:
            record = self.models[value.site] = ModelRecord(value)
            target = self.targets.get(id(value.site.node))
            record.text = text_of(target) if target is not None else ""
        return record

    # What a model is made of

    def convolutions(self, value: Value) -> tuple[list[Convolution], bool]:
        """The convolutions that a model holds, and whether all of it could be seen."""
        found: list[Convolution] = []
        complete = True
        seen: set[object] = set()
        stack: list[Value] = [value]
        while stack and len(seen) < 600:
            one = stack.pop()
            for part in alternatives(one):
                if part in seen:
                    continue
                seen.add(part)
                if (convolution := _convolution(part)) is not None:
                    if convolution not in found:
                        found.append(convolution)
                    continue
                complete = self._parts(part, stack) and complete
        return found, complete

    def _parts(self, value: Value, stack: list[Value]) -> bool:
        """Put the parts of a module (or container) on the stack; whether they are all known."""
        match value:
            case Instance():
                stack.extend(self.heap.of(value.site).values())
                bases = self.library_bases(value.cls)
                for base in bases:
                    if base in CONVOLUTIONS:
                        stack.append(Object(base, value.site, (("open", UNKNOWN),)))
                return all(b in (MODULE, "builtins.object") or b in CONVOLUTIONS for b in bases)
            case Object(cls=cls):
                if cls == "memlint.network":
                    stack.append(Object("torch.nn.Conv2d", value.site, ()))
                    return True
                if cls.startswith("torch.nn."):
                    stack.extend(v for _, v in value.facts)
                    return True
                return not cls.startswith(("timm.", "torchvision."))
            case Sequence(items=items, element=element):
                stack.extend(items if items is not None else (element,))
            case Mapping(items=items):
                stack.extend(v for _, v in items)
            case Unknown(origin="call"):
                return False
        return True

    # What is done to it

    def call_inherited(self, receiver: Instance, name: str, args: Args, node: ast.AST) -> Value:
        if receiver.site in self.loaders:
            return self.call_unknown_method(Unknown("call"), name, args, node)
        started = self.start_inherited(receiver, name, node)
        if started is not None:
            return started
        if self.is_module(receiver):
            return self.module_method(receiver, name, args, node)
        self.note_unseen_call(receiver, args, node)
        return Unknown("call", loaders=self.loader_tags(args))

    def start_inherited(self, receiver: Instance, name: str, node: ast.AST) -> Value | None:
        raise NotImplementedError

    def call_object_method(self, receiver: Object, name: str, args: Args, node: ast.AST) -> Value:
        if receiver.cls == "builtins.super":
            return self.super_method(receiver, name, args, node)
        if self.is_module(receiver) and (receiver.cls, name) not in self.METHODS:
            return self.module_method(receiver, name, args, node)
        return super().call_object_method(receiver, name, args, node)

    def module_method(self, receiver: Value, name: str, args: Args, node: ast.AST) -> Value:
        """A method of ``torch.nn.Module``."""
        if name in ("parameters", "named_parameters", "children", "modules", "buffers"):
            return Unknown("call")
        if name == "forward":
            return self.call_instance(receiver, args, node)
        if name not in SELF_METHODS:
            self.note_unseen_call(receiver, args, node)
            return Unknown("call")
        record = self.model(receiver)
        if not record.text and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            shown = node.func.value
            record.text = text_of(shown) if isinstance(shown, (ast.Name, ast.Attribute)) else ""
        self._note_module(record, name, args, node)
        target = self.targets.get(id(node))
        if target is not None and not record.text:
            record.text = text_of(target)
        return receiver

    def _note_module(self, record: ModelRecord, name: str, args: Args, node: ast.AST) -> None:
        text = text_of(node)
        match name:
            case "half" | "bfloat16":
                record.note("precisions", node, name)
            case "compile":
                record.note("compiles", node, "compile")
            case "cuda" | "to":
                devices = self.destination(name, args)
                if devices:
                    record.move(node, text, devices)
                dtypes = [
                    knowledge.dtype_of(v) for v in (*args.positional, *args.keywords.values())
                ]
                if HALF & {d for d in dtypes if d}:
                    record.note("precisions", node, "to")
                if not isinstance(args.get("memory_format"), Absent) or args.open:
                    record.note("formats", node, "to")

    def destination(self, name: str, args: Args) -> frozenset[str]:
        raise NotImplementedError

    def call_instance(self, callee: Value, args: Args, node: ast.AST) -> Value:
        """``model(x)``, or an object that can be called."""
        if isinstance(callee, Instance):
            method = self.class_attribute(callee.cls, "__call__")
            if isinstance(method, Function):
                bound = Function(method.node, method.scope, callee, method.name)
                return self.call_function(bound, args, node)
        if not self.is_module(callee):
            return UNKNOWN
        self._note_forward(callee, args, node)
        if isinstance(callee, Instance):
            forward = self.class_attribute(callee.cls, "forward")
            if isinstance(forward, Function):
                bound = Function(forward.node, forward.scope, callee, forward.name)
                return self.call_function(bound, args, node)
        return self._forwarded(callee, args)

    def _note_forward(self, callee: Value, args: Args, node: ast.AST) -> None:
        contexts = [c for c in self.frame.contexts if self._casts(c)]
        reached: list[Value] = [callee]
        for value in reached:
            if isinstance(value, (Instance, Object)) and value.site in self.models:
                record = self.models[value.site]
                record.note("calls", node, "forward")
                for context in contexts:
                    record.note("precisions", node, "autocast")
                    if isinstance(context, Object) and context.cls == "torch.cuda.amp.autocast":
                        record.note("calls", node, "cuda")
                if any(_is_channels_last(v) for v in args.positional):
                    record.note("formats", node, "input")
        if isinstance(callee, (Instance, Object)) and callee.site not in self.models:
            record = self.model(callee)
            record.note("calls", node, "forward")
            if contexts:
                record.note("precisions", node, "autocast")
            if any(_is_channels_last(v) for v in args.positional):
                record.note("formats", node, "input")

    def _forwarded(self, callee: Value, args: Args) -> Value:
        value = args.get("input", 0)
        if isinstance(value, Tensor) and isinstance(callee, Object):
            known = knowledge.call_function(callee.cls, args, callee.site.node, callee.site)
            if known is not None:
                return known
        return Unknown("call", devices=devices_of(value))

    def _casts(self, context: Value) -> bool:
        """Whether a context is an autocast region that may be on, for CUDA."""
        if not isinstance(context, (Object, Ref)) or name_of(context) not in AUTOCAST:
            return False
        if isinstance(context, Ref):
            return True
        if must_be(context.fact("enabled"), False) and context.fact("enabled") != Absent():
            return False
        if context.cls == "torch.cuda.amp.autocast":
            return True
        kind = context.fact("device_type")
        if isinstance(kind, Absent):
            kind = context.fact("0")
        kinds = knowledge.device_types(kind)
        return not kinds or "cuda" in kinds

    def is_context(self, value: Value) -> bool:
        name = name_of(value)
        return name in AUTOCAST or name in ("torch.device", "torch.no_grad", "torch.inference_mode")

    # Constructors

    def _compile(self, args: Args, node: ast.AST) -> Value:
        model = args.get("model", 0)
        if isinstance(model, Absent):
            return Object("torch.compile", self.sites.at(node), facts_of(args))
        for one in alternatives(model):
            if self.is_module(one):
                self.model(one).note("compiles", node, "compile")
            elif isinstance(one, Function):
                traits = self.traits.setdefault(id(one.node), [])
                if Ref("torch.compile") not in traits:
                    traits.append(Ref("torch.compile"))
        return model

    def _export(self, args: Args, node: ast.AST) -> Value:
        for one in alternatives(args.get("model", 0)):
            if self.is_module(one):
                self.model(one).note("exports", node, "export")
        return UNKNOWN

    def _autocast(self, args: Args, node: ast.AST) -> Value:
        return Object("torch.autocast", self.sites.at(node), facts_of(args))

    def _cuda_autocast(self, args: Args, node: ast.AST) -> Value:
        return Object("torch.cuda.amp.autocast", self.sites.at(node), facts_of(args))

    def special_call(self, name: str, args: Args, node: ast.AST) -> Value | None:
        """Constructors of modules, and of networks known by their name."""
        last = name.rpartition(".")[2]
        if name.startswith("torch.nn.") and last[:1].isupper():
            return Object(name, self.sites.at(node), facts_of(args))
        if name.startswith("torchvision.models."):
            known = last.lower().startswith(ARCHITECTURES)
            return Object(
                "torchvision.models." + last, self.sites.at(node), _network(known, self, node)
            )
        if name in ("timm.create_model", "timm.models.create_model"):
            first = args.get("model_name", 0)
            known = isinstance(first, Const) and str(first.value).lower().startswith(ARCHITECTURES)
            return Object("timm.create_model", self.sites.at(node), _network(known, self, node))
        return None

    def modules_among(self, args: Args) -> Iterator[Value]:
        for value in (*args.positional, *args.keywords.values()):
            for one in alternatives(value):
                if self.is_module(one):
                    yield one


def _network(known: bool, machine: Models, node: ast.AST) -> tuple[tuple[str, Value], ...]:
    if not known:
        return ()
    return (("network", Object("memlint.network", machine.sites.at(node))),)


def _is_channels_last(value: Value) -> bool:
    return any(
        isinstance(one, Tensor) and channels_last_format(one.layout) is True
        for one in alternatives(value)
    )


def _convolution(value: Value) -> Convolution | None:
    if not isinstance(value, Object) or value.cls not in CONVOLUTIONS:
        return None
    dims, transposed = CONVOLUTIONS[value.cls]
    names: tuple[str, ...] = TRANSPOSED_PARAMETERS if transposed else CONVOLUTION_PARAMETERS
    if "Lazy" in value.cls:
        names = names[1:]

    def number(name: str, default: int | None) -> int | None:
        given = value.fact(name)
        if isinstance(given, Absent) and name in names:
            given = value.fact(str(names.index(name)))
        if isinstance(given, Absent):
            return None if value.facts and value.facts[0][0] == "open" else default
        if isinstance(given, Sequence) and given.items:
            parts = set(given.items)
            given = given.items[0] if len(parts) == 1 else UNKNOWN
        if isinstance(given, Const) and type(given.value) is int:
            return given.value
        return None

    return Convolution(
        value.site.node,
        dims,
        number("in_channels", None),
        number("out_channels", None),
        number("groups", 1) if value.facts else None,
        number("kernel_size", None),
        number("stride", 1) if value.facts else None,
        transposed,
    )


for _name in COMPILERS:
    Models.FUNCTIONS[_name] = Models._compile
Models.FUNCTIONS["torch.onnx.export"] = Models._export
Models.FUNCTIONS["torch.export.export"] = Models._export
Models.FUNCTIONS["torch.autocast"] = Models._autocast
Models.FUNCTIONS["torch.amp.autocast"] = Models._autocast
Models.FUNCTIONS["torch.amp.autocast_mode.autocast"] = Models._autocast
Models.FUNCTIONS["torch.cuda.amp.autocast"] = Models._cuda_autocast
