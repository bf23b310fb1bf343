"""MEM102: a matrix product that loops compute one multiplication at a time."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from memlint.analysis.contractions import MatrixProduct, Products
from memlint.analysis.elements import Element
from memlint.analysis.events import Called, Loop, LoopNest, ProgramEnd, ProgramStart
from memlint.analysis.looped_text import loop_blocks
from memlint.analysis.places.matrix_loop import may_compute_product
from memlint.analysis.values import Symbol, Tensor, alternatives
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, DraftFix, Needs, Related, Replacement, Rule

DEPTH = 3
# A product with an element. They begin with a plain character, which is found fast.
_PRODUCTS = (late_pattern(r"\][\w.()]* *\*(?!\*)"), late_pattern(r"\* *[\w.(]+\["))
_SUMMED = ("+", "-", "sum(", " for ")
# So far before a product, at most, begins the sum that it is in.
_NEAR = 400


def multiplies_in_deep_loops(text: str) -> bool:
    """Whether elements may be multiplied in loops that are nested three deep."""
    products = [
        (found.start(), line)
        for product in _PRODUCTS
        for found in product.finditer(text)
        if any(word in (line := _lines_at(text, found.start())) for word in _SUMMED)
    ]
    if not products or text.count("for ") + text.count("while ") == 0:
        return False
    if text.count("for ") >= DEPTH and any(
        text.find("sum(", max(at - _NEAR, 0), at) >= 0 for at, _ in products
    ):
        return True
    loops = [(*block, _weight(_line_at(text, block[0]))) for block in loop_blocks(text)]
    return any(
        sum(weight for start, end, weight in loops if start <= at < end) + line.count(" for ")
        >= DEPTH
        for at, line in products
    )


def _line_at(text: str, at: int) -> str:
    end = text.find("\n", at)
    return text[text.rfind("\n", 0, at) + 1 : end if end >= 0 else len(text)]


def _lines_at(text: str, at: int) -> str:
    """The line of a place, and the one before where that goes on in it."""
    line = _line_at(text, at)
    start = text.rfind("\n", 0, at)
    before = _line_at(text, start) if start > 0 else ""
    goes_on = before.partition("#")[0].rstrip().endswith(("(", "\\"))
    return before + line if goes_on else line


def _weight(head: str) -> int:
    """How many loops one may stand for."""
    return DEPTH if "product(" in head or "ndindex" in head else 1


class NaiveMatmulLoop(Rule):
    """A matrix product is computed by loops, one multiplication at a time.

    ## What it does

    Finds nests of loops that add up products of elements as a matrix product does:
    `C[i, j] += A[i, k] * B[k, j]`, with the loops in any order, in Python or compiled, with
    `for`, `while` or `np.ndindex`, with a sum that is kept in a variable and stored
    afterwards, with `C[i][j]`, with transposed operands, and as
    `sum(A[i][k] * B[k][j] for k in range(n))`. A dimension that all three arrays have (a batch,
    an attention head) may be there as well.

    ## Why it is slow

    A BLAS library works on blocks that stay in the caches and registers, with vector
    instructions and on all cores; a plain nest reads one of the operands anew from memory for
    each row, and with `k` innermost even across its rows. Measured on float64 matrices with
    Numba 0.68 at n = 1024 on two cores of an AMD Zen 3: loops in the order i, j, k 5.9 s, in the
    order i, k, j 0.19 s, tiled by hand 0.96 s, `A @ B` 0.025 s. In interpreted Python at n = 96:
    270 ms against 0.07 ms. Tiling by hand is no remedy.

    ## When it is silent

    - where something else than a sum of products is computed (`min(d, a + b)`, `or`, a
      recurrence on the array that is stored);
    - where a loop runs over a triangle, a band or a number of entries that the data say, or a
      condition skips iterations;
    - on arrays that are known to hold integers or booleans, for which no BLAS exists;
    - where one of the loops of compiled code has at most 16 iterations, or all of them in
      interpreted code;
    - in GPU kernels (`numba.cuda`, `cupyx.jit`, Triton), on lists of lists, and on
      matrix-vector products.

    ## Example

    ```python
    import numpy as np

    def forward(x, weight):
        rows, inner = x.shape
        columns = weight.shape[1]
        out = np.zeros((rows, columns))
        for i in range(rows):
            for j in range(columns):
                for k in range(inner):
                    out[i, j] += x[i, k] * weight[k, j]
        return out
    ```

    ## Use instead

    ```python
    import numpy as np

    def forward(x, weight):
        return x @ weight
    ```

    ## Fix safety

    The replacement is shown and never applied: BLAS adds up in another order, what is stored
    to must hold zeros before, and whether the loops run over the whole arrays cannot always be
    seen. In code that Numba compiles, `@` needs SciPy, operands of one floating-point type, and
    contiguous ones to be fast.

    ## How to confirm

    Replace the nest by the product, compare with `np.allclose`, and time both at the real
    sizes (compiled functions after a first call). `memlint bench naive-matmul-loop` compares
    loops, loops in another order and BLAS on this machine.

    ## References

    - Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 34
      (2008)
    - [Numba: linear algebra](https://numba.readthedocs.io/en/stable/reference/numpysupported.html#linear-algebra)
    """

    code, name = "MEM102", "naive-matmul-loop"
    severity = Severity.WARNING
    applicability = Applicability.DISPLAY
    needs = Needs(
        {"for ", "while "},
        {"numpy", "torch", "numba", "cupy", "jax"},
        {multiplies_in_deep_loops},
        units=[{multiplies_in_deep_loops}],
        places=may_compute_product,
    )
    calls = frozenset({"builtins.sum", ".append", "operator.iadd"})
    supersedes: ClassVar[tuple[str, ...]] = (
        "column-order-loop", "python-element-loop", "prange-inner-loop",
    )  # fmt: skip

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self._products = Products()

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Forget the program before."""
        self._products = Products()
        yield from ()

    def check_nest(self, nest: LoopNest) -> Iterator[Draft]:
        """Collect what loops access."""
        self._products.note_nest(nest)
        yield from ()

    def check_operation(self, called: Called) -> Iterator[Draft]:
        """Collect what makes lists."""
        self._products.note_list(called)
        yield from ()

    def check_end(self, end: ProgramEnd) -> Iterator[Draft]:
        """One finding per addition."""
        for product in self._products.found():
            yield self._finding(product)

    def _finding(self, product: MatrixProduct) -> Draft:
        known = all(_is_known(one) for one in (product.left, product.right))
        related = [Related(_header(product.loops[0]), "the loops begin here")]
        return self.finding(
            product.node,
            _message(product),
            _help(product),
            confidence=Confidence.HIGH if known else Confidence.MEDIUM,
            related=related,
            fix=_fix(product),
        )

    @bench(
        "a product of square matrices",
        as_is="compiled loops in the order i, j, k",
        alternative="a @ b",
        needs=("numba",),
        sizes=Sizes("rows and columns", quick=256, full=(64, 256, 512)),
        dtypes=("float64", "float32"),
    )
    def bench_compiled(self, size: Size) -> Pair:
        """Compiled loops against BLAS, with the threads that it takes."""
        import numpy as np
        from numba import njit

        return _product(njit(_rows_by_columns), np.matmul, size)

    @bench(
        "a product of square matrices, without BLAS",
        as_is="compiled loops in the order i, j, k",
        alternative="compiled loops in the order i, k, j",
        needs=("numba",),
        sizes=Sizes("rows and columns", quick=256, full=(64, 256, 512)),
        dtypes=("float64", "float32"),
    )
    def bench_order(self, size: Size) -> Pair:
        """Compiled loops in two orders."""
        from numba import njit

        return _product(njit(_rows_by_columns), njit(_rows_by_rows), size)

    @bench(
        "a product of square matrices",
        as_is="interpreted loops",
        alternative="a @ b",
        needs=("numpy",),
        sizes=Sizes("rows and columns", quick=32, full=(16, 32, 96)),
        dtypes=("float64", "float32"),
    )
    def bench_interpreted(self, size: Size) -> Pair:
        """Interpreted loops against BLAS."""
        import numpy as np

        return _product(_rows_by_columns, np.matmul, size)


def _rows_by_columns(a: Any, b: Any, out: Any) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = out[i, j] * 0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]  # memlint: ignore[naive-matmul-loop]
            out[i, j] = total


