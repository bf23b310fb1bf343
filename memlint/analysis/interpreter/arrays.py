"""Makers of arrays that the tables do not speak of: shared memory, generators, orders by name."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from memlint.analysis import knowledge
from memlint.analysis.axes import Layout, dense, dense_any_rank, fortran, reverse
from memlint.analysis.interpreter.workers import Parallel
from memlint.analysis.knowledge import Args, dtype_of, shape_of
from memlint.analysis.linear import symbol_value
from memlint.analysis.values import (
    Absent,
    Bound,
    Const,
    Object,
    Ref,
    Sequence,
    Symbol,
    Tensor,
    Value,
    alternatives,
    join,
    must_be,
)

CPU = frozenset({"cpu"})
GENERATOR = "numpy.random.Generator"
# How many workers run at once, asked of the system.
COUNTERS = (
    "os.cpu_count", "os.process_cpu_count", "multiprocessing.cpu_count", "psutil.cpu_count",
    "numba.get_num_threads", "torch.get_num_threads", "joblib.cpu_count",
)  # fmt: skip
C_TYPES = {
    "b": "int8", "B": "uint8", "h": "int16", "H": "uint16", "i": "int32", "I": "uint32",
    "l": "int64", "L": "uint64", "q": "int64", "Q": "uint64", "f": "float32", "d": "float64",
    "c_byte": "int8", "c_ubyte": "uint8", "c_bool": "bool", "c_short": "int16",
    "c_ushort": "uint16", "c_int": "int32", "c_uint": "uint32", "c_long": "int64",
    "c_ulong": "uint64", "c_longlong": "int64", "c_ulonglong": "uint64", "c_size_t": "uint64",
    "c_float": "float32", "c_double": "float64", "c_int8": "int8", "c_uint8": "uint8",
    "c_int16": "int16", "c_uint16": "uint16", "c_int32": "int32", "c_uint32": "uint32",
    "c_int64": "int64", "c_uint64": "uint64",
}  # fmt: skip


class Arrays(Parallel):
    """Arrays, however they are made."""

    # Orders

    def _in_order(self, name: str, args: Args, node: ast.AST) -> Value | None:
        """``asfortranarray(x)`` and ``array(x, order="F")``, whatever is known of ``x``."""
        order = {"ascontiguousarray": "C", "asfortranarray": "F"}.get(name)
        given = args.get("order")
        if isinstance(given, Const) and given.value in ("C", "F"):
            order = str(given.value)
        first = args.get("a", 0)
        if order is None or isinstance(first, (Absent, Const, Sequence)):
            return None
        known = knowledge.call_function(f"numpy.{name}", args, node, self.sites.at(node))
        if isinstance(known, Tensor) and not known.layout.opaque:
            return replace(known, assumed=False)
        any_rank = dense_any_rank()
        layout = reverse(any_rank) if order == "F" else any_rank
        dtype = dtype_of(args.get("dtype", 1))
        return Tensor("numpy", layout, dtype, CPU, born=node, site=self.sites.at(node))

    def _view_of_pointer(self, row_major: bool, args: Args, node: ast.AST) -> Value | None:
        """Numba's ``carray(pointer, shape)`` and ``farray``."""
        sizes = shape_of((args.get("shape", 1),))
        if sizes is None:
            return None
        layout: Layout = dense(sizes) if row_major else fortran(sizes)
        dtype = dtype_of(args.get("dtype", 2))
        return Tensor("numpy", layout, dtype, CPU, born=node, site=self.sites.at(node))

    # Random numbers

    def _generator(self, args: Args, node: ast.AST) -> Value:
        return Object(GENERATOR, self.sites.at(node))

    def _drawn(self, name: str, args: Args, node: ast.AST) -> Value | None:
        """A method of a generator: what the function of that name in ``numpy.random`` makes."""
        made = knowledge.call_function(f"numpy.random.{name}", args, node, self.sites.at(node))
        given = args.get("dtype")
        default = "int64" if name == "randint" else "float64"
        dtype = default if isinstance(given, Absent) else dtype_of(given)
        return None if made is None else join(_typed(one, dtype) for one in alternatives(made))

    # Shared memory

    def _over_buffer(self, args: Args, node: ast.AST) -> Value | None:
        """``numpy.ndarray(shape, dtype, buffer)``."""
        if not isinstance(args.get("strides", 4), Absent):
            return None
        sizes = shape_of((args.get("shape", 0),))
        by_columns = args.get("order", 5) == Const("F")
        if sizes is None:
            layout: Layout = reverse(dense_any_rank()) if by_columns else dense_any_rank()
        else:
            layout = fortran(sizes) if by_columns else dense(sizes)
        dtype = args.get("dtype", 1)
        name = "float64" if isinstance(dtype, Absent) else dtype_of(dtype)
        made = Tensor("numpy", layout, name, CPU, site=self.sites.at(node))
        return self.mark_shared(made) if self._is_shared(args.get("buffer", 2)) else made

    def _from_buffer(self, args: Args, node: ast.AST) -> Value | None:
        buffer = args.get("buffer", 0)
        if not self._is_shared(buffer):
            return None
        dtype = args.get("dtype", 1)
        name = "float64" if isinstance(dtype, Absent) else dtype_of(dtype)
        made = Tensor("numpy", dense((None,)), name, CPU, site=self.sites.at(node))
        return self.mark_shared(made)

    def _is_shared(self, buffer: Value) -> bool:
        match buffer:
            case Bound(receiver=Object(cls=cls), name="buf" | "_buf"):
                return cls.endswith("SharedMemory")
            case Bound(receiver=receiver, name="get_obj"):
                return self._is_shared(receiver)
            case Tensor(site=site):
                return site in self.shared
        return False

    def _raw_array(self, args: Args, node: ast.AST) -> Value | None:
        """``multiprocessing.RawArray(typecode, size)``, or ``Array`` without its lock."""
        code = args.get("typecode_or_type", 0)
        name = code.value if isinstance(code, Const) else ""
        name = code.name.rpartition(".")[2] if isinstance(code, Ref) else name
        sizes = shape_of((args.get("size_or_initializer", 1),))
        size = sizes[0] if sizes is not None and len(sizes) == 1 else None
        layout = dense((size,))
        made = Tensor("", layout, C_TYPES.get(str(name)), CPU, site=self.sites.at(node))
        return self.mark_shared(made)

    def _locked_array(self, args: Args, node: ast.AST) -> Value | None:
        return self._raw_array(args, node) if must_be(args.get("lock"), False) else None

    # Numbers of workers

    def _count(self, name: str, args: Args, node: ast.AST) -> Value:
        return symbol_value(Symbol("workers", name, self.sites.at(self.tree, name)))


