"""MEM211 numba-cuda-host-array."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from math import prod

from memlint.analysis.events import Called, ProgramEnd, ProgramStart
from memlint.analysis.knowledge.array_makers import is_array
from memlint.analysis.places.host_array import LAUNCH, may_launch
from memlint.analysis.values import Function, Site, Tensor, Value
from memlint.findings import Confidence, Severity
from memlint.rule import Draft, Needs, Related, Rule

# So many numbers, and so many launches, are not worth a word.
FEW, FEW_ONCE, FEW_TRIPS = 256, 16_384, 16


class NumbaCudaHostArray(Rule):
    """A Numba CUDA kernel is launched with NumPy arrays again and again.

    ## What it does

    Reports launches of `numba.cuda.jit` kernels in a loop, or several launches one after the
    other, that are handed NumPy arrays, from `numba.cuda` or the `numba-cuda` package.

    ## Why it is slow

    Numba copies each host array to the device before the launch and back after it, whether the
    kernel reads it, writes it or both, because it cannot know; and it waits for the copies. In a
    loop the same bytes cross the bus twice in each iteration. Numba itself warns: "Host array
    used in CUDA kernel will incur copy overhead to/from device".

    ## When it is silent

    - device arrays (`cuda.to_device`, `cuda.device_array`, `cuda.mapped_array`), CuPy arrays and
      tensors;
    - arguments nobody can see into, and numbers;
    - a single launch outside of loops: its input has to be copied anyway (that its output is
      copied in, too, is not worth a word);
    - launches that a loop makes only every so many iterations, loops that are known to run fewer
      than 16 times, and arrays that are known to hold no more than 256 numbers.

    ## Example

    ```python
    import numpy as np
    from numba import cuda


    @cuda.jit
    def diffuse(field, out):
        i = cuda.grid(1)
        if 0 < i < field.size - 1:
            out[i] = (field[i - 1] + field[i + 1]) / 2


    def simulate(steps):
        field, out = np.zeros(1_000_000), np.zeros(1_000_000)
        for _ in range(steps):
            diffuse[3907, 256](field, out)
        return out
    ```

    ## Use instead

    ```python
    import numpy as np
    from numba import cuda


    @cuda.jit
    def diffuse(field, out):
        i = cuda.grid(1)
        if 0 < i < field.size - 1:
            out[i] = (field[i - 1] + field[i + 1]) / 2


    def simulate(steps):
        field = cuda.to_device(np.zeros(1_000_000))
        out = cuda.device_array_like(field)
        for _ in range(steps):
            diffuse[3907, 256](field, out)
        return out.copy_to_host()
    ```

    ## Fix safety

    There is no fix: where the arrays are made and when they are read on the host decides where
    the copies belong.

    ## How to confirm

    Run with `NUMBA_CUDA_WARN_ON_IMPLICIT_COPY=1` (the default) and look for
    `NumbaPerformanceWarning`, or count host-to-device copies in a profile.

    ## References

    - [Numba for CUDA: memory management](https://nvidia.github.io/numba-cuda/user/memory.html)
    - [Numba environment variables](https://numba.readthedocs.io/en/stable/reference/envvars.html)
    """

    code = "MEM211"
    name = "numba-cuda-host-array"
    severity = Severity.WARNING
    calls = frozenset({"numba.cuda.launch"})
    needs = Needs(
        {"numba", "cuda.jit"},
        {"numpy"},
        {LAUNCH},
        units=[{"("}],
        across={"cuda.jit"},
        nearest=True,
        places=may_launch,
        callers=may_launch,
    )
    needs_device = "cuda"

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Forget the program before."""
        self._alone: list[Called] = []
        yield from ()

    def check_launch(self, call: Called) -> Iterator[Draft]:
        """A kernel launch that is handed arrays of the host."""
        arrays = _host_arrays(call)
        if not arrays:
            return
        loop = call.context.innermost()
        if loop is None and _numbers(arrays) > FEW_ONCE:
            self._alone.append(call)
        if loop is None or loop.throttled or _is_short(call) or _numbers(arrays) <= FEW:
            return
        yield self._finding(
            call,
            f"in every iteration the launch of `{_kernel(call)}` copies {_names(arrays)} to the "
            "device and back",
            [Related(loop.loop.node, "the loop around the launch")],
        )

    def check_end(self, end: ProgramEnd) -> Iterator[Draft]:
        """The same host array in several launches, one after the other."""
        by_array: dict[Site, list[Called]] = {}
        for call in self._alone:
            for site in {v.site for _, v in _host_arrays(call) if isinstance(v, Tensor) and v.site}:
                by_array.setdefault(site, []).append(call)
        for calls in by_array.values():
            places = {id(call.node): call for call in calls if call.context.function}
            if len(places) < 2:
                continue
            first, second, *_ = places.values()
            yield self._finding(
                second,
                f"the launch of `{_kernel(second)}` copies {_names(_host_arrays(second))} to the "
                "device and back, as the launch before it did",
                [Related(first.node, "the launch before")],
            )

    def _finding(self, call: Called, message: str, related: list[Related]) -> Draft:
        return self.finding(
            call.node,
            f"{message}: NumPy arrays are copied in both directions, whatever the kernel does "
            "with them",
            "copy once with `cuda.to_device(...)`, make outputs with `cuda.device_array_like(...)`"
            ", and call `copy_to_host()` after the last launch",
            confidence=Confidence.HIGH,
            related=related,
        )


def _is_short(call: Called) -> bool:
    """Whether the loops around a launch are known to run a few times only."""
    trips = [one.loop.trips for one in call.context.loops]
    return None not in trips and prod(count or 0 for count in trips) < FEW_TRIPS


def _numbers(arrays: list[tuple[str, Value]]) -> float:
    """How many numbers are copied; infinitely many where that is not known."""
    total = 0
    for _, value in arrays:
        sizes = value.sizes if isinstance(value, Tensor) else None
        if sizes is None or not all(isinstance(size, int) for size in sizes):
            return float("inf")
        total += prod(size for size in sizes if isinstance(size, int))
    return total


def _host_arrays(call: Called) -> list[tuple[str, Value]]:
    node = call.node
    if not isinstance(node, ast.Call) or len(node.args) != len(call.args.positional):
        return []
    pairs = zip(node.args, call.args.positional, strict=True)
    return [(ast.unparse(shown), value) for shown, value in pairs if is_array(value)]


def _kernel(call: Called) -> str:
    match call.receiver:
        case Function(node=ast.FunctionDef(name=name)):
            return name
    return "a kernel"


def _names(arrays: list[tuple[str, Value]]) -> str:
    shown = [f"`{text}`" for text, _ in arrays if len(text) <= 40]
    if len(shown) < len(arrays) or len(shown) > 3:
        return f"{len(arrays)} host arrays"
    return " and ".join(shown) if len(shown) < 3 else f"{shown[0]}, {shown[1]} and {shown[2]}"
