"""Models: what is done to them as a whole, and where they run."""

from __future__ import annotations

import ast
from dataclasses import replace

from memlint.analysis import knowledge
from memlint.analysis.axes import channels_last_format, contiguous
from memlint.analysis.formats import CONVOLUTION, convolves
from memlint.analysis.interpreter.access import parameter_array
from memlint.analysis.interpreter.calls import facts_of
from memlint.analysis.interpreter.layers import CONVOLUTIONS, HELD, LAYER, NETWORK, Layers
from memlint.analysis.interpreter.machine import UNKNOWN, name_of, text_of
from memlint.analysis.interpreter.records import ModelRecord
from memlint.analysis.knowledge import Args
from memlint.analysis.last_name import last_name
from memlint.analysis.values import (
    Absent,
    Class,
    Const,
    Function,
    Instance,
    Object,
    Ref,
    Tensor,
    Unknown,
    Value,
    alternatives,
    devices_of,
    join,
    may_be,
    must_be,
)

# Constructors of convolutional networks that are known by their name.
ARCHITECTURES = (
    "resnet", "resnext", "wide_resnet", "vgg", "alexnet", "densenet", "inception", "googlenet",
    "fcn_", "deeplabv3", "unet", "squeezenet", "darknet", "efficientnet", "mobilenet",
)  # fmt: skip
SELF_METHODS = frozenset(
    {"to", "cuda", "cpu", "half", "bfloat16", "float", "double", "eval", "train", "type",
     "requires_grad_", "apply", "compile", "share_memory", "to_empty", "xpu", "module"}
)  # fmt: skip
# Modules that are made of what they are given, and the methods that give them more.
SEQUENTIAL = "torch.nn.Sequential"
# Where the layers of an object of a class are kept that extends it.
LAYERS = "<layers>"
CONTAINERS = frozenset({f"torch.nn.{kind}" for kind in ("Sequential", "ModuleList", "ModuleDict")})
HOLDING = frozenset({"add_module", "register_module", "append", "extend", "insert", "update"})
PRECISE = frozenset({"fp16", "bf16", "float16", "bfloat16", "16", "16-mixed", "bf16-mixed"})
HALF = frozenset({"float16", "bfloat16"})
AUTOCAST = frozenset({"torch.autocast", "torch.cuda.amp.autocast"})
COMPILERS = (
    "torch.compile", "torch.jit.script", "torch.jit.trace", "torch._dynamo.optimize",
    "torch_tensorrt.compile", "intel_extension_for_pytorch.optimize",
)  # fmt: skip
CONTEXTS = AUTOCAST | {"torch.device", "torch.no_grad", "torch.inference_mode", *COMPILERS}
PLAIN_FORMATS = (Ref("torch.contiguous_format"), Ref("torch.preserve_format"), Const(None))

# What the names of libraries that make modules and networks begin with.
_WITH_NETWORKS = ("torch", "segmentation_models_pytorch.", "timm.")


