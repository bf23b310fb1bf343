"""MEM104: GPU kernels whose neighbouring threads touch elements that lie a row apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from memlint.analysis.events import Called, LaneAccess, ProgramEnd, ProgramStart
from memlint.analysis.lanes import APART, TOGETHER, Judged, apart_in_source, judge, swapped_grid
from memlint.analysis.values import Const, alternatives
from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, DraftFix, Needs, Rule

MODULE = "cupy.RawModule"
KERNEL = "cupy.RawKernel"
INLINE = "torch.utils.cpp_extension.load_inline"
# The argument that the CUDA source is given by, and its position.
SOURCES = {KERNEL: ("code", 0), MODULE: ("code", 0), INLINE: ("cuda_sources", 2)}


class CudaUncoalescedIndex(Rule):
    """The fastest thread index of a GPU kernel drives an axis other than the last one.

    ## What it does

    Finds kernels of `numba.cuda` and `cupyx.jit` that index an array by two thread indices,
    of which x (`cuda.grid(2)[0]`, or what is computed from `cuda.threadIdx.x`) drives the row
    and y the column: `i, j = cuda.grid(2); out[i, j] = ...`, also through loops that stride
    over the grid and in flat arrays (`out[i * width + j]`).

    With `--min-confidence low` also kernels in CUDA source (`cupy.RawKernel`, `cupy.RawModule`,
    `load_inline`) that compute a flat index in this way.

    ## Why it is slow

    The threads of a warp follow each other along x. Where neighbours touch neighbouring
    elements, the hardware serves the whole warp with a few wide transactions; where they touch
    elements a row apart, it needs one for each thread and throws most of each away. Swapping
    the two indices of a matrix product took it from 340 to 3296 GFLOP/s at 4096 x 4096
    (SGEMM_CUDA issue 7); how much is lost depends on the GPU's caches and on the row length.

    ## When it is silent

    - where x drives the axis along which neighbours lie: `x, y = cuda.grid(2); out[y, x]`, or
      arrays in column-major order;
    - where the kernel also touches an array in the right order (transposing copies), so that
      a swap would only move the cost;
    - in kernels that go through shared memory, on shared and local arrays;
    - on arrays of at most 32 KiB, where the program shows their sizes;
    - in kernels with one index per thread, and where all launches that are seen have blocks
      of width 1 along x.

    Nothing being known of it, an array that a kernel is handed counts as row-major; such
    findings have medium confidence.

    ## Example

    ```python
    from numba import cuda

    @cuda.jit
    def scale(image, out, gain):
        i, j = cuda.grid(2)
        if i < out.shape[0] and j < out.shape[1]:
            out[i, j] = image[i, j] * gain
    ```

    ## Use instead

    ```python
    from numba import cuda

    @cuda.jit
    def scale(image, out, gain):
        j, i = cuda.grid(2)
        if i < out.shape[0] and j < out.shape[1]:
            out[i, j] = image[i, j] * gain
    ```

    ## Fix safety

    The swap of the names is shown and never applied: the grid and the block of each launch
    must be swapped with it, and these may be anywhere.

    ## How to confirm

    Profile the kernel with Nsight Compute and look at sectors per request of global loads and
    stores: 4 for 4-byte elements side by side, up to 32 where each thread needs its own.

    ## References

    - [CUDA C++ best practices guide: coalesced access to global memory](https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#coalesced-access-to-global-memory)
    - [SGEMM_CUDA issue 7](https://github.com/siboehm/SGEMM_CUDA/issues/7)
    """

    code, name = "MEM104", "cuda-uncoalesced-index"
    severity = Severity.WARNING
    applicability = Applicability.DISPLAY
    needs = Needs(
        {"numba", "cupy", "load_inline"},
        {"threadIdx", late_pattern(r"\bgrid\(\s*(?:ndim\s*=\s*)?[23]")},
        units=[
            {
                "threadIdx",
                late_pattern(r"\bgrid\(\s*(?:ndim\s*=\s*)?[23]"),
                "RawKernel",
                "RawModule",
                "load_inline",
            }
        ],
    )
    calls = frozenset(SOURCES)

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self._kernels: dict[int, list[Judged]] = {}

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Forget the program before."""
        self._kernels = {}
        yield from ()

    def check_access(self, access: LaneAccess) -> Iterator[Draft]:
        """Collect what the threads of each kernel touch."""
        self._kernels.setdefault(id(access.kernel), []).append(judge(access))
        yield from ()

    def check_end(self, end: ProgramEnd) -> Iterator[Draft]:
        """One finding per kernel, at what it stores."""
        for judged in self._kernels.values():
            apart = [one for one in judged if one.kind == APART]
            if apart and all(one.kind != TOGETHER for one in judged):
                yield self._finding(min(apart, key=_place))

    def check_source(self, called: Called) -> Iterator[Draft]:
        """A kernel that is given as CUDA source."""
        keyword, position = SOURCES[called.name]
        for one in alternatives(called.args.get(keyword, position)):
            text = one.value if isinstance(one, Const) else None
            for found in apart_in_source(text) if isinstance(text, str) else ():
                yield self.finding(
                    called.node,
                    f"in the CUDA kernel `{found.kernel}`, `{found.text}` takes the row from "
                    "`threadIdx.x`: neighbouring threads touch elements that lie a row apart",
                    "take the column from `threadIdx.x` and the row from `threadIdx.y`, and swap "
                    "the launch's grid and block with them",
                    confidence=Confidence.LOW,
                )

    def _finding(self, judged: Judged) -> Draft:
        access = judged.access
        text = ast.unparse(access.node)
        does = "load" if access.mode == "load" else "store"
        assumed = f" (assuming that `{access.array}` is row-major)" if judged.assumed else ""
        return self.finding(
            access.node,
            f"neighbouring threads {does} elements of `{text}` that lie a row apart: x, which "
            "runs fastest within a warp, drives the row, so that each thread needs a memory "
            f"transaction of its own{assumed}",
            "let x drive the last axis (`j, i = cuda.grid(2)` for `out[i, j]`) and swap the "
            "grid and block of each launch with it",
            confidence=Confidence.MEDIUM if judged.assumed else Confidence.HIGH,
            fix=_fix(access),
        )


def _place(judged: Judged) -> tuple[bool, int, int]:
    node = judged.access.node
    return (
        judged.access.mode == "load",
        getattr(node, "lineno", 0),
        getattr(node, "col_offset", 0),
    )


def _fix(access: LaneAccess) -> DraftFix | None:
    edit = swapped_grid(access.kernel)
    if edit is None:
        return None
    return DraftFix(
        f"let x drive the last axis: `{edit.content}`, with the launch's grid and block swapped",
        (edit,),
        Applicability.DISPLAY,
    )
