"""MEM511 onehot-matmul."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, ClassVar

from memlint.analysis.chains import MATMUL, PRODUCT, operation_of, short
from memlint.analysis.events import Called, ProgramEnd, ProgramStart
from memlint.analysis.one_hot import (
    OneHot,
    is_narrow,
    maker,
    one_hot,
    rows_and_table,
    written,
)
from memlint.analysis.places.one_hot import may_multiply, may_multiply_elsewhere
from memlint.analysis.shown import shown
from memlint.analysis.uses import Uses, attributes_set, uses_in
from memlint.analysis.values import Absent, Value
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, DraftFix, Needs, Related, Replacement, Rule
from memlint.source.model import Source

_PRODUCTS = frozenset(
    {"operator.matmul", "torch.matmul", "torch.mm", ".matmul", ".mm", ".dot", "numpy.dot",
     "numpy.matmul", "torch.nn.functional.linear", "torch.einsum", "numpy.einsum"}
)  # fmt: skip
_MAKERS = frozenset({"torch.nn.functional.one_hot", ".scatter_", ".scatter", "operator.getitem"})
_CASTS = frozenset({"float", "to", "type", "half", "double", "view", "reshape", "flatten"})
_LINEAR = "torch.nn.Linear"
# ``z[np.arange(n), y] = 1``
_BY_PLACE = late_pattern(r"\[\s*(\w+\.)?arange\(.*\]\s*=\s*1")


class OnehotMatmul(Rule):
    """Rows are looked up by multiplying with a one-hot matrix.

    ## What it does

    Reports a product whose first factor is a one-hot matrix: `F.one_hot(i, n).float() @ W`,
    `np.eye(n)[labels] @ W`, `torch.zeros(b, n).scatter_(1, i, 1) @ W`, zeros that one write makes a
    one-hot matrix, and an `nn.Linear` that is given one. All of them pick rows of `W`.

    ## Why it is slow

    The one-hot matrix has a row of n numbers for each index, 8 bytes each before the cast in
    torch, and the product multiplies all of them with `W` to add up one row. For 4096 indices
    into 4000 rows of 128 numbers on two cores of an AMD Zen 3 (PyTorch 2.14, NumPy 2.4),
    `one_hot(i).float() @ E` took 175 ms, `E[i]` 0.71 ms and `F.embedding(i, E)` 0.23 ms; with
    numpy 137 against 0.6 ms.

    ## When it is silent

    - there are known to be no more than 16 classes;
    - the rows are weighted, smoothed or mixed first, so that they are no longer one-hot;
    - the one-hot matrix is transposed (sums by class) or is the second factor;
    - the one-hot matrix is used in sums or losses, not in a product.

    ## Example

    ```python
    import torch.nn.functional as F


    def look_up(tokens, table):
        return F.one_hot(tokens, table.shape[0]).float() @ table
    ```

    ## Use instead

    ```python
    import torch.nn.functional as F


    def look_up(tokens, table):
        return F.embedding(tokens, table)
    ```

    ## Fix safety

    Unsafe: an infinity or NaN anywhere in `W` makes every row of the product NaN, and only its
    own row of the lookup; gradients are added up in another order; a one-hot matrix raises for
    negative indices, a subscript does not.

    ## How to confirm

    Compare the peak memory of both forms; the one-hot matrix takes `indices * classes * 12` bytes
    with its cast to float32. `memlint bench onehot-matmul` measures it on your machine.

    ## References

    - [torch.nn.functional.embedding](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding.html)
    - [torch.nn.functional.one_hot](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.one_hot.html)
    """

    code = "MEM511"
    name = "onehot-matmul"
    severity = Severity.WARNING
    applicability = Applicability.UNSAFE
    calls: ClassVar[frozenset[str]] = _PRODUCTS | _MAKERS | {_LINEAR}
    needs = Needs(
        {"one_hot", "eye(", "identity(", "scatter", _BY_PLACE},
        {"torch", "numpy"},
        {MATMUL, PRODUCT, "inear(", "einsum"},
        units=[{"one_hot", "eye(", "identity(", "scatter", _BY_PLACE}],
        values=[{MATMUL, PRODUCT, "inear(", "einsum"}],
        nearest=True,
        places=may_multiply,
        callers=may_multiply_elsewhere,
    )

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Begin a program."""
        self._tree = start.tree
        self._layers: set[tuple[str, ast.ClassDef]] = set()
        self._made: list[tuple[Called, OneHot]] = []
        yield from ()

    def check(self, call: Called) -> Iterator[Draft]:
        """A product; or a layer or a one-hot matrix, to be kept."""
        if call.name == _LINEAR:
            self._layers.update(attributes_set(call.node, uses_in(self._tree)))
            return
        made = operation_of(call)
        if call.name in _MAKERS:
            found = maker(made)
            if found is not None and not is_narrow(found, Absent()):
                self._made.append((call, found))
            return
        factors = rows_and_table(made)
        if len(factors) != 2:
            return
        first, second = factors
        found = one_hot(first) or written(first, uses_in(self._tree))
        if found is None or is_narrow(found, second) or _is_weighted(second):
            return
        fix = None if short(call.name) == "linear" else _fix(call.node, found, call.source)
        yield self._report(call.node, found, fix)

    def check_end(self, end: ProgramEnd) -> Iterator[Draft]:
        """One-hot matrices that a linear layer is given."""
        uses = uses_in(end.tree)
        for call, found in self._made:
            for layer in self._layers_given(call.node, uses):
                yield self._report(layer, found, None)

    def _layers_given(self, node: ast.expr, uses: Uses) -> Iterator[ast.AST]:
        pending = [node]
        for _ in range(6):
            if not pending:
                return
            one = pending.pop()
            if uses.parent(one) is None:
                return
            owner = uses.class_of(one)
            for use in uses.of(one):
                if use.kind == "receiver" and use.name in _CASTS and isinstance(use.node, ast.expr):
                    pending.append(use.node)
                elif owner is not None and (use.name, owner) in self._layers:
                    yield use.node

    def _report(self, node: ast.AST, found: OneHot, fix: DraftFix | None) -> Draft:
        return self.finding(
            node,
            f"{shown(node)} picks rows by a one-hot matrix: it makes one of indices x classes and "
            "multiplies with all its zeros, for what a lookup reads directly",
            "index the matrix, `W[i]`, or use `torch.nn.functional.embedding(i, W)`; for a linear "
            "layer, `nn.Embedding` (plus its bias)",
            confidence=Confidence.HIGH,
            related=[Related(found.maker.node, "the one-hot matrix is made here")],
            fix=fix,
        )

    @bench(
        "looks 512 rows of 128 numbers up in a table",
        as_is="F.one_hot(i, n).to(table.dtype) @ table",
        alternative="F.embedding(i, table)",
        needs=("torch",),
        sizes=Sizes("rows of the table", quick=1000, full=(16, 128, 1000, 4000)),
        dtypes=("float32", "bfloat16", "float64"),
    )
    def bench(self, size: Size) -> Pair:
        """A product with a one-hot matrix, and a lookup."""
        import torch
        import torch.nn.functional as F  # noqa: N812 - as everyone calls it

        from memlint.bench.tensors import normal

        def product(indices: Any, table: Any) -> Any:
            rows = F.one_hot(indices, size.number).to(table.dtype)
            return rows @ table  # memlint: ignore[onehot-matmul]

        def lookup(indices: Any, table: Any) -> Any:
            return F.embedding(indices, table)

        def operands() -> tuple[Any, ...]:
            generator = torch.Generator().manual_seed(1)
            indices = torch.randint(size.number, (512,), generator=generator)
            return indices.to(size.device), normal(size, size.number, 128)

        what = f"{size.dtype}, 512 rows of {size.number}"
        return Pair(product, lookup, operands, what, settle=size.settle)


