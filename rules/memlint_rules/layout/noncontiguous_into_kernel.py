"""A strided view handed to code that sees only its pointer."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from memlint.analysis import axes
from memlint.analysis.events import Argument, KernelLaunch
from memlint.analysis.extensions import inline_source, reads_bare_memory
from memlint.analysis.places.launch import may_launch
from memlint.analysis.triton_kernels import Addresses, flat_pointers
from memlint.analysis.values import Const, Tensor, Value, alternatives, may_be
from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern, name_pattern
from memlint.rule import Draft, DraftFix, Needs, Related, Replacement, Rule, Word

# Collectives that work in the memory of their tensor also where they run over gloo.
IN_PLACE = frozenset({"dist.all_reduce", "dist.broadcast", "dist.reduce", "dist.scatter"})
# Collectives read these parameters and write the others.
READ_BY_COLLECTIVES = frozenset({"input", "input_tensor"})
COLUMN_MAJOR = late_pattern(r"(?i:cblas_|cublas|cusolver|lapack|magma)|[sdcz][a-z0-9]{3,8}_$")
SHOWN = 48


# What the kernels and foreign functions in other modules of a project are made by.
_ABROAD: frozenset[Word] = frozenset(
    {"triton.jit", "triton.autotune", "triton.heuristics", "gluon.jit", "@triton", "RawKernel",
     "RawModule", "ctypes", "cpp_extension"}
)  # fmt: skip
_LAUNCHES: frozenset[Word] = _ABROAD | frozenset(
    {
        "triton", "RawKernel", "RawModule", "ctypes", "dlopen", "cpp_extension", "torch.ops",
        "all_reduce", "all_gather", "all_to_all", "reduce_scatter", "dist.broadcast",
        "dist.reduce", "dist.gather", "dist.scatter", "distributed.broadcast",
        "distributed.reduce", "distributed.gather", "distributed.scatter", "distributed import",
    }
)  # fmt: skip
# Parts of the words above, few enough to be looked for in every file.
_LIBRARIES = ("triton", "Raw", "ctypes", "dlopen", "cpp_ext", "torch.ops", "dist", "all_", "_sca")
# A slice with a step; no mark of a text, which ends its line or stands before a blank.
_STEP = late_pattern(r"::[-\w(]|\s::\s?[-\w(]")


def _steps(text: str) -> bool:
    return "::" in text and _STEP.search(text) is not None


# What makes a layout other than dense.
_BIRTHS: frozenset[Word] = frozenset(
    {
        name_pattern(r"\.T\b"), name_pattern(r"\.mT\b"), name_pattern(r"\.H\b"), ".t()", "torch.t(",
        name_pattern(r"\.real\b"), name_pattern(r"\.imag\b"), "transpose", "permute", "movedim",
        "moveaxis", "swapaxes", "swapdims", "rearrange", "narrow", "unbind",
        # index_select and masked_select copy.
        name_pattern(r"(?<!\w)select\("),
        late_pattern(r"split\(\s*[^\s\"')]"), ".chunk(", "torch.chunk(", "expand(", "expand_as",
        "broadcast_to", "unfold", "diagonal", "as_strided", "channels_last", "order=",
        "asfortran", "sliding_window", "tensordot", "adjoint", _steps, ", :", "[:,",
        ".flip", "rot90", "meshgrid", "broadcast_tensors",
        # A slice, or what an ellipsis leaves, before another subscript; no `Callable[..., X]`.
        late_pattern(r"\[[^\[\]\n]*:[^\[\]\n]*,"),
        late_pattern(r"\[\.\.\., ?(?:[\d:\-]|[a-z_]\w*\])"),
    }
)  # fmt: skip


class NoncontiguousIntoKernel(Rule):
    """A strided view is handed to code that sees only its pointer.

    ## What it does

    Reports tensors whose elements do not lie row by row in memory (a transpose, a permutation, a
    slice of columns, an expanded or a strided view) where they reach code that takes their address
    and nothing else: a Triton launch without strides, a CuPy `RawKernel`, a ctypes or cffi
    function, `ctypes.memmove`, a C++ extension that this program compiles, an NCCL collective.

    ## Why it is wrong

    A view is a set of strides over somebody else's memory. A kernel that gets the pointer alone
    walks on from there as if the elements were dense: it reads the wrong ones, in the wrong order,
    and where the view has gaps or an output is strided, it reads or writes memory that belongs to
    no element of the tensor. Nothing raises. A Triton copy kernel launched on `x.t()` returns the
    elements of `x` in the order 0, 1, 2, ... instead of 0, 4, 8, ... (4 columns; triton 3.8.0).
    NCCL collectives check and raise `Tensors must be contiguous`. Over gloo, `all_to_all_single`
    raises the same, and `all_reduce`, `broadcast`, `reduce` and `scatter` into a column of a matrix
    change elements of its first row instead (torch 2.13, CPU).

    ## When it is silent

    - The strides go along: `x.stride(0)`, a variable or dictionary that holds strides, a parameter
      called after the pointer (`stride_xm`, `ldx`), a tensor descriptor, the width of the array
      that columns are cut from.
    - The tensor is made dense or checked on the way: `.contiguous()`, `np.ascontiguousarray`,
      `assert x.is_contiguous()`, a helper or decorator of the program that does so, an `ndpointer`
      with `C_CONTIGUOUS`; a decorator that cannot be seen into may do so as well.
    - The view is dense all the same: slices along the first axis, axes of size 1 moved.
    - The layout is odd on some paths only, or not known.
    - A flat elementwise Triton kernel gets arrays that all share one dense order of axes.
    - Fortran order asked for by name goes to a foreign function, or any order without gaps to
      one that is called like those of BLAS and LAPACK: they want columns.
    - A collective runs over gloo or mpi (or on CPU tensors) and copies its input, or works in a
      view without gaps.
    - Numba kernels, CuPy's elementwise and reduction kernels, ATen operators: they take strides.
    - Extension code that mentions `contiguous`, accessors or strides; extensions whose source is
      not in the program are reported at confidence low.

    ## Example

    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


    def add_transposed(x, y):
        xt = x.t()
        out = torch.empty(y.shape, device=y.device)
        n = out.numel()
        add_kernel[(triton.cdiv(n, 1024),)](xt, y, out, n, BLOCK=1024)
        return out
    ```

    ## Use instead

    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


    def add_transposed(x, y):
        xt = x.t().contiguous()
        out = torch.empty(y.shape, device=y.device)
        n = out.numel()
        add_kernel[(triton.cdiv(n, 1024),)](xt, y, out, n, BLOCK=1024)
        return out
    ```

    ## Fix safety

    The fix adds `.contiguous()` to an argument that the kernel only reads. It is unsafe: it makes
    a copy, and it changes results (they become those of the view). There is none for arguments
    that are written, since the results would land in the copy: allocate such an output with
    `torch.empty(shape)`, or with `memory_format=torch.contiguous_format`.

    ## How to confirm

    Print `x.is_contiguous()` and `x.stride()` right before the launch, and compare the result with
    that of the same launch on `x.contiguous()`.

    ## References

    - CuPy, "User-defined kernels": raw kernels ignore views, `matrix.T` is passed as `matrix`.
    - PyTorch, "Tensor Views": which operations return views and which copy.
    """

    code = "MEM303"
    name = "noncontiguous-into-kernel"
    severity = Severity.ERROR
    applicability = Applicability.UNSAFE
    needs = Needs(
        {*_LIBRARIES, *_ABROAD},
        _LAUNCHES,
        _BIRTHS,
        values=[_LAUNCHES | {"]("}, _BIRTHS],
        places=may_launch,
        across=_ABROAD,
        classwide=True,
    )

    def check(self, launch: KernelLaunch) -> Iterator[Draft]:
        """Arguments of a launch whose strides are known to be odd and do not go along."""
        confidence = _confidence(launch)
        suspects = [one for one in launch.arguments if _suspect(launch, one)]
        if confidence is None or not suspects or _order_is_shared(launch):
            return
        assumed = [one for one in suspects if all(t.assumed for t in _tensors(one.value))]
        if len(assumed) == len(suspects):
            confidence = min(confidence, Confidence.MEDIUM, key=lambda level: level.rank)
        yield self.finding(
            _place(launch, suspects),
            _message(launch, suspects, assumed),
            _help(launch, suspects),
            confidence=confidence,
            related=_related(launch, suspects),
            fix=_fix(launch, suspects),
        )


def _tensors(value: Value) -> list[Tensor]:
    return [one for one in alternatives(value) if isinstance(one, Tensor)]


def _suspect(launch: KernelLaunch, argument: Argument) -> bool:
    """Whether the layout is odd on every path and the callee is not told."""
    if argument.strided:
        return False
    given = [one for one in alternatives(argument.value) if one != Const(None)]
    if not given or not all(
        isinstance(one, Tensor) and axes.contiguous(one.layout) is False for one in given
    ):
        return False
    if launch.kind == "pointer":
        return not (argument.column_major or _wants_columns(launch, argument))
    if launch.kind == "collective":
        if not _over_nccl(launch, argument):
            return _gloo_fails(launch, argument)
        # NCCL takes what is dense in the tensor's own memory format.
        return not all(axes.channels_last_format(t.layout) for t in _tensors(argument.value))
    return True


def _wants_columns(launch: KernelLaunch, argument: Argument) -> bool:
    """Whether a function of BLAS or LAPACK gets a matrix without gaps in another order."""
    name = launch.callee.rpartition(".")[2]
    return COLUMN_MAJOR.match(name) is not None and all(
        axes.non_overlapping_and_dense(t.layout) for t in _tensors(argument.value)
    )


def _over_nccl(launch: KernelLaunch, argument: Argument) -> bool:
    """Whether a collective may run over NCCL: no other backend is proved."""
    if all(tensor.devices == {"cpu"} for tensor in _tensors(argument.value)):
        return False
    backends = [one for _, value in launch.provenance for one in alternatives(value)]
    others = [isinstance(one, Const) and one.value in ("gloo", "mpi") for one in backends]
    return not others or not all(others)


def _gloo_fails(launch: KernelLaunch, argument: Argument) -> bool:
    """Whether a collective over gloo refuses a view, or goes wrong in its memory."""
    if any(may_be(value, "mpi") for _, value in launch.provenance):
        return False
    if launch.callee in IN_PLACE:
        tensors = _tensors(argument.value)
        return all(axes.non_overlapping_and_dense(t.layout) is False for t in tensors)
    return launch.callee == "dist.all_to_all_single"


def _refused(launch: KernelLaunch, suspects: Sequence[Argument]) -> bool:
    return launch.callee not in IN_PLACE or _over_nccl(launch, suspects[0])


def _confidence(launch: KernelLaunch) -> Confidence | None:
    match launch.kind:
        case "foreign":
            return Confidence.LOW
        case "extension":
            source = inline_source(launch.provenance)
            if not source:
                return Confidence.MEDIUM
            return Confidence.HIGH if reads_bare_memory(source) else None
        case "triton":
            return Confidence.HIGH if launch.kernel is not None else Confidence.MEDIUM
    return Confidence.HIGH


def _order_is_shared(launch: KernelLaunch) -> bool:
    """Whether a flat kernel gets arrays that share one order of axes, without gaps."""
    pointers = flat_pointers(launch.kernel) if launch.kernel is not None else None
    if pointers is None:
        return False
    orders = set()
    for argument in launch.arguments:
        if argument.parameter not in pointers:
            continue
        for one in alternatives(argument.value):
            if not isinstance(one, Tensor):
                return False
            if axes.non_overlapping_and_dense(one.layout) is not True:
                return False
            loose = one.layout.loose
            orders.add(axes.stride_order(one.layout) if loose is None else loose.swaps)
    return len(orders) == 1 and None not in orders


def _place(launch: KernelLaunch, suspects: Sequence[Argument]) -> ast.AST:
    """The launch, or the call that hands the view to the function around it."""
    callers = {id(one.caller): one.caller for one in suspects}
    if None in callers.values():
        return launch.node
    return next(iter(callers.values())) or launch.node


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def _last_step(node: ast.AST) -> str:
    """The text of what made a layout; of a long chain its end, which is what did."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= SHOWN else "..." + text[3 - SHOWN :]


