"""MEM309 njit-strided-argument."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from memlint.analysis.events import Access, LoopNest, ProgramStart
from memlint.analysis.strided_arguments import calls_that_hand_over, is_strided_walk
from memlint.analysis.uses import uses_in
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Confidence, Severity
from memlint.rule import Draft, Needs, Related, Rule

NUMBA = frozenset({"njit", "jit", "generated_jit", "stencil"})


class NjitStridedArgument(Rule):
    """A function that Numba compiled is called again and again with a strided view.

    ## What it does

    Reports calls, in a loop, of a compiled function of this file with a view whose elements are
    not next to each other along the axis that its innermost loop walks: a column, `x[::2]`, a
    transposed array.

    ## Why it is slow

    Numba compiles one more version of the function, for an array of any layout. It multiplies
    with strides for every element, cannot use vector instructions, and reads a whole line of
    memory for each number. Measured with Numba 0.68 on an AMD Zen 3: a sum over a view of stride
    2 was 2.8 to 6.5 times slower than over a dense array with `fastmath`, a scaling 1.5 to 3.2
    times, and a walk over the rows of a transposed array 8 times (136 against 17 ms).

    Off by default: a copy costs as much as one pass over the view, so that it depends on how
    often the function is called with it.

    ## When it is silent

    - the view is handed over once, outside of loops;
    - it is dense, or the function walks it in its own order;
    - its layout is not known.

    ## Example

    ```python
    import numpy as np
    from numba import njit


    @njit
    def total(values):
        result = 0.0
        for i in range(values.shape[0]):
            result += values[i]
        return result


    def totals(count):
        column = np.zeros((100000, 32))[:, 3]
        return [total(column) for _ in range(count)]
    ```

    ## Use instead

    ```python
    import numpy as np
    from numba import njit


    @njit
    def total(values):
        result = 0.0
        for i in range(values.shape[0]):
            result += values[i]
        return result


    def totals(count):
        column = np.ascontiguousarray(np.zeros((100000, 32))[:, 3])
        return [total(column) for _ in range(count)]
    ```

    ## Fix safety

    There is no fix: whether the copy pays depends on how often it is used, and a function that
    writes to its argument would write to the copy.

    ## How to confirm

    `total.signatures` lists the layouts that were compiled: `C`, `F` or `A` for any. Time the
    loop with and without `np.ascontiguousarray` before it; `memlint bench njit-strided-argument`
    does so for 10 calls, the copy included.

    ## References

    - [Numba types of arrays](https://numba.readthedocs.io/en/stable/reference/types.html#arrays)
    """

    code = "MEM309"
    name = "njit-strided-argument"
    severity = Severity.INFO
    default_on = False
    needs = Needs({"numba"}, {"jit", "vectorize", "stencil"}, {"[", ".T", "transpose"})

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Keep the tree, to ask it where views go."""
        self._tree = start.tree
        yield from ()

    def check(self, nest: LoopNest) -> Iterator[Draft]:
        """A compiled nest that walks a view of its caller."""
        if nest.compiled is None or nest.compiled.by not in NUMBA or not nest.called:
            return
        for access in nest.accesses:
            if not is_strided_walk(access, nest):
                continue
            born = access.value.born  # type: ignore[attr-defined]
            for call, argument in calls_that_hand_over(born, nest, uses_in(self._tree)):
                yield self._report(call, argument, born, access)

    def _report(self, call: ast.AST, argument: ast.expr, born: ast.AST, access: Access) -> Draft:
        return self.finding(
            call,
            f"`{ast.unparse(argument)}` is a strided view: the compiled function takes its "
            "version for any layout and reads a line of memory for each number, in every call "
            "of this loop",
            "copy it once before the loop: `np.ascontiguousarray(...)`, or keep the data in the "
            "order in which it is walked",
            confidence=Confidence.MEDIUM,
            related=[
                Related(born, "the view is made here"),
                Related(access.node, "and walked here"),
            ],
        )

    @bench(
        "a compiled function with fastmath adds up a view, 10 times",
        as_is="x[::2]",
        alternative="np.ascontiguousarray(x[::2])",
        needs=("numba",),
        sizes=Sizes("elements", quick=100_000, full=(1000, 100_000, 10_000_000)),
        dtypes=("float64", "float32"),
    )
    def bench_every_other(self, size: Size) -> Pair:
        """Every other element: no vector instructions, half of each line."""
        return _summed(size, lambda make: make((size.number, 2))[:, 0], fastmath=True)

    @bench(
        "a compiled function adds up a column, 10 times",
        as_is="x[:, 3] of 32 columns",
        alternative="np.ascontiguousarray(x[:, 3])",
        needs=("numba",),
        sizes=Sizes("elements", quick=100_000, full=(1000, 100_000, 1_000_000)),
        dtypes=("float64", "float32"),
        quick=False,
    )
    def bench_column(self, size: Size) -> Pair:
        """A column: a line of memory for each element."""
        return _summed(size, lambda make: make((size.number, 32))[:, 3], fastmath=False)

    @bench(
        "a compiled function adds up rows, 10 times",
        as_is="x.T",
        alternative="np.ascontiguousarray(x.T)",
        needs=("numba",),
        sizes=Sizes("rows and columns", quick=1024, full=(256, 1024, 4096)),
        dtypes=("float64", "float32"),
    )
    def bench_transposed(self, size: Size) -> Pair:
        """A transposed array, walked along its rows."""
        from numba import njit

        @njit
        def total(values: Any) -> float:
            result = 0.0
            for i in range(values.shape[0]):
                for j in range(values.shape[1]):
                    result += values[i, j]
            return result

        shape = (size.number, size.number)
        what = f"{size.number} x {size.number}"
        return _handed_over(total, size, lambda make: make(shape).T, what)


CALLS = 10

_Make = Callable[[tuple[int, int]], Any]


def _summed(size: Size, view: Callable[[_Make], Any], *, fastmath: bool) -> Pair:
    from numba import njit

    @njit(fastmath=fastmath)
    def total(values: Any) -> float:
        result = 0.0
        for i in range(values.shape[0]):
            result += values[i]
        return result

    return _handed_over(total, size, view, f"{size.number} elements")


def _handed_over(
    function: Callable[[Any], float], size: Size, view: Callable[[_Make], Any], what: str
) -> Pair:
    import numpy as np

    def make(shape: tuple[int, int]) -> Any:
        return np.random.default_rng(0).random(shape).astype(size.dtype)

    def operands() -> tuple[Any, ...]:
        strided = view(make)
        return strided.base, strided, np.ascontiguousarray(strided)

    return Pair(
        lambda base, strided, dense: function(strided),
        lambda base, strided, dense: function(dense),
        operands,
        f"{size.dtype}, {what}",
        conversion=lambda base, strided, dense: np.ascontiguousarray(strided),
        uses=CALLS,
    )