def _is_weighted(other: Value) -> bool:
    """Two one-hot matrices count how often classes meet: a histogram."""
    return one_hot(other) is not None


def _fix(node: ast.AST, found: OneHot, source: Source) -> DraftFix | None:
    """``F.one_hot(i, n).float() @ W`` as ``W[i]``, where all of it stands in the product."""
    match node:
        case ast.BinOp(left=left, op=ast.MatMult(), right=ast.Name() | ast.Attribute() as right):
            factor: ast.expr = left
        case ast.Call(
            func=ast.Attribute(attr="matmul" | "mm" | "dot"),
            args=[factor, ast.Name() | ast.Attribute() as right],
        ):
            pass
        case _:
            return None
    while factor is not found.maker.node:
        match factor:
            case ast.Call(func=ast.Attribute(value=inner, attr="float" | "double" | "half" | "to")):
                factor = inner
            case ast.Call(func=ast.Attribute(value=inner, attr="astype")):
                factor = inner
            case _:
                return None
    match factor:
        case ast.Call(args=[indices, *_]) if short(found.maker.name) == "one_hot":
            text = source.segment(indices)
        case ast.Subscript(slice=indices):
            text = source.segment(indices)
        case _:
            return None
    replacement = f"{source.segment(right)}[{text}]"
    return DraftFix("look the rows up", (Replacement(node, replacement),), Applicability.UNSAFE)