def _listed(texts: Sequence[str]) -> str:
    quoted = [f"`{text}`" for text in dict.fromkeys(texts)]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _message(
    launch: KernelLaunch, suspects: Sequence[Argument], assumed: Sequence[Argument]
) -> str:
    made = {_last_step(t.born) for s in suspects for t in _tensors(s.value) if t.born}
    names = [_shown(s.text) for s in suspects]
    one = len(set(names)) == 1
    handed_in = _place(launch, suspects) is not launch.node
    if handed_in and len(made) == 1:
        names = list(made)
    told = f" (made by `{min(made)}`)" if len(made) == 1 and not made <= set(names) else ""
    message = f"{_listed(names)} {'is' if one else 'are'} not contiguous{told}, and "
    pointers = "its pointer" if one else "their pointers"
    callee = f"`{_shown(launch.callee)}`"
    if launch.kind == "collective" and _refused(launch, suspects):
        library = "NCCL" if _over_nccl(launch, suspects[0]) else "gloo"
        message += f"{library} refuses tensors that are not contiguous: {callee} raises"
    elif launch.kind == "collective":
        message += f"over gloo {callee} goes by {pointers}: it will change the wrong elements"
    elif _confidence(launch) is Confidence.LOW:
        message += f"{callee} may go by {pointers}: {_harm(launch, suspects)}"
    elif handed_in:
        inside = _listed([_shown(s.text) for s in suspects])
        message += f"reaches {callee} as {inside} by {pointers} only: {_harm(launch, suspects)}"
    else:
        message += f"{callee} sees only {pointers}: {_harm(launch, suspects)}"
    if len(assumed) == len(suspects):
        views = "it is a view" if one else "they are views"
        message += f" (assuming that what {views} of is dense)"
    return message


