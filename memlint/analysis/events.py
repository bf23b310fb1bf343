"""What the interpreter finds, as rules are told it.

An event names the node it is about (for locations only: rules never walk trees) and
carries abstract values.  Events marked *final* are emitted once per site, after the whole
program has been read, with all that was learnt of the site.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import field

from memlint.analysis.knowledge.model import Args, SliceValue
from memlint.analysis.values import Absent, Site, Symbol, Unknown, Value
from memlint.late_dataclass import dataclass
from memlint.source.model import Source

ANYTHING = Unknown()


@dataclass(frozen=True, slots=True)
class ProgramStart:
    """The first event of every program."""

    tree: ast.Module
    source: Source


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """The last event of every program."""

    tree: ast.Module


@dataclass(frozen=True, slots=True)
class Compiled:
    """How a function is compiled: by Numba (``njit``, ``guvectorize`` ...) or otherwise."""

    by: str
    parallel: bool = False
    nogil: bool = False
    signatures: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class Loop:
    """A loop as a nest sees it.

    ``kind`` is "range", "prange", "while", "ndindex", "product" or "iterable".  ``symbol``
    is its index; ``start``, ``stop`` and ``step`` are known for counted loops, ``trips``
    where the number of iterations is.  ``iterates`` is what an "iterable" loop runs over,
    ``iterated`` the expression.  ``stop_text`` and ``step_text`` are the names that a counted
    loop takes its bound and its step from, empty where they are no names.
    """

    node: ast.AST
    kind: str
    symbol: Symbol
    variable: str
    start: Value
    stop: Value
    step: Value
    trips: int | None = None
    iterates: Value | None = None
    iterated: ast.expr | None = None
    stop_text: str = ""
    step_text: str = ""


@dataclass(frozen=True, slots=True)
class Access:
    """An element or slice access of an array inside a loop.

    ``array`` is the text of the indexed expression, ``value`` what is known of it;
    ``index`` has a value or slice per subscript (``a[i][j]`` counts as ``a[i, j]``).
    ``mode`` is "load", "store" or "update" (``+=``).  ``conditional`` tells whether it
    runs only on some iterations of its innermost loop, ``partial`` of which loops it does.
    ``given`` is the value that is stored, or by which an element is updated.
    """

    node: ast.AST
    statement: ast.AST
    array: str
    value: Value
    index: tuple[Value | SliceValue, ...]
    mode: str
    conditional: bool
    loops: tuple[Loop, ...]
    partial: frozenset[Symbol] = frozenset()
    given: Value = ANYTHING


@dataclass(frozen=True, slots=True)
class LoopNest:
    """The accesses made directly in the body of ``loops[-1]``, the innermost loop of a nest.

    ``compiled`` is ``None`` in code that the Python interpreter runs.  ``triangular`` loops
    are recognised by bounds that depend on another loop's symbol.  A nest is told once per
    call of its function that differs in its arguments, and once as others may call it
    (``called`` is false); in compiled code also where nothing is accessed.  ``heavy`` tells
    that the body calls what may cost more than its accesses: array functions, functions with
    loops, callables that are not seen.
    """

    loops: tuple[Loop, ...]
    accesses: tuple[Access, ...]
    compiled: Compiled | None
    function: str
    called: bool = True
    heavy: bool = False


@dataclass(frozen=True, slots=True)
class Workers:
    """Who runs a piece of code at the same time.

    ``kind`` is "prange", "thread", "process"; ``symbols`` tell the workers apart.
    ``node`` is where they are started.
    """

    kind: str
    symbols: frozenset[Symbol]
    node: ast.AST
    depth: int = 0


@dataclass(frozen=True, slots=True)
class SlotStore:
    """A store into an element of an array that several workers share.

    ``worker_loops`` are the loops that run within one worker around the store; for a
    ``prange`` that numbers are spread over, the ``prange`` itself is not among them but
    ``spread``.  ``made_at`` is where the array is made, ``locked`` tells that a lock is held,
    ``shared`` that the array is known to lie in memory that processes share.
    """

    access: Access
    workers: Workers
    worker_loops: tuple[Loop, ...]
    compiled: Compiled | None
    made_at: ast.AST | None
    function: str = ""
    spread: Loop | None = None
    locked: bool = False
    shared: bool = False
    called: bool = True


@dataclass(frozen=True, slots=True)
class LaneAccess:
    """Final: an access of an array that the threads of a GPU make side by side, in a ``kernel``
    that is written in Python (``numba.cuda.jit``, ``cupyx.jit.rawkernel``).

    Symbols of kind "lane" are the place of the thread along "x", "y" and "z"; the threads of a
    warp follow each other along x.  ``block_width`` is how many threads of a block lie along x,
    where a launch tells.  The other fields are those of :class:`Access`.
    """

    node: ast.AST
    array: str
    value: Value
    index: tuple[Value | SliceValue, ...]
    mode: str
    loops: tuple[Loop, ...]
    kernel: ast.AST
    launched: bool
    block_width: Value


@dataclass(frozen=True, slots=True)
class SharedUpdate:
    """A store that adds to what an array holds (``x[k] += v``, ``x[k] = max(x[k], v)``), made
    in a ``loop`` whose iterations run in parallel on the same array.

    ``bound`` are the names that an iteration of the loop binds, ``None`` where the store is in
    another function than the loop.
    """

    access: Access
    loop: Loop
    compiled: Compiled
    bound: frozenset[str] | None
    function: str = ""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a launch: its text, its value, the parameter that takes it.

    ``value`` is the array, also where its address is given (``pointer``).  ``strided`` tells
    that its strides are handed over in the same call; ``caller`` is the call of the function
    around the launch, where the value came in from outside it; ``column_major`` that the
    program asked for this order by name (``order="F"``).
    """

    node: ast.AST
    text: str
    value: Value
    parameter: str | None = None
    strided: bool = False
    pointer: bool = False
    caller: ast.AST | None = None
    column_major: bool = False


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """Final: arguments handed to code that may see only their pointers.

    ``kind`` is "triton", "cupy", "pointer" (``data_ptr()`` and ctypes sinks), "extension"
    (compiled by this program), "foreign" (an extension module or operator whose source is
    not there), "collective".  ``kernel`` is the kernel's definition where it is in the
    program, ``parameters`` its parameters' names; ``provenance`` holds what is known of an
    extension's making (the arguments of ``load_inline``, say) and, under "backend", of the
    collectives' backend.
    """

    node: ast.AST
    kind: str
    callee: str
    arguments: tuple[Argument, ...]
    kernel: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    parameters: tuple[str, ...] = ()
    provenance: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Transfer:
    """A move of (a part of) a batch to a device.

    ``blocking`` tells that the batch is copied as the loader gave it, in a loop, and that the
    host waits for that on every path; ``whole`` that it is the batch as a whole, which may be
    no tensor.
    """

    node: ast.AST
    text: str
    devices: frozenset[str]
    blocking: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class WorkerCode:
    """What a loader's workers run, as far as it is in the program.

    ``moves`` are moves to CUDA in the dataset's methods, its transforms and the collate
    function; ``work`` is a call in ``__getitem__`` that decodes or computes;
    ``unpinned`` is the class of the program whose objects the loader yields and does not
    know how to pin.
    """

    moves: tuple[Transfer, ...] = ()
    work: ast.AST | None = None
    unpinned: str = ""