def _typed(value: Value, dtype: str | None) -> Value:
    return replace(value, dtype=dtype) if isinstance(value, Tensor) else value


def _ordering(name: str) -> Callable[..., Value | None]:
    return lambda self, args, node: self._in_order(name, args, node)


def _pointer(row_major: bool) -> Callable[..., Value | None]:
    return lambda self, args, node: self._view_of_pointer(row_major, args, node)


def _counter(name: str) -> Callable[..., Value]:
    return lambda self, args, node: self._count(name, args, node)


def _drawing(name: str) -> Callable[..., Value | None]:
    return lambda self, receiver, args, node: self._drawn(name, args, node)


for _name in ("ascontiguousarray", "asfortranarray", "array", "asarray", "asanyarray", "copy"):
    Arrays.FUNCTIONS[f"numpy.{_name}"] = _ordering(_name)
Arrays.FUNCTIONS["numba.carray"] = _pointer(True)
Arrays.FUNCTIONS["numba.farray"] = _pointer(False)
for _name in COUNTERS:
    Arrays.FUNCTIONS[_name] = _counter(_name)
for _name in ("default_rng", "RandomState", "Generator"):
    Arrays.FUNCTIONS[f"numpy.random.{_name}"] = Arrays._generator
for _name in ("random", "normal", "uniform", "standard_normal", "random_sample", "rand", "randn"):
    Arrays.METHODS[(GENERATOR, _name)] = _drawing(_name)
for _name in ("integers", "randint"):
    Arrays.METHODS[(GENERATOR, _name)] = _drawing("randint")
Arrays.FUNCTIONS["numpy.ndarray"] = Arrays._over_buffer
Arrays.FUNCTIONS["numpy.frombuffer"] = Arrays._from_buffer
for _name in ("multiprocessing.RawArray", "multiprocessing.sharedctypes.RawArray"):
    Arrays.FUNCTIONS[_name] = Arrays._raw_array
for _name in ("multiprocessing.Array", "multiprocessing.sharedctypes.Array"):
    Arrays.FUNCTIONS[_name] = Arrays._locked_array