def _rows_by_rows(a: Any, b: Any, out: Any) -> None:
    for i in range(a.shape[0]):
        out[i, :] = 0
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                out[i, j] += a[i, k] * b[k, j]  # memlint: ignore[naive-matmul-loop]


def _product(as_is: Callable[..., Any], alternative: Callable[..., Any], size: Size) -> Pair:
    import numpy as np

    number = size.number

    def operands() -> tuple[Any, ...]:
        draw = np.random.default_rng(0)
        a, b = (draw.random((number, number)).astype(size.dtype) for _ in range(2))
        return a, b, np.zeros_like(a)

    def into(form: Callable[..., Any]) -> Callable[..., Any]:
        def run(a: Any, b: Any, out: Any) -> Any:
            form(a, b, out)
            return out

        return run

    what = f"{size.dtype}, {number} x {number}"
    return Pair(into(as_is), into(alternative), operands, what)


def _header(loop: Loop) -> ast.AST:
    node = loop.node
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return node.target
    return node.test if isinstance(node, ast.While) else node


def _is_known(element: Element) -> bool:
    return all(
        isinstance(one, Tensor) and one.dtype is not None and not one.assumed
        for one in alternatives(element.array)
    )


def _message(product: MatrixProduct) -> str:
    left, right = product.left.text, product.right.text
    names = [f"`{loop.variable}`" for loop in product.loops if loop.variable]
    loops = f"the loops over {', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "loops"
    of = f"the matrix product of `{left}` and `{right}`"
    if left == right:
        of = f"the product of `{left}` with itself"
    compiled = product.compiled is not None
    cost = (
        "compiled loops take about ten times as long as BLAS in their best order, and hundreds "
        "of times in their worst, on matrices that do not fit the caches"
        if compiled
        else "interpreted loops take hundreds to thousands of times as long as BLAS"
    )
    return f"{loops} compute {of} one multiplication at a time; {cost}"