@dataclass(frozen=True, slots=True)
class LoaderBuilt:
    """Final: a ``torch.utils.data.DataLoader`` (or a subclass), and what became of its batches.

    ``text`` is the variable or attribute it is assigned to, if any.  ``arguments`` are by
    parameter name; ``open`` tells that there are ``*`` or ``**`` arguments that are not
    known.  ``direct`` tells that all of them stand in the call at ``node``; ``partial`` is
    the ``functools.partial`` that gives others.  ``batch`` is what its dataset and collate
    function yield.  ``torch`` is the name under which the module knows torch, if it does.
    ``in_workers`` is about the code that its workers run.
    """

    source: Source
    node: ast.Call
    text: str
    cls: str
    arguments: Mapping[str, Value]
    open: bool
    transfers: tuple[Transfer, ...]
    batch: Value
    direct: bool
    partial: ast.AST | None = None
    torch: str = ""
    in_workers: WorkerCode = field(default_factory=WorkerCode)

    def argument(self, name: str) -> Value:
        """The argument of this name; ``Absent`` where it is surely not given."""
        return self.arguments.get(name, Absent())


@dataclass(frozen=True, slots=True)
class DatasetAttribute:
    """Final: an attribute in which a dataset keeps Python objects, one for each sample.

    It is stored at ``node``.  ``what`` says in words what is kept; ``sure`` tells that there
    are as many as a file or a folder has entries, ``table`` that it is a data frame.
    ``loaders`` are the loaders of the program that read the dataset, none where nothing in
    the program does.
    """

    source: Source
    node: ast.expr
    name: str
    cls: str
    what: str
    sure: bool
    table: bool
    loaders: tuple[LoaderBuilt, ...]


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution layer: ``dims`` 1, 2 or 3; channels and groups where known."""

    node: ast.AST
    dims: int
    in_channels: int | None
    out_channels: int | None
    groups: int | None
    kernel_size: int | None
    stride: int | None
    transposed: bool


@dataclass(frozen=True, slots=True)
class Use:
    """Something that was done to a model, and where; ``detail`` says what.

    ``certain`` is false where it may not happen on any path (autocast switched by a flag).
    """

    node: ast.AST
    detail: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class ModelPlaced:
    """Final: a model that this program makes and moves to a device.

    ``moves`` are moves to devices, ``precisions`` evidence that its convolutions run in a
    tensor-core precision, ``formats`` mentions of channels_last, ``compiles`` of a compiler
    (``torch.compile``, ``torch.jit`` ...), ``exports`` of an export; ``complete`` tells that
    all its layers could be seen.  ``torch`` is the name under which the module knows torch.
    """

    node: ast.AST
    text: str
    convolutions: tuple[Convolution, ...]
    complete: bool
    moves: tuple[Transfer, ...]
    precisions: tuple[Use, ...]
    formats: tuple[Use, ...]
    compiles: tuple[Use, ...]
    calls: tuple[Use, ...]
    exports: tuple[Use, ...] = ()
    training: bool | None = None
    site: Site | None = field(default=None, compare=False)
    source: Source | None = None
    torch: str = ""


@dataclass(frozen=True, slots=True)
class Enclosing:
    """A loop around a call, in its function or in one that it was called through.

    ``role`` is "batch" (over a DataLoader or what yields its batches), "epoch", "step" (a
    loop that trains without a visible loader), "parameters" (over the parts of a model) or
    "" for any other.  ``throttled`` tells that the call is reached only every so many
    iterations of this loop (``if step % 100 == 0``), ``conditional`` that it is only on some,
    ``varied`` that this is so by a condition that may come out otherwise in each iteration:
    not by ``if rank == 0``, and not by a ``continue`` before it.
    """

    loop: Loop
    role: str
    throttled: bool
    conditional: bool
    varied: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """Under what a call runs.

    ``loops`` are outermost first and go through all functions that it was called through;
    ``calls`` are the calls of those.  ``function`` is the innermost function (``None`` in the
    module), ``name`` its name with its class, ``entry`` the outermost function that was not
    called by the program (``None`` where the module body led here).  ``grad`` tells whether
    autograd records: ``True`` unless the program turned it off (``False``) or may have
    (``None``).  ``managers`` are the context managers that are entered, ``conditional`` and
    ``throttled`` speak of the innermost function as a whole.
    """

    loops: tuple[Enclosing, ...]
    calls: tuple[ast.AST, ...]
    function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None
    name: str
    entry: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None
    grad: bool | None
    managers: tuple[Value, ...]
    receiver: Value | None
    compiled: Compiled | None
    conditional: bool
    throttled: bool

    def innermost(self, *roles: str) -> Enclosing | None:
        """The innermost loop with one of these roles; any loop where none is given."""
        for one in reversed(self.loops):
            if not roles or one.role in roles:
                return one
        return None


@dataclass(frozen=True, slots=True)
class Called:
    """Final: an operation that some rule has in its ``calls``.

    ``name`` is canonical: "torch.cat" for a function, ".contiguous" for a method whatever
    its receiver, "operator.matmul" for ``@`` (the names are those of :mod:`operator`, told
    where an operand is an array), "operator.getitem" for a subscript of an array, ".T" for
    an attribute that is a view, "numba.cuda.launch" for a launch of the kernel that is its
    receiver.  ``receiver`` is what a method is called on, else ``None``;
    the operands of operators are in ``args``, where "key" holds that of an element stored to.
    ``value`` is the result.  An operation is told once for each way that leads to it.
    """

    node: ast.expr
    name: str
    receiver: Value | None
    args: Args
    value: Value
    statement: ast.AST
    context: Context
    source: Source

    @property
    def operands(self) -> tuple[Value, ...]:
        """The receiver, if any, and the positional arguments."""
        first = () if self.receiver is None else (self.receiver,)
        return first + self.args.positional


@dataclass(frozen=True, slots=True)
class Forward:
    """Final: a call whose result is a part of a graph of autograd that its arguments were not:
    a model is run, or a function that runs one.  Told where a rule has "forward" in its ``calls``.

    ``models`` are the texts that the model may go by, ``graphs`` what is new in the result: none
    where a model runs while autograd does not record.
    ``evaluating`` tells whether the code that leads here put the model into evaluation mode
    (``True``) or training mode (``False``), ``elsewhere`` the same of its class or the module.
    ``through`` tells that the call is one of a function of the program.
    """

    node: ast.Call
    models: tuple[str, ...]
    graphs: frozenset[Site]
    value: Value
    evaluating: bool | None
    elsewhere: bool | None
    through: bool
    statement: ast.AST
    context: Context
    source: Source


@dataclass(eq=False, slots=True)
class HostCopy:
    """Final: a copy to host memory with ``non_blocking=True`` that is not waited for in time.

    ``read`` is the first read of what is copied that may come before the copy is done;
    ``outlives`` tells that it is still running where a function that others call ends, with
    neither an event recorded nor the device waited for (``left_by`` are such functions).
    ``sites`` are the storages that are copied to, where they were there before, ``kept_in``
    the attributes that hold the result.
    """

    node: ast.AST
    source: Source
    read: ast.AST | None = None
    outlives: bool = False
    left_by: set[int] = field(default_factory=set)
    sites: set[int] = field(default_factory=set)
    kept_in: set[str] = field(default_factory=set)


Event = (
    HostCopy
    | Called
    | Forward
    | ProgramStart
    | ProgramEnd
    | LoopNest
    | SlotStore
    | SharedUpdate
    | LaneAccess
    | KernelLaunch
    | LoaderBuilt
    | DatasetAttribute
    | ModelPlaced
)
