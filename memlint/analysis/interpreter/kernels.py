"""Code that is handed arrays by their pointer: Triton and CuPy kernels, foreign functions,
extensions, collectives."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from memlint.analysis.extensions import registers
from memlint.analysis.interpreter.calls import Handler, facts_of
from memlint.analysis.interpreter.handed import POINTER, STRIDES, is_pointer, is_strides
from memlint.analysis.interpreter.launches import Launches
from memlint.analysis.interpreter.machine import UNKNOWN, name_of, text_of
from memlint.analysis.knowledge import Args
from memlint.analysis.values import (
    Absent,
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

LAUNCHER, INTERFACE = "memlint.launcher", "memlint.interface"
FOREIGN, EXTENSION, RAW_KERNEL = "ctypes.CDLL", "memlint.extension", "cupy.RawKernel"
TRITON = ("triton.jit", "triton.autotune", "triton.heuristics", "triton.experimental.gluon.jit")
# Collectives that hand a tensor's memory to the communication library as it lies.
# The names are those of the parameters that may be tensors.
COLLECTIVES = {
    f"torch.distributed.{name}": tuple(parameters.split())
    for name, parameters in {
        "all_reduce": "tensor",
        "all_gather": "tensor_list tensor",
        "all_gather_into_tensor": "output_tensor input_tensor",
        "all_to_all": "output_tensor_list input_tensor_list",
        "all_to_all_single": "output input",
        "broadcast": "tensor",
        "gather": "tensor gather_list",
        "reduce": "tensor",
        "reduce_scatter": "output input_list",
        "reduce_scatter_tensor": "output input",
        "scatter": "tensor scatter_list",
    }.items()
}
# Lists that are copied to and from one dense buffer, whatever the layout of their tensors.
FLATTENED = frozenset({"tensor_list", "gather_list", "input_list", "scatter_list"})
SAFE_SUBSCRIPTS = ("typing.", "builtins.", "torch.", "numpy.", "collections.", "os.", "cupy.")


class Kernels(Launches):
    """Launches and pointers."""

    imports_text: str
    # What the program declares of foreign functions' parameters, by the function's name.
    argument_types: dict[str, tuple[Value, ...]]
    # The arguments of ``load_inline(..., is_python_module=False)``: they register operators.
    operator_sources: list[tuple[tuple[str, Value], ...]]

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

    def _interface_item(self, made: Object, node: ast.AST) -> Value:
        """``x.__array_interface__["data"][0]`` is the address, ``["strides"]`` the strides."""
        while isinstance(node, ast.Subscript) and isinstance(node.value, ast.Subscript):
            node = node.value
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
            return UNKNOWN
        cls = {"data": POINTER, "strides": STRIDES}.get(str(node.slice.value))
        if cls is None:
            return UNKNOWN
        text = text_of(node.value.value) if isinstance(node.value, ast.Attribute) else ""
        return Object(cls, made.site, (*made.facts, ("text", Const(text))))

    def binary(self, op: type[ast.operator], left: Value, right: Value, node: ast.AST) -> Value:
        for side in (left, right):
            if not isinstance(side, Object):
                continue
            if side.cls == STRIDES or (side.cls == POINTER and op is ast.Add):
                return side
        return super().binary(op, left, right, node)

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
        for kernel in alternatives(made.fact("kernel")):
            if isinstance(kernel, Function) and "numba.cuda.jit" in self.trait_names(kernel):
                self.operation("numba.cuda.launch", node, kernel, args, UNKNOWN)
            self._launch_one(kernel, made, args, node)
        return UNKNOWN

    def _launch_one(self, kernel: Value, made: Object, args: Args, node: ast.AST) -> None:
        bound: tuple[tuple[str, Value], ...] = ()
        positional: tuple[Value, ...] = ()
        while isinstance(kernel, Partial):
            bound, positional, kernel = kernel.keywords, kernel.args + positional, kernel.func
        args = Args(positional + args.positional, {**dict(bound), **args.keywords}, args.open)
        if isinstance(kernel, Function):
            names = set(self.trait_names(kernel))
            if isinstance(kernel.node, ast.Lambda) or not any(
                n.startswith("triton.") for n in names
            ):
                return
            spec = kernel.node.args
            parameters = tuple(a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs))
            self.launch("triton", kernel.node.name, args, node, kernel.node, parameters)
            return
        name = name_of(kernel)
        if "triton" in self.imports_text and self._looks_launched(name, made.site.node):
            self.launch("triton", name.rpartition(".")[2], args, node)

    def _looks_launched(self, name: str, node: ast.AST) -> bool:
        """Whether ``name[...]`` binds a kernel of another module to its grid."""
        if not name or name.startswith(SAFE_SUBSCRIPTS) or not isinstance(node, ast.Subscript):
            return False
        grid = node.slice
        return isinstance(grid, (ast.Tuple, ast.Lambda)) or any(
            isinstance(value, (Sequence, Function)) for value in alternatives(self.evaluate(grid))
        )

    def _raw_kernel(self, made: Object, args: Args, node: ast.AST) -> Value:
        handed = args.get("args", 2)
        items = handed.items if isinstance(handed, Sequence) else None
        inner = Args(items or (), {}, items is None)
        nodes = _argument_nodes(node, "args", 2)
        self.launch("cupy", self._callee_text(node), inner, node, nodes=nodes)
        return UNKNOWN

    def _get_function(self, made: Object, args: Args, node: ast.AST) -> Value:
        return Object(RAW_KERNEL, self.sites.at(node), facts_of(args))

    def _foreign_method(self, made: Object, name: str, args: Args, node: ast.AST) -> Value:
        declared = self.argument_types.get(name, ())
        handed = tuple(
            self._as_declared(value, declared[index] if index < len(declared) else UNKNOWN, node)
            for index, value in enumerate(args.positional)
        )
        self.launch("pointer", self._callee_text(node), replace(args, positional=handed), node)
        return UNKNOWN

    def _as_declared(self, value: Value, declared: Value, node: ast.AST) -> Value:
        """An array goes to a foreign function as it is only by an ``ndpointer``; one that asks
        for dense arrays refuses all others."""
        if not any(isinstance(one, Tensor) for one in alternatives(value)):
            return value
        if isinstance(declared, Object) and declared.cls == "numpy.ctypeslib.ndpointer":
            flags = declared.fact("flags")
            if isinstance(flags, Absent):
                flags = declared.fact("3")
            if isinstance(flags, Absent):
                return value
        return UNKNOWN

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Attribute) and target.attr == "argtypes":
            function = self.evaluate(target.value)
            if isinstance(function, Bound) and isinstance(value, Sequence):
                self.argument_types[function.name] = value.items or ()
        super().assign(target, value)

    def _extension_method(self, made: Object, name: str, args: Args, node: ast.AST) -> Value:
        callee = self._callee_text(node)
        self.launch("extension", callee, args, node, provenance=made.facts)
        return Unknown("call")

    def _memmove(self, args: Args, node: ast.AST) -> Value:
        handed = tuple(self._as_declared(value, UNKNOWN, node) for value in args.positional)
        self.launch("pointer", "ctypes.memmove", replace(args, positional=handed), node)
        return UNKNOWN

    def _cast(self, made: Object, args: Args, node: ast.AST) -> Value:
        return args.get("", 1)

    def _library(self, args: Args, node: ast.AST) -> Value:
        return Object(FOREIGN, self.sites.at(node), facts_of(args))

    def _compiled_files(self, args: Args, node: ast.AST) -> Value:
        """``cpp_extension.load``: the sources are in files that are not read."""
        return Object(EXTENSION, self.sites.at(node))

    def _extension(self, args: Args, node: ast.AST) -> Value:
        self.operator_sources.append(facts_of(args))
        return Object(EXTENSION, self.sites.at(node), facts_of(args))

    def call_object_method(self, receiver: Object, name: str, args: Args, node: ast.AST) -> Value:
        handler = self.ANY_METHOD.get(receiver.cls)
        if handler is not None:
            return handler(self, receiver, name, args, node)
        return super().call_object_method(receiver, name, args, node)

    def special_call(self, name: str, args: Args, node: ast.AST) -> Value | None:
        if name.startswith("ctypes."):
            kept = (a for a in args.positional if is_pointer(a) or is_strides(a))
            return next(kept, UNKNOWN)
        if name in COLLECTIVES:
            self._collective(name, args, node)
            return UNKNOWN
        if name.startswith("torch.ops.") and not name.startswith(
            ("torch.ops.aten", "torch.ops.prim")
        ):
            self._operator(name, args, node)
            return Unknown("call")
        return super().special_call(name, args, node)

    def _collective(self, name: str, args: Args, node: ast.AST) -> None:
        parameters = COLLECTIVES[name]
        positional = tuple(
            UNKNOWN if index < len(parameters) and parameters[index] in FLATTENED else value
            for index, value in enumerate(args.positional)
        )
        keywords = {k: v for k, v in args.keywords.items() if k not in FLATTENED}
        short = f"dist.{name.rpartition('.')[2]}"
        self.launch(
            "collective", short, Args(positional, keywords, args.open), node, None, parameters
        )

    def _operator(self, name: str, args: Args, node: ast.AST) -> None:
        """``torch.ops.<library>.<operator>``, perhaps registered by C++ in this program."""
        library = name.split(".")[2] if name.count(".") > 2 else name
        for facts in self.operator_sources:
            if registers(facts, library):
                self.launch("extension", name, args, node, provenance=facts)
                return
        if f"{library}::" in self.imports_text:
            return  # registered in Python, perhaps in this very program
        self.launch("foreign", name, args, node)

    def _process_group(self, args: Args, node: ast.AST) -> Value:
        self.backends.append(args.get("backend", 0))
        return Const(None)

    def _asserted(self, args: Args, node: ast.AST) -> Value:
        if isinstance(node, ast.Call) and node.args:
            self._refine(node.args[0], truth=True, certain=True)
        return Const(None)

    def _kept_object(self, args: Args, node: ast.AST) -> Value:
        return Object("numpy.ctypeslib.ndpointer", self.sites.at(node), facts_of(args))

    def _wrapped(self, args: Args, node: ast.AST) -> Value:
        return args.get("", 0)

    def note_unseen_call(self, callee: Value, args: Args, node: ast.AST) -> None:
        self.note_unseen_mover(callee, args, node)
        name = name_of(callee)
        module = name.rpartition(".")[0].rpartition(".")[2]
        if module.endswith(("_cuda", "_C", "_ext", "_cpp", "_kernels")):
            self.launch("foreign", name, args, node)

    def _callee_text(self, node: ast.AST) -> str:
        return text_of(node.func) if isinstance(node, ast.Call) else text_of(node)

    ANY_METHOD: dict[str, Callable[..., Value]] = {}


def _argument_nodes(node: ast.AST, keyword: str, position: int) -> list[ast.expr]:
    if not isinstance(node, ast.Call):
        return []
    found: ast.expr | None = next((k.value for k in node.keywords if k.arg == keyword), None)
    if found is None and len(node.args) > position:
        found = node.args[position]
    return list(found.elts) if isinstance(found, (ast.Tuple, ast.List)) else []


def _exchanged(lib: str) -> Handler:
    """The same memory and strides, in the hands of another library."""

    def handler(self: Kernels, args: Args, node: ast.AST) -> Value:
        value = args.get("", 0)
        return replace(value, lib=lib or value.lib) if isinstance(value, Tensor) else value

    return handler


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
        (INTERFACE, "[]"): Kernels._interface_item,
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
Kernels.FUNCTIONS["torch.utils.cpp_extension.load"] = Kernels._compiled_files
Kernels.FUNCTIONS["torch.utils.cpp_extension.load_inline"] = Kernels._extension
for _name in ("ctypes.memmove", "ctypes.memset"):
    Kernels.FUNCTIONS[_name] = Kernels._memmove
for _name in ("torch._assert", "torch._check"):
    Kernels.FUNCTIONS[_name] = Kernels._asserted
for _name in ("torch.library.wrap_triton", "torch._library.capture_triton"):
    Kernels.FUNCTIONS[_name] = Kernels._wrapped
for _name, _lib in (
    ("torch.from_dlpack", "torch"),
    ("torch.to_dlpack", ""),
    ("torch.utils.dlpack.from_dlpack", "torch"),
    ("torch.utils.dlpack.to_dlpack", ""),
    ("numpy.from_dlpack", "numpy"),
    ("cupy.from_dlpack", "cupy"),
    ("cupy.fromDlpack", "cupy"),
):
    Kernels.FUNCTIONS[_name] = _exchanged(_lib)
Kernels.FUNCTIONS["numpy.ctypeslib.ndpointer"] = Kernels._kept_object
Kernels.FUNCTIONS["torch.distributed.init_process_group"] = Kernels._process_group
