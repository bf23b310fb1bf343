"""Code that is handed arrays by their pointer: Triton and CuPy kernels, foreign functions,
extensions, collectives."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from memlint.analysis.events import Argument, KernelLaunch
from memlint.analysis.interpreter.calls import facts_of
from memlint.analysis.interpreter.devices import Devices
from memlint.analysis.interpreter.machine import UNKNOWN, name_of, text_of
from memlint.analysis.knowledge import Args
from memlint.analysis.values import (
    Bound,
    Const,
    Function,
    Object,
    Partial,
    Sequence,
    Tensor,
    Unknown,
    Value,
    alternatives,
)

POINTER, STRIDES, LAUNCHER = "memlint.pointer", "memlint.strides", "memlint.launcher"
FOREIGN, EXTENSION, RAW_KERNEL = "ctypes.CDLL", "memlint.extension", "cupy.RawKernel"
TRITON = ("triton.jit", "triton.autotune", "triton.heuristics", "triton.experimental.gluon.jit")
# Collectives that hand a tensor's memory to the communication library as it lies.
COLLECTIVES = frozenset(
    f"torch.distributed.{name}"
    for name in (
        "all_reduce", "all_gather", "all_gather_into_tensor", "all_to_all", "all_to_all_single",
        "broadcast", "gather", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter",
    )
)  # fmt: skip
SAFE_SUBSCRIPTS = ("typing.", "builtins.", "torch.", "numpy.", "collections.", "os.", "cupy.")


class Kernels(Devices):
    """Launches and pointers."""

    imports_text: str

    # Addresses and strides

    def pointer_of(self, value: Value, name: str, node: ast.AST) -> Value:
        text = text_of(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            text = text_of(node.func.value)
        if name == "is_contiguous":
            return UNKNOWN
        if name == "stride":
            return Object(STRIDES, self.sites.at(node), (("of", value), ("text", Const(text))))
        if name == "__dlpack__":
            return UNKNOWN
        return Object(POINTER, self.sites.at(node), (("of", value), ("text", Const(text))))

    def attribute(self, base: Value, name: str, node: ast.AST) -> Value:
        if name == "ptr" and isinstance(node, ast.Attribute):
            of = base.receiver if isinstance(base, Bound) and base.name == "data" else base
            if isinstance(of, (Tensor, Unknown)):
                inner = node.value.value if isinstance(node.value, ast.Attribute) else node.value
                facts = (("of", of), ("text", Const(text_of(inner))))
                return Object(POINTER, self.sites.at(node), facts)
        return super().attribute(base, name, node)

    def _ctypes_data(self, made: Object, node: ast.AST) -> Value:
        text = text_of(node)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            text = text_of(node.value.value)
        facts = (("of", made.fact("of")), ("text", Const(text)))
        return Object(POINTER, self.sites.at(node), facts)

    def _ctypes_data_as(self, made: Object, args: Args, node: ast.AST) -> Value:
        function = node.func if isinstance(node, ast.Call) else node
        return self._ctypes_data(made, function)

    def _ctypes_strides(self, made: Object, *_: object) -> Value:
        return Object(STRIDES, made.site, (("of", made.fact("of")),))

    def _same(self, made: Object, *_: object) -> Value:
        return made

    def element_of_object(self, value: Object) -> Value:
        return value if value.cls == STRIDES else super().element_of_object(value)

    # Launchers

    def returns_before_body(self, function: Function, args: Args, node: ast.AST) -> bool:
        """A kernel called outside of a launch does nothing here."""
        names = set(self.trait_names(function))
        return bool(names & {*TRITON, "numba.cuda.jit"}) or any(
            n.startswith("triton.") for n in names
        )

    def launcher(self, kernel: Value, node: ast.Subscript) -> Value:
        inner = kernel
        while isinstance(inner, Partial):
            inner = inner.func
        if isinstance(inner, Function):
            return Object(LAUNCHER, self.sites.at(node), (("kernel", kernel),))
        return UNKNOWN

    def _launch(self, made: Object, args: Args, node: ast.AST) -> Value | None:
        kernel = made.fact("kernel")
        bound: tuple[tuple[str, Value], ...] = ()
        positional: tuple[Value, ...] = ()
        while isinstance(kernel, Partial):
            bound, positional, kernel = kernel.keywords, kernel.args + positional, kernel.func
        args = Args(positional + args.positional, {**dict(bound), **args.keywords}, args.open)
        if isinstance(kernel, Function):
            names = set(self.trait_names(kernel))
            if not any(n.startswith("triton.") for n in names):
                return UNKNOWN
            if isinstance(kernel.node, ast.Lambda):
                return UNKNOWN
            spec = kernel.node.args
            parameters = tuple(a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs))
            self.launch("triton", kernel.node.name, args, node, kernel.node, parameters)
            return UNKNOWN
        name = name_of(kernel)
        if name and not name.startswith(SAFE_SUBSCRIPTS) and "triton" in self.imports_text:
            self.launch("triton", name, args, node, None, ())
        return UNKNOWN

    def _raw_kernel(self, made: Object, args: Args, node: ast.AST) -> Value:
        handed = args.get("args", 2)
        items = handed.items if isinstance(handed, Sequence) else None
        inner = Args(items or (), {}, items is None)
        nodes = _argument_nodes(node, "args", 2)
        self.launch("cupy", self._callee_text(node), inner, node, None, (), nodes=nodes)
        return UNKNOWN

    def _get_function(self, made: Object, args: Args, node: ast.AST) -> Value:
        return Object(RAW_KERNEL, self.sites.at(node), facts_of(args))

    def _foreign_method(self, made: Object, name: str, args: Args, node: ast.AST) -> Value:
        self.launch("pointer", self._callee_text(node), args, node, None, ())
        return UNKNOWN

    def _extension_method(self, made: Object, name: str, args: Args, node: ast.AST) -> Value:
        callee = self._callee_text(node)
        self.launch("extension", callee, args, node, None, (), provenance=made.facts)
        return Unknown("call")

    def _memmove(self, args: Args, node: ast.AST) -> Value:
        self.launch("pointer", "ctypes.memmove", args, node, None, ())
        return UNKNOWN

    def _cast(self, made: Object, args: Args, node: ast.AST) -> Value:
        return args.get("", 1)

    def _library(self, args: Args, node: ast.AST) -> Value:
        return Object(FOREIGN, self.sites.at(node), facts_of(args))

    def _extension(self, args: Args, node: ast.AST) -> Value:
        return Object(EXTENSION, self.sites.at(node), facts_of(args))

    def call_object_method(self, receiver: Object, name: str, args: Args, node: ast.AST) -> Value:
        handler = self.ANY_METHOD.get(receiver.cls)
        if handler is not None:
            return handler(self, receiver, name, args, node)
        return super().call_object_method(receiver, name, args, node)

    def special_call(self, name: str, args: Args, node: ast.AST) -> Value | None:
        if name.startswith("ctypes."):
            pointer = next((a for a in args.positional if _is_pointer(a)), None)
            return pointer if pointer is not None else UNKNOWN
        if name in COLLECTIVES:
            self.launch("collective", name, args, node, None, ())
            return UNKNOWN
        if name.startswith("torch.ops.") and not name.startswith(
            ("torch.ops.aten", "torch.ops.prim")
        ):
            self.launch("foreign", name, args, node, None, ())
            return Unknown("call")
        return super().special_call(name, args, node)

    def note_unseen_call(self, callee: Value, args: Args, node: ast.AST) -> None:
        self.note_unseen_mover(callee, args, node)
        name = name_of(callee)
        module = name.rpartition(".")[0].rpartition(".")[2]
        if module.endswith(("_cuda", "_C", "_ext", "_cpp", "_kernels")):
            self.launch("foreign", name, args, node, None, ())

    # Arguments

    def launch(
        self,
        kind: str,
        callee: str,
        args: Args,
        node: ast.AST,
        kernel: ast.FunctionDef | ast.AsyncFunctionDef | None,
        parameters: tuple[str, ...],
        *,
        nodes: list[ast.expr] | None = None,
        provenance: tuple[tuple[str, Value], ...] = (),
    ) -> None:
        """Emit a launch with these arguments."""
        if nodes is None:
            nodes = list(node.args) if isinstance(node, ast.Call) else []
        keyword_nodes = (
            {k.arg: k.value for k in node.keywords if k.arg} if isinstance(node, ast.Call) else {}
        )
        given: list[tuple[ast.AST, Value, str | None]] = []
        aligned = len(nodes) == len(args.positional) and not any(
            isinstance(n, ast.Starred) for n in nodes
        )
        for index, value in enumerate(args.positional):
            shown: ast.AST = nodes[index] if aligned else node
            name = parameters[index] if index < len(parameters) else None
            given.extend((shown, part, name) for part in _spread(value))
        for keyword, value in args.keywords.items():
            shown = keyword_nodes.get(keyword, node)
            given.extend((shown, part, keyword) for part in _spread(value))
        texts, values = _strides_among(given)
        arguments = []
        for shown, value, name in given:
            target = value.fact("of") if _is_pointer(value) and isinstance(value, Object) else value
            text = _shown_text(value, shown)
            strided = text in texts or (isinstance(target, Tensor) and target in values)
            caller = self._came_from(target)
            arguments.append(
                Argument(shown, text, target, name, strided, target is not value, caller)
            )
        self.emit(
            KernelLaunch(node, kind, callee, tuple(arguments), kernel, parameters, provenance)
        )

    def _came_from(self, value: Value) -> ast.AST | None:
        """The call that handed ``value`` into the function around the launch, if one did."""
        found: ast.AST | None = None
        for frame in reversed(self.stack):
            if frame.call is None or not any(p is value for p in frame.parameters):
                break
            found = frame.call
        return found

    def _callee_text(self, node: ast.AST) -> str:
        return text_of(node.func) if isinstance(node, ast.Call) else text_of(node)

    ANY_METHOD: dict[str, Callable[..., Value]] = {}


def _is_pointer(value: Value) -> bool:
    return isinstance(value, Object) and value.cls in (POINTER, "numpy.ctypeslib")


def _spread(value: Value) -> Iterator[Value]:
    if isinstance(value, Sequence) and value.items is not None and len(value.items) <= 32:
        for item in value.items:
            yield from _spread(item)
    else:
        yield value


def _strides_among(
    given: list[tuple[ast.AST, Value, str | None]],
) -> tuple[set[str], list[Value]]:
    texts: set[str] = set()
    values: list[Value] = []
    for node, value, _ in given:
        for one in alternatives(value):
            if isinstance(one, Object) and one.cls == STRIDES:
                values.append(one.fact("of"))
                text = one.fact("text")
                if isinstance(text, Const):
                    texts.add(str(text.value))
        if isinstance(node, (ast.Name, ast.Constant)):
            continue
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and part.attr in ("stride", "strides"):
                texts.add(text_of(part.value))
    return texts, values


def _shown_text(value: Value, node: ast.AST) -> str:
    if isinstance(value, Object) and value.cls == POINTER:
        text = value.fact("text")
        if isinstance(text, Const):
            return str(text.value)
    return text_of(node)


def _argument_nodes(node: ast.AST, keyword: str, position: int) -> list[ast.expr]:
    if not isinstance(node, ast.Call):
        return []
    found: ast.expr | None = next((k.value for k in node.keywords if k.arg == keyword), None)
    if found is None and len(node.args) > position:
        found = node.args[position]
    return list(found.elts) if isinstance(found, (ast.Tuple, ast.List)) else []


Kernels.METHODS.update(
    {
        (LAUNCHER, "__call__"): Kernels._launch,
        (RAW_KERNEL, "__call__"): Kernels._raw_kernel,
        ("cupy.RawModule", "get_function"): Kernels._get_function,
        ("numpy.ctypeslib", ".data"): Kernels._ctypes_data,
        ("numpy.ctypeslib", "data_as"): Kernels._ctypes_data_as,
        ("numpy.ctypeslib", ".strides"): Kernels._ctypes_strides,
        ("numpy.ctypeslib", "strides_as"): Kernels._ctypes_strides,
        (STRIDES, "[]"): Kernels._same,
        ("cffi.FFI", "cast"): Kernels._cast,
        ("cffi.FFI", "dlopen"): lambda self, made, args, node: self._library(args, node),
    }
)
Kernels.ANY_METHOD.update({FOREIGN: Kernels._foreign_method, EXTENSION: Kernels._extension_method})
for _name in (
    "ctypes.CDLL",
    "ctypes.PyDLL",
    "ctypes.cdll.LoadLibrary",
    "numpy.ctypeslib.load_library",
):
    Kernels.FUNCTIONS[_name] = Kernels._library
for _name in ("torch.utils.cpp_extension.load", "torch.utils.cpp_extension.load_inline"):
    Kernels.FUNCTIONS[_name] = Kernels._extension
for _name in ("ctypes.memmove", "ctypes.memset"):
    Kernels.FUNCTIONS[_name] = Kernels._memmove