class Models(Layers):
    """What is done to modules."""

    # Attributes and items

    def instance_attribute(self, instance: Instance, name: str, node: ast.AST) -> Value:
        found = super().instance_attribute(instance, name, node)
        wrapped = name == "module" and self.heap.get(instance, name) is None
        return instance if wrapped and self.is_module(instance) else found

    def object_attribute(self, base: Object, name: str, node: ast.AST) -> Value:
        if name == "module" and self.is_module(base):
            return base
        return super().object_attribute(base, name, node)

    def element_of_object(self, value: Object) -> Value:
        if value.cls in ("torch.nn.ModuleList", "torch.nn.Sequential"):
            given = [v for key, v in value.facts if key.isdigit()]
            held = self.heap.of(value.site).get(HELD)
            more = [] if held is None else [held]
            if value.cls.endswith("List") and len(given) == 1:
                return join([self.element(given[0]), *more])
            return join([*given, *more])
        return super().element_of_object(value)

    # What is done to a module

    def call_inherited(self, receiver: Instance, name: str, args: Args, node: ast.AST) -> Value:
        if receiver.site in self.loaders:
            return self.call_unknown_method(Unknown("call"), name, args, node)
        started = self.start_inherited(receiver, name, node)
        if started is not None:
            return started
        if name in ("register_buffer", "register_parameter") and len(args.positional) > 1:
            attribute = args.positional[0]
            if isinstance(attribute, Const) and isinstance(attribute.value, str):
                held = _moving(args.positional[1])
                self.heap.put(receiver, attribute.value, held, strong=False)
        if self.is_module(receiver):
            return self.module_method(receiver, name, args, node)
        self.note_unseen_call(receiver, args, node)
        return self.wrapped(args)

    def start_inherited(self, receiver: Instance, name: str, node: ast.AST) -> Value | None:
        raise NotImplementedError

    def call_object_method(self, receiver: Object, name: str, args: Args, node: ast.AST) -> Value:
        if receiver.cls == "builtins.super":
            return self.super_method(receiver, name, args, node)
        array = parameter_array(receiver) if knowledge.view_method(name, "torch") else None
        if array is not None:
            return self.call_array_method(array, name, args, node)
        if self.is_module(receiver) and (receiver.cls, name) not in self.METHODS:
            return self.module_method(receiver, name, args, node)
        return super().call_object_method(receiver, name, args, node)

    def call_object(self, callee: Object, args: Args, node: ast.AST) -> Value:
        if self.is_module(callee):
            return self.call_instance(callee, args, node)
        return super().call_object(callee, args, node)

    def module_method(self, receiver: Value, name: str, args: Args, node: ast.AST) -> Value:
        """A method of ``torch.nn.Module``."""
        if name in ("parameters", "named_parameters", "children", "modules", "buffers"):
            return Unknown("call")
        if name == "forward":
            return self.call_instance(receiver, args, node)
        if name in HOLDING:
            assert isinstance(receiver, (Object, Instance))
            for part in args.positional:
                self.hold(receiver, part)
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
        match name:
            case "half" | "bfloat16":
                record.note("precisions", node, name)
            case "float" | "double":
                record.forget_casts()
            case "compile":
                record.note("compiles", node, name)
            case "cuda" | "to" | "type":
                self._note_to(record, name, args, node)

    def _note_to(self, record: ModelRecord, name: str, args: Args, node: ast.AST) -> None:
        devices = self.destination(name, args)
        if devices:
            record.move(node, text_of(node), devices)
        given = [
            knowledge.dtype_of(one)
            for value in (*args.positional, *args.keywords.values())
            for one in alternatives(value)
        ]
        dtypes = {dtype for dtype in given if dtype}
        if HALF & dtypes:
            record.note("precisions", node, "cast", certain=dtypes <= HALF)
        if self.may_be_channels_last(args) or args.open:
            record.note("formats", node, "to")

    def may_be_channels_last(self, args: Args) -> bool:
        """Whether a ``memory_format`` argument is given that may be another than the plain one."""
        given = args.get("memory_format")
        return not isinstance(given, Absent) and any(
            one not in PLAIN_FORMATS for one in alternatives(given)
        )

    def destination(self, name: str, args: Args) -> frozenset[str]:
        raise NotImplementedError

    def _called(self, callee: Value, args: Args, node: ast.AST) -> Value:
        if isinstance(callee, Function) and isinstance(callee.bound, Instance):
            forward = isinstance(node, ast.Call) and last_name(node.func) == "forward"
            if forward and callee.name.endswith(".forward") and self.is_module(callee.bound):
                self._note_forward(callee.bound, self.traits_of(callee), args, node)
        return super()._called(callee, args, node)

    def call_instance(self, callee: Value, args: Args, node: ast.AST) -> Value:
        """``model(x)``, or an object that can be called."""
        if isinstance(callee, Instance):
            method = self.class_attribute(callee.cls, "__call__")
            if isinstance(method, Function):
                bound = Function(method.node, method.scope, callee, method.name)
                return self.call_function(bound, args, node)
        if not self.is_module(callee):
            return UNKNOWN
        forward = None
        if isinstance(callee, Instance):
            forward = self.class_attribute(callee.cls, "forward")
        traits = self.traits_of(forward) if isinstance(forward, Function) else []
        self._note_forward(callee, traits, args, node)
        if CONVOLUTION in self.watched and convolves(callee) is not None:
            self.operation(CONVOLUTION, node, callee, args, UNKNOWN)
        if isinstance(forward, Function):
            bound = Function(forward.node, forward.scope, callee, forward.name)
            return self.call_function(bound, args, node)
        return self._forwarded(callee, args)

    def _note_forward(self, callee: Value, traits: list[Value], args: Args, node: ast.AST) -> None:
        record = self.model(callee)
        if not any(frame.name.endswith(".forward") for frame in self.stack):
            # Parts run where their model runs; by themselves they are only defined.
            record.note("calls", node, "forward")
        contexts = (*self.frame.contexts, *traits)
        if any(name_of(context) in COMPILERS for context in contexts):
            record.note("compiles", node, "compiled caller")
        innermost = next((c for c in reversed(contexts) if name_of(c) in AUTOCAST), None)
        if innermost is not None:
            certain = self._casts(innermost)
            if certain is not None:
                record.note("precisions", node, "autocast", certain=certain)
        if any(_is_channels_last(v) for v in (*args.positional, *args.keywords.values())):
            record.note("formats", node, "input")

    def _forwarded(self, callee: Value, args: Args) -> Value:
        value = args.get("input", 0)
        if isinstance(value, Tensor) and isinstance(callee, Object):
            known = knowledge.call_function(callee.cls, args, callee.site.node, callee.site)
            if known is not None:
                return known
        return Unknown("call", devices=devices_of(value))

    def _casts(self, context: Value) -> bool | None:
        """Whether an autocast region is on for CUDA: surely, perhaps (false), or not (none)."""
        if not isinstance(context, Object):
            return True
        old_style = context.cls == "torch.cuda.amp.autocast"
        enabled = context.fact("enabled")
        if isinstance(enabled, Absent):
            enabled = context.fact("0" if old_style else "2")
        if isinstance(enabled, Absent):
            enabled = Const(True)
        dtype = knowledge.dtype_of(context.fact("dtype"))
        if must_be(enabled, False) or (dtype is not None and dtype not in HALF):
            return None
        certain = not may_be(enabled, False)
        if old_style:
            return certain
        kind = context.fact("device_type")
        kinds = knowledge.device_types(context.fact("0") if isinstance(kind, Absent) else kind)
        if kinds and "cuda" not in kinds:
            return None
        return certain and bool(kinds)

    def is_context(self, value: Value) -> bool:
        return name_of(value) in CONTEXTS

    # Constructors

    def note_construction(
        self, instance: Instance, library: list[str], args: Args, node: ast.AST
    ) -> None:
        if CONTAINERS & set(library):
            for part in args.positional:
                self.hold(instance, part)
        if SEQUENTIAL in library and not args.open:
            layers = Object(SEQUENTIAL, instance.site, facts_of(args))
            self.heap.put(instance, LAYERS, layers, strong=True)
        for base in library:
            if base in CONVOLUTIONS:
                layer = Object(base, instance.site, facts_of(args))
                self.heap.put(instance, LAYER, layer, strong=True)

    def _adds_nothing(self, cls: Class) -> bool:
        """Whether a class, and those of the program that it extends, only fill a container."""
        members = (self.members.get(id(one.node), {}) for one in self.lineage(cls))
        return not any(name != "__init__" for found in members for name in found)

    def construct(self, cls: Class, args: Args, node: ast.AST) -> Value:
        made = super().construct(cls, args, node)
        if isinstance(made, Instance) and self._adds_nothing(cls):
            # A row of layers by another name.
            made = self.heap.get(made, LAYERS) or made
        self.note_birth(made, node)
        return made

    def note_birth(self, made: Value, node: ast.AST) -> None:
        """A model is made: where, and in which precision, if defaults decide that."""
        raise NotImplementedError

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
        made = self._library_module(name, args, node)
        if made is not None:
            self.note_birth(made, node)
        return made

    def _library_module(self, name: str, args: Args, node: ast.AST) -> Value | None:
        if not name.startswith(_WITH_NETWORKS):
            return None
        last = name.rpartition(".")[2]
        if name.startswith("torch.nn.") and last[:1].isupper():
            return Object(name, self.sites.at(node), facts_of(args))
        if name == "torchvision.models.get_model":
            return self._network(name, _text(args.get("name", 0)), node)
        if name == "torch.hub.load":
            return self._network("torchvision.models.get_model", _text(args.get("model", 1)), node)
        if name.startswith("segmentation_models_pytorch.") and last[:1].isupper():
            encoder = args.get("encoder_name", 0)
            backbone = "resnet34" if isinstance(encoder, Absent) else _text(encoder)
            return self._network(name, backbone, node)
        if name.startswith("torchvision.models."):
            return self._network(name, last, node)
        if name in ("timm.create_model", "timm.models.create_model"):
            return self._network("timm.create_model", _text(args.get("model_name", 0)), node)
        return None

    def _network(self, cls: str, architecture: str, node: ast.AST) -> Object:
        site = self.sites.at(node)
        if not architecture.lower().startswith(ARCHITECTURES):
            return Object(cls, site)
        return Object(cls, site, (("network", Object(NETWORK, site)),))


def _moving(value: Value) -> Value:
    """A tensor that a module takes along to wherever it is moved."""
    return join(
        replace(one, devices=frozenset()) if isinstance(one, Tensor) else one
        for one in alternatives(value)
    )


def _text(value: Value) -> str:
    return str(value.value) if isinstance(value, Const) else ""


def _is_channels_last(value: Value) -> bool:
    return any(
        isinstance(one, Tensor)
        and channels_last_format(one.layout) is True
        and contiguous(one.layout) is not True
        for one in alternatives(value)
    )


for _name in COMPILERS:
    Models.FUNCTIONS[_name] = Models._compile
Models.FUNCTIONS["torch.onnx.export"] = Models._export
Models.FUNCTIONS["torch.export.export"] = Models._export
Models.FUNCTIONS["torch.autocast"] = Models._autocast
Models.FUNCTIONS["torch.cuda.amp.autocast"] = Models._cuda_autocast
