"""MEM510 diag-matmul."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from memlint.analysis.chains import MATMUL, PRODUCT, operation_of, rank_of, short
from memlint.analysis.diagonals import (
    DiagonalFactor,
    diagonal_factor,
    is_small,
    product_under_diagonal,
    rank_of_array,
)
from memlint.analysis.edits import product_for
from memlint.analysis.events import Called, ProgramEnd, ProgramStart
from memlint.analysis.places.diagonal import DIAGONAL, may_multiply_diagonal
from memlint.analysis.shown import shown
from memlint.analysis.uses import Uses, uses_in
from memlint.analysis.values import Made
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, DraftFix, Needs, Related, Replacement, Rule
from memlint.source.model import Source

_PRODUCTS = frozenset(
    {"operator.matmul", "torch.matmul", "torch.mm", "torch.bmm", ".matmul", ".mm", ".bmm", ".dot",
     "numpy.dot", "numpy.matmul"}
)  # fmt: skip
_DIAGONALS = frozenset(
    {"torch.diag", "torch.diagonal", "torch.trace", "numpy.diag", "numpy.diagonal", "numpy.trace",
     ".diag", ".diagonal", ".trace"}
)  # fmt: skip
# Transformations of space, with three or four rows.
_SPACE = late_pattern(
    r"affine|rotat|\brot\b|homogra|essential|fundamental|camera|intrinsic|\bpose|voxel|quaternion|"
    r"kabsch|procrustes|rigid|\b3, 3\)|\b3 ?x ?3\b|\b4 ?x ?4\b|det\(",
    re.IGNORECASE,
)


class DiagMatmul(Rule):
    """A product with a diagonal matrix, or a diagonal of a product, is computed in full.

    ## What it does

    Reports `torch.diag(d) @ M`, `M @ np.diag(d)` and `torch.diag_embed(d).bmm(X)`, which scale
    rows or columns by a dense n x n matrix that is zero but for its diagonal; and
    `np.diag(A @ B.T)`, `(A @ B).diagonal()` and `np.trace(A @ B)`, which compute n x n numbers
    of which n are used.

    ## Why it is slow

    The dense matrix takes n x n numbers where n would do, and the product n times as many
    operations as the scaling. On two cores of an AMD Zen 3 and with n = 2000, `np.diag(v) @ M`
    took 201 ms and `v[:, None] * M` 3.3 ms; `np.diag(A @ B.T)` 104 ms and the sum of the
    elementwise product 2.4 ms. With PyTorch 2.14 and n = 2048 the factors were 20 and 92.

    ## When it is silent

    - `diag` takes the diagonal of a matrix, or may do so: nothing tells that it is given a
      vector;
    - the matrix is known to have no more than 16 rows, or turns and scales space (rotations,
      affine maps, cameras);
    - the product is used for more than its diagonal;
    - the diagonal matrix is added, inverted or factorised, or is a sparse one.

    ## Example

    ```python
    import numpy as np


    def whiten(data, eigenvectors, eigenvalues):
        return data @ eigenvectors @ np.diag(1.0 / np.sqrt(eigenvalues))
    ```

    ## Use instead

    ```python
    import numpy as np


    def whiten(data, eigenvectors, eigenvalues):
        return data @ eigenvectors * (1.0 / np.sqrt(eigenvalues))
    ```

    ## Fix safety

    Unsafe: where a row holds infinities or NaN, the product with zeros is NaN and the scaling is
    not, and sums are rounded in another order.

    ## How to confirm

    Time both forms for the sizes in use; look for a matrix product in a profile whose operand is n
    x n with n numbers that are not zero. `memlint bench diag-matmul` measures it on your machine.

    ## References

    - [numpy.diag](https://numpy.org/doc/stable/reference/generated/numpy.diag.html)
    - [torch.diag_embed](https://docs.pytorch.org/docs/stable/generated/torch.diag_embed.html)
    """

    code = "MEM510"
    name = "diag-matmul"
    severity = Severity.WARNING
    applicability = Applicability.UNSAFE
    calls: ClassVar[frozenset[str]] = _PRODUCTS | _DIAGONALS
    needs = Needs(
        {"diag", "trace("},
        {"torch", "numpy"},
        {MATMUL, PRODUCT},
        units=[{DIAGONAL}, {MATMUL, PRODUCT}],
        places=may_multiply_diagonal,
    )

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Begin a program."""
        self._tree = start.tree
        self._told: dict[ast.AST, list[ast.AST]] = {}
        self._drafts: dict[tuple[ast.AST, int], list[Draft]] = {}
        yield from ()

    def check(self, call: Called) -> Iterator[Draft]:
        """A product or a diagonal."""
        if self._is_told(call) or _is_of_space(call):
            return
        made = operation_of(call)
        if call.name in _PRODUCTS:
            factor = diagonal_factor(made)
            if factor is not None and not (is_small(factor.vector) or is_small(factor.other)):
                self._keep(call, self._scaling(call, made, factor))
            return
        product = product_under_diagonal(made)
        if product is None or any(map(is_small, product.inputs)):
            return
        if self._is_only_use(product, made):
            self._keep(call, self._extraction(call, made, product))
        yield from ()

    def check_end(self, end: ProgramEnd) -> Iterator[Draft]:
        """What was found, each line once."""
        yield from map(_as_one, self._drafts.values())

    def _keep(self, call: Called, draft: Draft) -> None:
        self._told.setdefault(call.statement, []).append(call.node)
        self._drafts.setdefault((call.statement, call.node.lineno), []).append(draft)

    def _is_told(self, call: Called) -> bool:
        """Whether the same was said of a part of an operation, or of what it is a part of."""
        told = self._told.get(call.statement, ())
        if not told:
            return False
        uses = uses_in(self._tree)
        around = {call.node, *uses.ancestors(call.node)}
        return any(one in around or call.node in uses.ancestors(one) for one in told)

    def _is_only_use(self, product: Made, extract: Made) -> bool:
        if not isinstance(product.node, ast.expr):
            return False
        uses = uses_in(self._tree)
        if uses.parent(product.node) is None:
            return False
        return all(
            use.node is extract.node or use.kind == "attribute" for use in uses.of(product.node)
        )

    def _scaling(self, call: Called, product: Made, factor: DiagonalFactor) -> Draft:
        rows = "rows" if factor.left else "columns"
        return self.finding(
            call.node,
            f"{shown(call.node)} only scales {rows} by a diagonal matrix, but makes it as a dense "
            "n x n one and multiplies with all its zeros: n times the work and memory of a scaling",
            "multiply with the vector: `d[:, None] * M` scales rows, `M * d` columns",
            confidence=Confidence.HIGH if rank_of_array(factor.vector) == 1 else Confidence.MEDIUM,
            related=[Related(factor.maker.node, "the diagonal matrix is made here")],
            fix=_scaling_fix(call.node, factor, call.source, uses_in(self._tree)),
        )

    def _extraction(self, call: Called, extract: Made, product: Made) -> Draft:
        trace = short(extract.name) == "trace"
        used = "the sum of its diagonal" if trace else "its diagonal"
        help = (
            "use `(A * B.T).sum()`" if trace else "use `(A * B.T).sum(-1)` or `einsum('ij,ji->i')`"
        )
        return self.finding(
            call.node,
            f"the product {shown(product.node)} computes n x n numbers, of which only {used} is "
            "used: n times the work and memory",
            help,
            confidence=Confidence.HIGH,
            related=[Related(product.node, "the product")],
            fix=_extraction_fix(call.node, product, call.source, trace=trace),
        )

    @bench(
        "scales the rows of a square matrix",
        as_is="torch.diag(d) @ m",
        alternative="d[:, None] * m",
        needs=("torch",),
        sizes=Sizes("rows and columns", quick=512, full=(16, 64, 512, 1024)),
        dtypes=("float32", "float64"),
    )
    def bench_scaling(self, size: Size) -> Pair:
        """A product with a diagonal matrix."""
        import torch

        from memlint.bench.tensors import normal

        def product(d: Any, m: Any) -> Any:
            return torch.diag(d) @ m  # memlint: ignore[diag-matmul]

        def scaled(d: Any, m: Any) -> Any:
            return d[:, None] * m

        def operands() -> tuple[Any, ...]:
            return normal(size, size.number), normal(size, size.number, size.number, seed=1)

        what = f"{size.dtype}, {size.number} x {size.number}"
        return Pair(product, scaled, operands, what, settle=size.settle)

    @bench(
        "takes the diagonal of a product of square matrices",
        as_is="torch.diag(a @ b.T)",
        alternative="(a * b).sum(-1)",
        needs=("torch",),
        sizes=Sizes("rows and columns", quick=512, full=(16, 64, 512, 1024)),
        dtypes=("float32", "float64"),
    )
    def bench_diagonal(self, size: Size) -> Pair:
        """The diagonal of a product."""
        import torch

        from memlint.bench.tensors import normal

        number = size.number

        def whole(a: Any, b: Any) -> Any:
            return torch.diag(a @ b.T)  # memlint: ignore[diag-matmul]

        def diagonal(a: Any, b: Any) -> Any:
            return (a * b).sum(-1)

        def operands() -> tuple[Any, ...]:
            return normal(size, number, number), normal(size, number, number, seed=1)

        what = f"{size.dtype}, {number} x {number}"
        return Pair(whole, diagonal, operands, what, settle=size.settle)


def _as_one(drafts: list[Draft]) -> Draft:
    """The first of the drafts for one line, mended together with the others."""
    first = drafts[0]
    fixes = [draft.fix for draft in drafts if draft.fix is not None]
    if len(drafts) == 1 or len(fixes) < len(drafts):
        return first if len(drafts) == 1 else replace(first, fix=None)
    parts = tuple(part for fix in fixes for part in fix.replacements)
    return replace(first, fix=replace(fixes[0], replacements=parts))


def _is_of_space(call: Called) -> bool:
    """Whether the function around an operation speaks of transformations of space."""
    scope = call.context.function
    text = call.source.segment(scope) if scope is not None else ""
    if scope is None and isinstance(call.statement, ast.stmt):
        text = call.source.segment(call.statement)
    return bool(_SPACE.search(text) or _SPACE.search(call.context.name))


# Fixes


def _factors(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    match node:
        case ast.BinOp(left=left, op=ast.MatMult(), right=right):
            return left, right
        case ast.Call(func=ast.Attribute(attr="matmul" | "mm" | "dot"), args=[left, right]):
            return left, right
    return None


def _scaling_fix(
    node: ast.AST, factor: DiagonalFactor, source: Source, uses: Uses
) -> DraftFix | None:
    """``np.diag(v) @ M`` as ``v[:, None] * M``, where both stand in the product itself."""
    sides, maker = _factors(node), factor.maker.node
    if sides is None or not isinstance(maker, ast.Call) or len(maker.args) != 1 or maker.keywords:
        return None
    if short(factor.maker.name) != "diag" or factor.maker.name.startswith("."):
        return None
    own, other = sides if factor.left else sides[::-1]
    if own is not maker or not isinstance(node, ast.expr):
        return None
    vector, matrix = _tight(maker.args[0], source), _tight(other, source)
    if factor.left and rank_of(factor.other) != 2:
        return None  # a vector would have to be scaled without the new axis
    text = f"{vector}[:, None] * {matrix}" if factor.left else f"{matrix} * {vector}"
    text = product_for(source, node, uses.parent(node), text)
    return DraftFix("scale instead", (Replacement(node, text),), Applicability.UNSAFE)


def _extraction_fix(
    node: ast.AST, product: Made, source: Source, *, trace: bool
) -> DraftFix | None:
    sides = _factors(product.node)
    if sides is None or not isinstance(node, ast.Call):
        return None
    if not (node.args and node.args[0] is product.node) and not (
        isinstance(node.func, ast.Attribute) and node.func.value is product.node
    ):
        return None
    left, right = _tight(sides[0], source), sides[1]
    match right:
        case ast.Attribute(value=inner, attr="T"):
            turned = _tight(inner, source)
        case ast.Call(func=ast.Attribute(value=inner, attr="t"), args=[]):
            turned = _tight(inner, source)
        case _:
            turned = f"{_tight(right, source)}.T"
    end = ".sum()" if trace else ".sum(-1)"
    text = f"({left} * {turned}){end}"
    return DraftFix("sum the elementwise product", (Replacement(node, text),), Applicability.UNSAFE)


def _tight(node: ast.expr, source: Source) -> str:
    text = source.segment(node)
    if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        return text
    return f"({text})"
