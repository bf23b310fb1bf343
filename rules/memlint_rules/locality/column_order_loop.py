"""MEM101: loops that walk across memory, although their order could be the other way round."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from memlint.analysis.events import LoopNest, ProgramEnd, ProgramStart
from memlint.analysis.exchange import exchanged
from memlint.analysis.locality import (
    Walk,
    itemsize,
    long_loops,
    size_text,
    walk,
    worth_telling,
)
from memlint.analysis.places.column import may_walk_columns
from memlint.analysis.slices import ColumnRead, column_reads
from memlint.analysis.values import Symbol
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, DraftFix, Needs, Related, Rule, Word
from memlint.source.model import Source

LINE = 64
LONG_ROW = 1024

_INDEX = late_pattern(r"\[(?:\.\.\.|:),\s*([A-Za-z_]\w*)")
_METHODS = tuple(
    late_pattern(rf"{name}\(\s*(?:[\w.]+,\s*)?(?:dim\s*=\s*)?-?1\b")
    for name in ("select", "unbind", "narrow")
)
_TRANSPOSED = late_pattern(r" in [^\n]*\.m?T\b")


def _takes_columns(text: str) -> bool:
    """Whether a function may take one column after the other: `[:, j]` with an index that a
    loop counts, `in x.T`, or a method on the second axis."""
    # Patterns that begin with plain characters are found at the speed of these.
    if any(
        re.search(rf"for [^\n]*\b{name}\b[^\n]* in ", text) or re.search(rf"{name} *[+-]= ", text)
        for name in set(_INDEX.findall(text))
    ):
        return True
    if "take(" in text or any(method.search(text) for method in _METHODS):
        return True
    return _TRANSPOSED.search(text) is not None


# What a width of at least 1024 is written with; years in texts are none.
_WIDTH = late_pattern(r"\b(?!199\d\b|20[12]\d\b)\d[\d_]{3,}|\d\s*(?:\*|<<)\s*\d|\*\* ?\d")
# What makes an array whose width can be known.
_MAKERS: frozenset[Word] = frozenset(
    {
        "zeros", "ones", "empty", "full", "rand", "normal(", "uniform(", "integers(", "eye(",
        late_pattern(r"reshape\([^)\n]*\d{4}"), late_pattern(r"view\([^)\n]*\d{4}"),
    }
)  # fmt: skip
_COMPILERS: frozenset[Word] = frozenset({"jit", "vectorize", "cfunc", "numba"})
# ``a[i, j]``, ``a[i][j]``, ``a[place]``
_ELEMENT = late_pattern(r"[\w\])]\[")


class ColumnOrderLoop(Rule):
    """The inner loop of a compiled nest walks across the rows of an array, not along them.

    ## What it does

    Finds nests of loops that Numba compiles (`njit`, `jit`, `guvectorize`, `cfunc`,
    `jitclass`, `jit_module`, in decorator and call form; `for`, `while`, `np.ndindex`) whose
    inner loop drives an axis that is not the one along which neighbours lie in memory, while
    an outer loop drives that one. In a row-major array this is `a[i, j]` with `i` innermost,
    in a column-major one `a[i, j]` with `j` innermost.

    Also, as an information only, Python loops that take one whole column after the other
    (`a[:, j]`, `for col in a.T`, `t.select(1, j)`, `t.unbind(1)`) out of an array that is
    known to have 1024 columns or more.

    ## Why it is slow

    Each step of the inner loop lands on another cache line, of which it uses a single element; with
    8-byte elements that is an eighth of what is moved. The compiler cannot use vector instructions
    either. Measured with Numba on an AMD Zen 3, column order over row order, on float64 with `b[i,
    j] = a[i, j] * 2`: 2.8x at 64 x 64, 21x at 128, 7.6x at 1000, 28x at 1024, 10x at 2000, 23x at
    4096. A row length that is a power of two is much the worst, because the lines of one column
    then compete for the same few places of the cache. Loops over column slices in Python lose 1.2x
    to 1.5x at 256 columns, 3x to 4.7x at 1024 and 12x to 14x at 4096.

    ## When it is silent

    - in code that the interpreter runs, except for whole column slices: its own cost per
      element hides the order of the loop;
    - where an access of the same nest already runs along memory (transposing copies, matrix
      products), and where an index mixes both loops (diagonals, wavefronts);
    - where one of the loops has at most 16 iterations, or an axis at most a few elements,
      and where the whole array fits the first-level cache;
    - where the bounds of one loop depend on the other's index (triangular nests), and inside
      tiles, windows and segments;
    - where the body calls array functions, functions with loops, or functions that cannot be
      seen, and where the outer loop holds a deeper nest: the time goes there;
    - where the layout fits: `order="F"`, `np.asfortranarray`, types such as
      `float64[::1, :]`, transposed views, and any caller in the file that hands over such
      an array;
    - on GPUs, where neighbouring threads and not neighbouring iterations should meet
      neighbouring elements.

    Nothing being known of it, a parameter counts as row-major; such findings have medium
    confidence and say so.

    ## Example

    ```python
    import numpy as np
    from numba import njit

    @njit
    def scale(a, out):
        for j in range(a.shape[1]):
            for i in range(a.shape[0]):
                out[i, j] = a[i, j] * 2.0

    def run():
        a = np.ones((4096, 4096))
        out = np.empty((4096, 4096))
        scale(a, out)
        return out
    ```

    ## Use instead

    ```python
    import numpy as np
    from numba import njit

    @njit
    def scale(a, out):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                out[i, j] = a[i, j] * 2.0

    def run():
        a = np.ones((4096, 4096))
        out = np.empty((4096, 4096))
        scale(a, out)
        return out
    ```

    ## Fix safety

    The fix swaps the two loop headers. It is offered where the nest is perfect, its body only
    stores and adds up, each iteration stores to a place of its own, and nothing else of the
    stored arrays is read. It is unsafe: sums of floating-point numbers are taken in another
    order, and whether two of the arrays overlap cannot be seen.

    ## How to confirm

    Time the kernel (after a first call that compiles it) against the version with the loops
    swapped, at the real array sizes; on Linux, compare `perf stat -e L1-dcache-load-misses`.
    `memlint bench column-order-loop` shows what this machine makes of the order.

    ## References

    - Intel 64 and IA-32 Architectures Optimization Reference Manual, on loop interchange and
      on accesses to the same cache set
    - Numba issue 1241, a stencil whose loops walk the columns
    """

    code, name = "MEM101", "column-order-loop"
    severity = Severity.WARNING
    applicability = Applicability.UNSAFE
    needs = Needs(
        {"for ", "while "},
        {"numba", "[:,", "[...,", ".T", ".mT", "select(", "unbind(", "narrow(", "take("},
        {"numba", _takes_columns},
        {"numba", "numpy", "torch"},
        {"numba", _WIDTH},
        {"numba", *_MAKERS},
        units=[{_takes_columns, _ELEMENT}],
        values=[{*_MAKERS, *_COMPILERS}, {_WIDTH, *_COMPILERS}],
        nearest=True,
        places=may_walk_columns,
        callers=may_walk_columns,
        # It compiles all functions of its module.
        whole={"jit_module"},
    )
    # Of slots that lie side by side because the columns run in parallel, the order is the cause.
    supersedes: ClassVar[tuple[str, ...]] = (
        "prange-inner-loop", "python-element-loop", "false-sharing",
    )  # fmt: skip

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self._source: Source | None = None
        self._bodies: dict[Symbol, list[tuple[Walk, LoopNest]]] = {}
        # The loops that are long in some call of their function, and those that are short.
        self._long: set[Symbol] = set()
        self._short: set[Symbol] = set()
        # How many long loops are nested in a loop, and the loops whose bodies call much else.
        self._below: dict[Symbol, int] = {}
        self._heavy: set[Symbol] = set()
        self._columns: dict[Symbol, ColumnRead] = {}

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Forget the program before."""
        self.__init__(self._options)  # type: ignore[misc]
        self._source = start.source
        yield from ()

    def check_nest(self, nest: LoopNest) -> Iterator[Draft]:
        """Collect how each access walks; which of them are told is decided at the end."""
        if nest.compiled is None:
            for read in column_reads(nest):
                self._columns.setdefault(read.loop.symbol, read)
        else:
            long = [loop.symbol for loop in long_loops(nest.loops)]
            if nest.called:
                self._long.update(long)
                self._short.update({loop.symbol for loop in nest.loops}.difference(long))
            for place, symbol in enumerate(long):
                self._below[symbol] = max(self._below.get(symbol, 0), len(long) - 1 - place)
            if nest.heavy and long:
                self._heavy.add(long[-1])
            for access in nest.accesses:
                found = walk(access, nest)
                if found is not None and found.kind != "neutral":
                    self._bodies.setdefault(found.inner.symbol, []).append((found, nest))
        yield from ()

    def check_end(self, end: ProgramEnd) -> Iterator[Draft]:
        """One finding per loop that walks along memory from outside."""
        by_outer: dict[Symbol, list[tuple[Walk, LoopNest]]] = {}
        for inner, seen in self._bodies.items():
            # Calls in the program tell more than what any other caller might hand over.
            walks = [pair for pair in seen if pair[1].called] or seen
            if self._below[inner] or inner in self._heavy:
                continue
            if any(found.kind != "strided" for found, _ in walks):
                continue
            for found, nest in walks:
                if found.outer is None or self._works_elsewhere(found, nest):
                    continue
                if not nest.called and {inner, found.outer.symbol} & (self._short - self._long):
                    continue
                if worth_telling(found, nest):
                    by_outer.setdefault(found.outer.symbol, []).append((found, nest))
        for walks in by_outer.values():
            yield self._nest_finding(walks)
        for read in self._columns.values():
            yield self._column_finding(read)

    def _works_elsewhere(self, found: Walk, nest: LoopNest) -> bool:
        """Whether the outer loop also holds a deeper nest or a call of a function with loops,
        which is where the time goes."""
        assert found.outer is not None
        if found.outer.symbol in self._heavy:
            return True
        long = [loop.symbol for loop in long_loops(nest.loops)]
        outer = found.outer.symbol
        depth = len(long) - 1 - long.index(outer) if outer in long else len(long)
        return self._below.get(outer, 0) > depth

    # Compiled nests

    def _nest_finding(self, walks: list[tuple[Walk, LoopNest]]) -> Draft:
        first = min(walks, key=lambda pair: _place(pair[0].access.node))[0]
        same = [pair for pair in walks if pair[0].access.node is first.access.node]
        known = [pair for pair in same if not pair[0].assumed]
        best, nest = (known or same)[0]
        return self.finding(
            best.access.node,
            _message(best),
            _help(best),
            confidence=Confidence.HIGH if known else Confidence.MEDIUM,
            related=_related(best),
            fix=self._swap(best, nest, walks),
        )

    def _swap(
        self, best: Walk, nest: LoopNest, walks: list[tuple[Walk, LoopNest]]
    ) -> DraftFix | None:
        inner, outer = best.inner, best.outer
        one_body = len({found.inner.symbol for found, _ in walks}) == 1
        if outer is None or self._source is None or nest.loops[-1] is not inner or not one_body:
            return None
        replacements = exchanged(outer, inner, nest.accesses, self._source)
        if not replacements:
            return None
        message = f"make `{outer.variable}` the inner loop"
        return DraftFix(message, replacements, Applicability.UNSAFE)

    # Columns taken from Python

    def _column_finding(self, read: ColumnRead) -> Draft:
        size = itemsize(read.dtype)
        used = f": {min(LINE, size)} of the {LINE} bytes of each cache line" if size else ""
        text = ast.unparse(read.node)
        does = "writes" if read.writes else "reads"
        column = f"a column of a row-major array of {read.width} columns{used}"
        if read.iterates:
            message = f"each item of `{text}` is {column}"
        else:
            message = f"each `{text}` {does} {column}"
        made = []
        if read.made is not None:
            made.append(Related(read.made, "the array is made here"))
        return self.finding(
            read.node, message, _column_help(read), severity=Severity.INFO, related=made
        )

    @bench(
        "a compiled loop writes twice the elements of a row-major array",
        as_is="columns in the outer loop",
        alternative="rows in the outer loop",
        needs=("numba",),
        sizes=Sizes("rows and columns", quick=1024, full=(64, 256, 1000, 1024, 2000, 2048, 4096)),
        dtypes=("float64", "float32"),
    )
    def bench_compiled(self, size: Size) -> Pair:
        """Compiled loops."""
        from numba import njit

        @njit
        def by_columns(a: Any, out: Any) -> None:
            for j in range(a.shape[1]):
                for i in range(a.shape[0]):
                    out[i, j] = a[i, j] * 2  # memlint: ignore[column-order-loop]

        @njit
        def by_rows(a: Any, out: Any) -> None:
            for i in range(a.shape[0]):
                for j in range(a.shape[1]):
                    out[i, j] = a[i, j] * 2

        return _over_a_square(by_columns, by_rows, size)

    @bench(
        "a Python loop takes one slice of a row-major array after the other",
        as_is="a[:, j].sum()",
        alternative="a[i, :].sum()",
        needs=("numpy",),
        sizes=Sizes("rows and columns", quick=4096, full=(256, 1024, 4096, 8192)),
        dtypes=("float32", "float64"),
    )
    def bench_slices(self, size: Size) -> Pair:
        """Whole columns, from Python."""

        def by_columns(a: Any, out: Any) -> None:
            for j in range(a.shape[1]):
                out[j, 0] = a[:, j].sum()

        def by_rows(a: Any, out: Any) -> None:
            for i in range(a.shape[0]):
                out[i, 0] = a[i, :].sum()

        return replace(_over_a_square(by_columns, by_rows, size), comparable=False)

    @bench(
        "a pure-Python loop doubles single elements: the interpreter hides the order",
        as_is="columns in the outer loop",
        alternative="rows in the outer loop",
        needs=("numpy",),
        sizes=Sizes("rows and columns", quick=128, full=(128, 512)),
        dtypes=("float64", "float32"),
    )
    def bench_interpreted(self, size: Size) -> Pair:
        """Elements, from Python: here the order makes no difference."""

        def by_columns(a: Any, out: Any) -> None:
            for j in range(a.shape[1]):
                for i in range(a.shape[0]):
                    out[i, j] = a[i, j] * 2

        def by_rows(a: Any, out: Any) -> None:
            for i in range(a.shape[0]):
                for j in range(a.shape[1]):
                    out[i, j] = a[i, j] * 2

        return _over_a_square(by_columns, by_rows, size)


