"""MEM304 view-after-transpose."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.guards import error_is_expected
from memlint.analysis.merging import cannot_view
from memlint.analysis.methods import from_method, method_name
from memlint.analysis.values import Tensor, alternatives
from memlint.findings import Applicability, Confidence, Severity
from memlint.rule import Draft, DraftFix, Needs, Related, Replacement, Rule
from memlint.source.model import Source

SHOWN = 40


class ViewAfterTranspose(Rule):
    """A view merges axes that a transpose has put apart in memory.

    ## What it does

    Reports `.view(shape)` and `.view_as(other)` of a tensor whose axes were exchanged
    (`transpose`, `permute`, `.t()`, `.T`, `.mT`, `movedim`, an einops pattern, or what is computed
    element by element from such a tensor), where the shape that is asked for merges axes that do
    not follow each other in memory.

    ## Why it is wrong

    A view only re-reads the same memory with other strides. Two axes can become one if the outer
    one steps over exactly one run of the inner one. After a transpose that no longer holds, and
    torch raises `RuntimeError: view size is not compatible with input tensor's size and stride`.
    Results of comparisons and of elementwise operations keep the strides of their operands, so the
    transpose may lie several statements before the view: `pred.t().eq(target)[:k].view(-1)`.

    ## When it is silent

    - The tensor is made dense in between: `.contiguous()`, `.reshape(...)`, a matrix product,
      a reduction, a softmax, `torch.cat`.
    - The shape only splits axes, adds axes of size 1 or merges axes that are neighbours in memory
      (`x.permute(0, 2, 3, 1).view(b, h * w, c)`).
    - The axis that was moved has size 1, or a second permutation restores the order.
    - `view(dtype)`; NumPy arrays, whose `view` is something else.
    - Layout or shape are not known well enough, or the order is odd on some paths only.
    - The error is caught or expected: `try`, `pytest.raises`, a test of `is_contiguous()`.

    Sizes that are not known count as other than 1, and a tensor that comes from outside as dense
    and row-major; then the confidence is medium.

    ## Example

    ```python
    def merge_heads(context):
        batch, heads, tokens, width = context.shape
        return context.transpose(1, 2).view(batch, tokens, heads * width)
    ```

    ## Use instead

    ```python
    def merge_heads(context):
        batch, heads, tokens, width = context.shape
        return context.transpose(1, 2).reshape(batch, tokens, heads * width)
    ```

    ## Fix safety

    Safe: `.reshape` gives the values that the view would have shown. It copies, which cannot be
    avoided for this shape; what is written into the result does not reach the original tensor.

    ## How to confirm

    Call the function once, or print `x.stride()` before the view.

    ## References

    - [torch.Tensor.view: which shapes are compatible](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html)
    - [view() after transpose() raises non contiguous error](https://github.com/pytorch/pytorch/issues/764)
    """

    code = "MEM304"
    name = "view-after-transpose"
    severity = Severity.ERROR
    applicability = Applicability.SAFE
    needs = Needs(
        {".view(", ".view_as("},
        {"transpose", "permute", ".t()", ".T", ".mT", "movedim", "moveaxis", "swap", "rearrange"},
        units=[
            {".view(", ".view_as("},
            {
                "transpose", "permute", ".t()", ".T", ".mT", "movedim", "moveaxis", "swapaxes",
                "swapdims", "rearrange", "einsum", "adjoint",
            },
        ],
        classwide=True,
    )  # fmt: skip
    calls: ClassVar[frozenset[str]] = frozenset({".view", ".view_as"})

    def __init__(self, options: dict[str, object] | None = None) -> None:
        super().__init__(options)
        self._tree: ast.Module | None = None

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Keep the program."""
        self._tree = start.tree
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """A view whose shape the strides do not allow, on every path."""
        if called.receiver is None or not isinstance(called.node, ast.Call):
            return
        arrays = alternatives(called.receiver)
        tensors = [one for one in arrays if isinstance(one, Tensor)]
        if len(tensors) != len(arrays):
            return
        if not all(cannot_view(one, called.name, called.args) for one in tensors):
            return
        scope = called.context.function or self._tree
        if scope is not None and error_is_expected(scope, called.node):
            return
        assumed = any(one.assumed for one in tensors)
        yield self.finding(
            from_method(called.node),
            _message(called, assumed=assumed),
            f"write `{_reshape(called.name)}`, which copies where it must",
            confidence=Confidence.MEDIUM if assumed else Confidence.HIGH,
            related=_related(tensors[0], called.node),
            fix=_fix(called.source, called.node, called.name),
        )


def _reshape(name: str) -> str:
    return ".reshape_as" if name == ".view_as" else ".reshape"


def _message(called: Called, *, assumed: bool) -> str:
    assert isinstance(called.node, ast.Call)
    function = called.node.func
    assert isinstance(function, ast.Attribute)
    what = ast.unparse(function.value)
    name = f"`{what}`" if len(what) <= SHOWN else "this tensor"
    text = (
        f"`{called.name}` merges axes of {name} that do not follow each other in memory, since "
        "they were exchanged before: it raises RuntimeError"
    )
    return f"{text} (if what comes in is row-major)" if assumed else text


def _related(tensor: Tensor, node: ast.AST) -> list[Related]:
    if tensor.born is None or tensor.born is node:
        return []
    return [Related(tensor.born, "the axes are exchanged here")]


def _fix(source: Source, call: ast.Call, name: str) -> DraftFix | None:
    place = method_name(call)
    if place is None or source.segment(place) != name[1:]:
        return None
    edit = Replacement(place, _reshape(name)[1:])
    return DraftFix(f"use `{_reshape(name)}`", (edit,), Applicability.SAFE)