def _help(product: MatrixProduct) -> str:
    text = _expression(product)
    advice = f"write `{text}`" if text else "write it as one `@`, or as one `einsum` or `tensordot`"
    if product.compiled is None:
        return advice
    order = [*product.rows, *product.summed, *product.columns]
    names = ", ".join(f"`{loop.variable}`" for loop in order)
    return (
        f"{advice} (in Numba's code this needs SciPy and contiguous operands of one type), or "
        f"at least nest the loops in the order {names}"
    )


def _expression(product: MatrixProduct) -> str:
    """The product in one expression, where that is plain."""
    if product.shared or len(product.loops) != DEPTH:
        return ""
    row, column, inner = product.rows[0], product.columns[0], product.summed[0]
    left = _turned(product.left, row.symbol, inner.symbol)
    right = _turned(product.right, inner.symbol, column.symbol)
    if not left or not right:
        return ""
    result = product.result
    if result is not None and _turned(result, row.symbol, column.symbol) != result.text:
        left = _turned(product.right, column.symbol, inner.symbol)
        right = _turned(product.left, inner.symbol, row.symbol)
    return f"{left} @ {right}"


def _turned(element: Element, first: Symbol, second: Symbol) -> str:
    """An array, transposed if need be so that ``first`` runs over its first axis."""
    if len(element.index) != 2:
        return ""
    axis = next(i for i, item in enumerate(element.index) if first in _symbols(item))
    return element.text if axis == 0 else f"{element.text}.T"


def _symbols(item: object) -> frozenset[Symbol]:
    return getattr(item, "symbols", frozenset())


def _fix(product: MatrixProduct) -> DraftFix | None:
    """The product in place of the nest, where the nest does nothing else."""
    node, result, text = product.node, product.result, _expression(product)
    if result is None or not text or len(result.index) != 2:
        return None
    if len({id(loop.node) for loop in product.loops}) != DEPTH:
        return None
    outer, middle, inner = (loop.node for loop in product.loops)
    match outer, middle, inner:
        case (
            ast.For(body=[second]),
            ast.For(body=[third]),
            ast.For(body=[ast.AugAssign() as only]),
        ) if second is middle and third is inner and only is node:
            sign = "-" if isinstance(only.op, ast.Sub) else "+"
            content = f"{result.text} {sign}= {text}"
        case (
            ast.For(body=[second]),
            ast.For(body=[ast.Assign(value=ast.Constant(value=0)), third, ast.Assign() as last]),
            ast.For(body=[ast.AugAssign(op=ast.Add()) as only]),
        ) if (
            second is middle
            and third is inner
            and only is node
            and product.store in last.targets
            and isinstance(last.value, ast.Name)
        ):
            content = f"{result.text}[:] = {text}"
        case _:
            return None
    message = f"let BLAS do it: `{content}`"
    return DraftFix(message, (Replacement(outer, content),), Applicability.DISPLAY)