def _over_a_square(by_columns: Any, by_rows: Any, size: Size) -> Pair:
    import numpy as np

    number = size.number

    def operands() -> tuple[Any, ...]:
        a = np.random.default_rng(0).random((number, number)).astype(size.dtype)
        return a, np.zeros_like(a)

    nbytes = 2 * number * number * np.dtype(size.dtype).itemsize
    what = f"{size.dtype}, {number} x {number}"
    return Pair(by_columns, by_rows, operands, what, nbytes=nbytes)


def _column_help(read: ColumnRead) -> str:
    if read.writes:
        return (
            f"give `{read.array}` its axes the other way round and write whole rows, or allocate "
            'it with `order="F"`'
        )
    axis = "dim" if read.torch else "axis"
    every = f"work on all columns at once (`{axis}=0`), or copy once before the loop: "
    if read.iterates and isinstance(read.node, ast.Call):
        return every + "unbind the first axis of `x.t().contiguous()`"
    turned = read.array if read.iterates else f"{read.array}.{'t()' if read.torch else 'T'}"
    return every + (
        f"`{turned}.contiguous()`" if read.torch else f"`np.ascontiguousarray({turned})`"
    )


def _place(node: ast.AST) -> tuple[int, int]:
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))


def _message(found: Walk) -> str:
    access, layout = found.access, found.layout
    assert layout is not None
    assert layout.sizes is not None
    rank = len(layout.sizes)
    line = ("row" if found.fast == rank - 1 else "column") if rank == 2 else "slice"
    length = size_text(layout.sizes[found.fast]) if rank == 2 else ""
    elements = f" ({length} elements)" if length.isdigit() else f" (`{length}` elements)"
    text = f"`{ast.unparse(access.node)}`: the inner loop `{found.inner.variable}` steps a whole "
    text += f"{line}{elements if length else ''} at a time and "
    size = itemsize(found.dtype)
    if size is None:
        text += "touches another cache line each time"
    else:
        text += f"uses {min(LINE, size * found.together)} of the {LINE} bytes of each cache line"
        row = int(length) * size if length.isdigit() else 0
        if row >= LONG_ROW and row & (row - 1) == 0:
            text += (
                f"; the {line} is {row} bytes long, a power of two, where cache sets collide most"
            )
    if found.assumed:
        behind = "" if _row_major(found) else "the array behind "
        text += f" (assuming that {behind}`{access.array}` is row-major)"
    return text