def _harm(launch: KernelLaunch, suspects: Sequence[Argument]) -> str:
    uses = [_used(launch, one) for one in suspects]
    reads, writes = any(r for r, _ in uses), any(w for _, w in uses)
    verb = "read and write" if reads and writes else "write to" if writes else "read"
    return f"it will {verb} the wrong elements"


def _related(launch: KernelLaunch, suspects: Sequence[Argument]) -> list[Related]:
    related: list[Related] = []
    for one in suspects:
        for tensor in _tensors(one.value):
            if tensor.born is not None and all(r.node is not tensor.born for r in related):
                text = f"`{_shown(one.text)}` gets its strides here"
                related.append(Related(tensor.born, text))
    if _place(launch, suspects) is not launch.node:
        related.append(Related(launch.node, f"`{_shown(launch.callee)}` gets the pointer here"))
    return related


def _help(launch: KernelLaunch, suspects: Sequence[Argument]) -> str:
    first = suspects[0]
    text = _shown(first.text)
    reads, writes = _used(launch, first)
    copy = _dense_copy(launch, first, text)
    if launch.kind == "collective" and writes:
        return f"work on a copy, `dense = {copy}`, and copy it back with `copy_`"
    if writes and not reads:
        return (
            "allocate it with `torch.empty(shape)` or `memory_format=torch.contiguous_format`, "
            "or pass its strides and index with them"
        )
    if first.pointer:
        return f"take the address of `{copy}`, kept in a variable while it is in use"
    if writes:
        return f"work on a copy, `dense = {copy}`, or pass its strides and index with them"
    if launch.kind in ("triton", "cupy"):
        return f"pass `{copy}`, or pass its strides and index with them"
    return f"pass `{copy}`"


