"""MEM402: iterations of a parallel loop that update the same element of an array."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from memlint.analysis.events import Called, Loop, SharedUpdate
from memlint.analysis.races import DATA, SAME, how_shared
from memlint.analysis.walking import walk
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, Needs, Related, Rule


class PrangeSharedAccumulator(Rule):
    """Iterations of a parallel loop add to the same element of an array.

    ## What it does

    Finds updates (`+=` and its like, `x[k] = x[k] + v`, `x[k] = max(x[k], v)`) in the body of
    a `numba.prange` loop of a function that is compiled with `parallel=True`, of which several
    iterations may hit the same element: `acc[0] += v`, `hist[bins[i]] += 1`, `sums[:] += row`,
    `slots[i % n] += v`, `sums[j] += x[i, j]` with an inner loop over `j`. Also `append` to a
    list that all iterations have in common.

    ## Why it is wrong

    An update loads, adds and stores. Two threads that do so at the same time both start from
    the old value, and one of the two additions is lost; Numba's documentation names these very
    forms. Measured: `acc[0] += 1.0` over 20 million iterations on two cores gave 10 million.
    The result differs from run to run and with the number of threads, and the threads pass
    the cache line of the element between them all the while, which makes the loop slower than
    a serial one. A list that is appended to may be corrupted as a whole.

    ## When it is silent

    - on reductions that Numba knows: `total += x[i]` on a variable, `sums += x[i]` on a whole
      array by its name;
    - where each iteration has an element of its own: `out[i]`, `out[i, k]`, the segment from
      `ends[i]` to `ends[i + 1]`, a part of the work that its number cuts out;
    - on arrays and lists that are made in the loop, and on a slot for each thread (see
      `false-sharing` for these);
    - on stores that do not need the old value (`out[order[i]] = v`);
    - on indices that hold each number once (`np.argsort`, `np.unique`, names such as `perm`);
    - without `parallel=True`, where `prange` is `range`, and in an inner `prange`, which runs
      serially.

    ## Example

    ```python
    import numpy as np
    from numba import njit, prange

    @njit(parallel=True)
    def histogram(bins, count):
        result = np.zeros(count, dtype=np.int64)
        for i in prange(bins.size):
            result[bins[i]] += 1
        return result
    ```

    ## Use instead

    ```python
    import numpy as np
    from numba import njit, prange

    @njit(parallel=True)
    def histogram(bins, count, workers):
        share = -(-bins.size // workers)
        parts = np.zeros((workers, count), dtype=np.int64)
        for w in prange(workers):
            own = np.zeros(count, dtype=np.int64)
            for i in range(w * share, min((w + 1) * share, bins.size)):
                own[bins[i]] += 1
            parts[w] = own
        return parts.sum(axis=0)
    ```

    ## Fix safety

    There is no automatic fix: private copies cost memory for each worker, and which of the
    ways fits (a scalar reduction, private copies, a loop in another order) depends on the
    sizes.

    ## How to confirm

    Run the function with `NUMBA_NUM_THREADS=1` and with all threads, on the same data, and
    compare; the difference shows only where two threads meet, so use large inputs. What the wrong
    form costs in time, beside right ones, `memlint bench prange-shared-accumulator` measures.

    ## References

    - [Numba: explicit parallel loops](https://numba.readthedocs.io/en/stable/user/parallel.html#explicit-parallel-loops),
      on race conditions and reductions
    """

    code, name = "MEM402", "prange-shared-accumulator"
    severity = Severity.ERROR
    needs = Needs(
        {"numba"},
        {"prange", "pndindex"},
        {"parallel"},
        {"] +=", "] -=", "] *=", "] =", "append(", late_pattern(r"\]\s*\S{1,2}=(?!=)")},
        units=[
            {"prange", "pndindex"},
            {"append(", late_pattern(r"\]\s*(?:[-+*/|&^]|//|<<|>>|\*\*)?=(?!=)")},
        ],
    )
    calls = frozenset({".append"})

    def check_update(self, update: SharedUpdate) -> Iterator[Draft]:
        """An element that more than one iteration updates."""
        how = how_shared(update)
        if how not in (SAME, DATA):
            return
        access = update.access
        text = ast.unparse(access.node)
        if how == SAME:
            which = f"the iterations of `prange` run in parallel and update the same `{text}`"
        else:
            which = (
                "the iterations of `prange` run in parallel and update the same element where "
                f"two of them come to the same index of `{text}`"
            )
        yield self.finding(
            access.node,
            f"{which}: additions are lost, and the result changes from run to run",
            _help(access.array, how, text),
            confidence=Confidence.HIGH if how == SAME else Confidence.MEDIUM,
            related=_related(update.loop),
        )

    def check_append(self, called: Called) -> Iterator[Draft]:
        """A list of all iterations that is appended to."""
        compiled = called.context.compiled
        loops = (one.loop for one in called.context.loops)
        parallel = next((loop for loop in loops if loop.kind == "prange"), None)
        if parallel is None or compiled is None or not compiled.parallel:
            return
        function = getattr(called.node, "func", None)
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            return
        name = function.value.id
        if not _contains(parallel.node, called.node) or _binds(parallel.node, name):
            return
        yield self.finding(
            called.node,
            f"the iterations of `prange` run in parallel and append to the same list `{name}`: "
            "items are lost, and the list itself may be corrupted",
            f"store into an array with one place for each iteration: `{name}[i] = ...`",
            related=_related(parallel),
        )

    @bench(
        "a histogram in parallel; the shared one comes out wrong",
        as_is="one histogram for all threads",
        alternative="one for each thread, added up afterwards",
        needs=("numba", "cpus"),
        sizes=Sizes("numbers", quick=1_000_000, full=(100_000, 1_000_000, 10_000_000)),
    )
    def bench_histogram(self, size: Size) -> Pair:
        """Bins that threads share, against bins of their own."""
        import numpy as np
        from numba import njit, prange

        @njit(parallel=True)
        def shared(bins: Any, result: Any) -> None:
            for i in prange(bins.size):
                result[bins[i]] += 1  # memlint: ignore[prange-shared-accumulator]

        @njit(parallel=True)
        def apart(bins: Any, parts: Any) -> None:
            share = -(-bins.size // parts.shape[0])
            for w in prange(parts.shape[0]):
                own = np.zeros(parts.shape[1], dtype=np.int64)
                for i in range(w * share, min((w + 1) * share, bins.size)):
                    own[bins[i]] += 1
                parts[w] = own

        def of_each(bins: Any) -> Any:
            parts = np.zeros((max(2, size.threads), BINS), dtype=np.int64)
            apart(bins, parts)
            return parts.sum(axis=0)

        return _histograms(_once(shared), of_each, size)

    @bench(
        "a histogram; the shared one comes out wrong",
        as_is="in parallel, one for all threads",
        alternative="in one thread",
        needs=("numba", "cpus"),
        sizes=Sizes("numbers", quick=1_000_000, full=(100_000, 1_000_000, 10_000_000)),
    )
    def bench_serial(self, size: Size) -> Pair:
        """Bins that threads share, against a single thread."""
        from numba import njit, prange

        def kernel(bins: Any, result: Any) -> None:
            for i in prange(bins.size):
                result[bins[i]] += 1  # memlint: ignore[prange-shared-accumulator]

        # Without ``parallel=True``, ``prange`` is ``range``.
        return _histograms(_once(njit(parallel=True)(kernel)), _once(njit(kernel)), size)

    @bench(
        "a sum in parallel; the shared one comes out wrong",
        as_is="acc[0] += x[i]",
        alternative="acc += x[i], of which each thread has a copy",
        needs=("numba", "cpus"),
        sizes=Sizes("numbers", quick=1_000_000, full=(100_000, 1_000_000, 10_000_000)),
    )
    def bench_sum(self, size: Size) -> Pair:
        """One element: wrong, though it may be kept in a register and cost no time."""
        import numpy as np
        from numba import njit, prange

        @njit(parallel=True)
        def shared(x: Any, acc: Any) -> None:
            for i in prange(x.size):
                acc[0] += x[i]  # memlint: ignore[prange-shared-accumulator]

        @njit(parallel=True)
        def reduced(x: Any) -> Any:
            acc = 0.0
            for i in prange(x.size):
                acc += x[i]
            return acc

        def operands() -> tuple[Any, ...]:
            return (np.random.default_rng(0).random(size.number),)

        def of_all(x: Any) -> Any:
            acc = np.zeros(1)
            shared(x, acc)
            return float(acc[0])

        return Pair(of_all, reduced, operands, f"{size.number} numbers", comparable=False)


BINS = 64


def _once(kernel: Callable[..., Any]) -> Callable[[Any], Any]:
    import numpy as np

    def run(bins: Any) -> Any:
        result = np.zeros(BINS, dtype=np.int64)
        kernel(bins, result)
        return result

    return run


def _histograms(as_is: Callable[..., Any], alternative: Callable[..., Any], size: Size) -> Pair:
    import numpy as np

    def operands() -> tuple[Any, ...]:
        return (np.random.default_rng(0).integers(0, BINS, size.number),)

    return Pair(
        as_is, alternative, operands, f"{size.number} numbers", rotate=False, comparable=False
    )


def _help(array: str, how: str, text: str) -> str:
    if text.endswith(("[:]", "[...]", "[:, :]")):
        return f"leave out the slice: of `{array} += ...` Numba keeps a copy for each thread"
    if how == DATA:
        return (
            f"give each worker a `{array}` of its own and add them up after the loop, or loop "
            "over the elements that are updated and let each iteration gather its own"
        )
    return (
        "add to a variable instead, or to a whole array by its name, of which Numba keeps a "
        "copy for each thread (`total += ...`), or give each iteration an element of its own"
    )


def _related(loop: Loop) -> list[Related]:
    node = getattr(loop.node, "iter", None)
    return [Related(node, "the iterations of this loop run in parallel")] if node else []


def _contains(outer: ast.AST, node: ast.AST) -> bool:
    return any(inner is node for inner in walk(outer))


def _binds(loop: ast.AST, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in walk(loop)
    )