def _help(found: Walk) -> str:
    inner, outer, array = found.inner, found.outer, found.access.array
    assert outer is not None
    dense = f"np.ascontiguousarray({array}{'.T' if _row_major(found) else ''})"
    if outer.kind == "prange":
        return (
            f"run `prange` over the rows: make `{inner.variable}` the outer loop and "
            f"`{outer.variable}` the inner one, or copy once: `{dense}`"
        )
    body = outer.node.body if isinstance(outer.node, (ast.For, ast.While)) else []
    counters = isinstance(outer.node, ast.While)
    if inner.node is not outer.node and len(body) > 1 and not counters:
        return (
            f"keep what the body holds for each `{outer.variable}` in an array, so that "
            f"`{outer.variable}` can be the inner loop, or copy once: `{dense}`"
        )
    return (
        f"make `{outer.variable}` the inner loop and `{inner.variable}` the outer one (sums of "
        "floating-point numbers change their order; check that no iteration needs what a later "
        "one stores)"
    )


def _row_major(found: Walk) -> bool:
    layout = found.layout
    return layout is not None and layout.sizes is not None and found.fast == len(layout.sizes) - 1


def _related(found: Walk) -> list[Related]:
    related = []
    outer = found.outer
    if outer is not None and outer.node is not found.inner.node:
        node = outer.node.target if isinstance(outer.node, ast.For) else outer.node
        related.append(Related(node, f"`{outer.variable}` walks along memory, in the outer loop"))
    array = found.array
    made = None
    if array is not None:
        made = array.born or (array.site.node if array.site is not None else None)
    if made is not None and hasattr(made, "lineno"):
        related.append(Related(made, f"`{found.access.array}` gets its layout here"))
    return related
