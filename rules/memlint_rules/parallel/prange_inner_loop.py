"""MEM403: a parallel loop that a serial loop around it starts anew on each iteration."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from memlint.analysis.events import LoopNest, ProgramEnd, ProgramStart
from memlint.analysis.serial_outer import InnerParallel, inner_parallel, parallel_outside
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Confidence, Severity
from memlint.rule import Draft, DraftFix, Needs, Related, Rule
from memlint.source.model import Source


class PrangeInnerLoop(Rule):
    """A parallel loop is the inner one of a nest whose outer loop could run in parallel.

    ## What it does

    Finds, in functions that Numba compiles with `parallel=True`, a `prange` directly inside a
    serial `range` loop, where the serial loop's index is an index of the arrays that are
    stored, and no iteration of it needs what another one stored.

    ## Why it is slow

    All threads are started and waited for once for each iteration of the outer loop, for the
    work of a single row, and each thread gets a small piece of the row. Measured with Numba 0.68
    on two cores of an AMD Zen 3, `out[i, j] = a[i, j] * 2` with the rows in parallel, against
    the elements of each row: 0.01 ms against 0.3 to 0.7 ms at 256 x 256, 0.2 against 1.6 to 3.6
    ms at 1024 x 1024, 6 to 10 against 14 to 19 ms at 4096 x 4096. With more cores the threads
    take longer to meet.

    ## When it is silent

    - where the outer loop is one over time: its index is not one of the stored arrays, or what
      one iteration stores, another one reads (`u[t + 1, i] = f(u[t, i])`);
    - where something else is carried from one iteration to the next (a variable, an array that
      is updated without the index, a call that is handed one of the arrays);
    - where the body of the `prange` holds loops or calls functions with loops, so that each
      start is worth its while;
    - where the outer loop holds more than one parallel loop, has at most 16 iterations, runs
      over what there are few of (dimensions, channels), or is parallel itself (the inner
      `prange` then runs serially anyway);
    - without `parallel=True`.

    ## Example

    ```python
    import numpy as np
    from numba import njit, prange

    @njit(parallel=True)
    def brighten(image, gain):
        out = np.empty_like(image)
        for i in range(image.shape[0]):
            for j in prange(image.shape[1]):
                out[i, j] = image[i, j] * gain
        return out
    ```

    ## Use instead

    ```python
    import numpy as np
    from numba import njit, prange

    @njit(parallel=True)
    def brighten(image, gain):
        out = np.empty_like(image)
        for i in prange(image.shape[0]):
            for j in range(image.shape[1]):
                out[i, j] = image[i, j] * gain
        return out
    ```

    ## Fix safety

    The fix exchanges `range` and `prange` in the two headers. It is unsafe: that the arrays do
    not overlap cannot be seen, sums are added up in another order, and an outer loop that has
    fewer iterations than there are cores leaves some of them idle.

    ## How to confirm

    Time the function both ways after a first call that compiles it, at the real sizes and
    with the real number of threads; `function.parallel_diagnostics(level=2)` lists the loops
    that run in parallel. `memlint bench prange-inner-loop` times both forms on this machine.

    ## References

    - [Numba: explicit parallel loops](https://numba.readthedocs.io/en/stable/user/parallel.html#explicit-parallel-loops)
    """

    code, name = "MEM403", "prange-inner-loop"
    severity = Severity.WARNING
    applicability = Applicability.UNSAFE
    needs = Needs(
        {"numba"},
        {"prange", "pndindex"},
        {"parallel"},
        {"range("},
        units=[{"prange", "pndindex"}, {" range(", "=range("}],
    )

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self._source: Source | None = None
        self._nests: list[LoopNest] = []

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Forget the program before."""
        self._source, self._nests = start.source, []
        yield from ()

    def check_nest(self, nest: LoopNest) -> Iterator[Draft]:
        """Collect the nests of functions that run loops in parallel."""
        if nest.compiled is not None and nest.compiled.parallel:
            self._nests.append(nest)
        yield from ()

    def check_end(self, end: ProgramEnd) -> Iterator[Draft]:
        """One finding per parallel loop."""
        for found in inner_parallel(self._nests):
            yield self._finding(found)

    def _finding(self, found: InnerParallel) -> Draft:
        outer, inner = found.outer.variable, found.inner.variable
        text = ast.unparse(found.store.node)
        return self.finding(
            found.inner.node,
            f"on each iteration of the serial loop over `{outer}`, all threads are started and "
            f"waited for to share the short loop over `{inner}`, although the iterations over "
            f"`{outer}` could run in parallel themselves: each stores to a `{text}` of its own",
            f"run `prange` over `{outer}` and a plain `range` over `{inner}`",
            confidence=Confidence.HIGH if found.seen else Confidence.MEDIUM,
            related=[Related(getattr(found.outer.node, "iter", found.outer.node), "serial loop")],
            fix=self._fix(found),
        )

    def _fix(self, found: InnerParallel) -> DraftFix | None:
        edits = parallel_outside(found, self._source) if self._source is not None else ()
        if not edits:
            return None
        message = f"run the loop over `{found.outer.variable}` in parallel"
        return DraftFix(message, edits, Applicability.UNSAFE)

    @bench(
        "twice the elements of an array, in parallel",
        as_is="the elements of each row in parallel",
        alternative="the rows in parallel",
        needs=("numba", "cpus"),
        sizes=Sizes("rows and columns", quick=256, full=(256, 1024, 4096)),
        dtypes=("float64", "float32"),
    )
    def bench(self, size: Size) -> Pair:
        """A parallel loop inside of a serial one, and around it."""
        import numpy as np
        from numba import njit, prange

        @njit(parallel=True)
        def inner(a: Any, out: Any) -> None:
            for i in range(a.shape[0]):
                for j in prange(a.shape[1]):  # memlint: ignore[prange-inner-loop]
                    out[i, j] = a[i, j] * 2

        @njit(parallel=True)
        def outer(a: Any, out: Any) -> None:
            for i in prange(a.shape[0]):
                for j in range(a.shape[1]):
                    out[i, j] = a[i, j] * 2

        number = size.number

        def operands() -> tuple[Any, ...]:
            a = np.random.default_rng(0).random((number, number)).astype(size.dtype)
            return a, np.zeros_like(a)

        what = f"{size.dtype}, {number} x {number}"
        return Pair(inner, outer, operands, what)