def _dense_copy(launch: KernelLaunch, argument: Argument, text: str) -> str:
    libs = {tensor.lib for tensor in _tensors(argument.value)}
    if libs == {""}:
        written = ast.unparse(argument.node)
        libs = {"numpy"} if ".ctypes" in written else libs
        libs = {"cupy"} if launch.kind == "cupy" and "data_ptr" not in written else libs
    if "numpy" in libs:
        return f"np.ascontiguousarray({text})"
    return f"cupy.ascontiguousarray({text})" if "cupy" in libs else f"{text}.contiguous()"


def _used(launch: KernelLaunch, argument: Argument) -> tuple[bool, bool]:
    """Whether the launch reads the argument, and whether it writes it, as far as is seen."""
    if launch.kernel is not None:
        addresses = Addresses(launch.kernel)
        stored = argument.parameter in addresses.stored
        return argument.parameter in addresses.loaded or not stored, stored
    if launch.kind == "collective" and argument.parameter not in READ_BY_COLLECTIVES:
        return False, True
    return True, False


def _only_read(launch: KernelLaunch, argument: Argument) -> bool:
    """Whether it is certain that nothing is written to the argument."""
    seen = launch.kernel is not None or launch.kind == "collective"
    return seen and not _used(launch, argument)[1]


def _fix(launch: KernelLaunch, suspects: Sequence[Argument]) -> DraftFix | None:
    replacements = []
    for one in suspects:
        if one.pointer or one.node is launch.node or not _only_read(launch, one):
            return None
        if not isinstance(one.node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
            return None
        replacements.append(Replacement(one.node, f"{ast.unparse(one.node)}.contiguous()"))
    return DraftFix("pass a contiguous copy", tuple(replacements), Applicability.UNSAFE)
