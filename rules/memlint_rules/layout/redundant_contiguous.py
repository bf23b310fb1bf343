"""MEM305 redundant-contiguous."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from memlint.analysis.copies import (
    Copy,
    already_dense,
    copies_among,
    deliberate,
    is_plain_copy,
    made_in_scope_of,
    mask_given,
    only_taken_by,
    reshape_copies,
    taken_in_place,
)
from memlint.analysis.elementwise_copies import ELEMENTWISE, taken_element_by_element
from memlint.analysis.events import Called, ProgramEnd, ProgramStart
from memlint.analysis.knowledge import Args
from memlint.analysis.methods import from_method
from memlint.analysis.snapshots import Snapshots
from memlint.analysis.uses import Uses, uses_in
from memlint.analysis.values import Made, Tensor, alternatives
from memlint.findings import Applicability, Confidence, Severity
from memlint.rule import Draft, DraftFix, Needs, Related, Replacement, Rule
from memlint.source.model import Source
from memlint.tracer.operands import is_dense_copy, is_large, spell
from memlint.tracer.records import Asked, Operation
from memlint.tracer.sightings import Claim, Part, Sighting

NN = "torch.nn.functional."
ATTENTION = f"{NN}scaled_dot_product_attention"
PRODUCTS = frozenset(
    {"torch.matmul", "torch.mm", "torch.bmm", "torch.einsum", "torch.addmm", "torch.baddbmm"}
    | {".matmul", ".mm", ".bmm", "operator.matmul", f"{NN}linear", ATTENTION}
)
RESHAPES = frozenset({".reshape", ".flatten", ".reshape_as", "torch.reshape", "torch.flatten"})


class RedundantContiguous(Rule):
    """A dense copy is made for an operation that does not need one.

    ## What it does

    Reports `.contiguous()` on a tensor that is row-major already (just made, joined, gathered,
    multiplied, or copied before), and `.contiguous()` whose result goes nowhere but into

    - a matrix product, `einsum`, `F.linear` or `scaled_dot_product_attention`,
    - `reshape` or `flatten`, which copy by themselves where the shape needs it, or
    - arithmetic element by element, whose result is row-major all the same (of rows with gaps
      between them), or goes into products and reductions alone.

    ## Why it is slow

    BLAS and cuBLAS take transposed operands as they are. A product of two 2048 x 2048 float32
    matrices took 23.8 ms with a transposed view and 24.8 ms with its dense copy; for one of
    4096 x 4096 the copy alone takes 56 ms (torch 2.14, one Zen 3 core, CPU). The copy also holds
    a second tensor of the same size until the product is done. Before a `reshape` that copies
    anyway the data are moved once in either case; what goes away is a line that says nothing. On
    a dense tensor the call costs about 100 ns and no memory: hence the severity *info*.

    ## When it is silent

    - The result is used twice or more, in a loop that the copy is outside of, or leaves the
      function: stored, returned, captured, handed to a kernel, an extension or a collective.
    - `.contiguous().view(...)`, which is `.reshape(...)` in other words, and before a `reshape`
      that only splits axes: without the copy its result would be strided.
    - What was copied is written into before the copy is read: the copy keeps the old values.
    - Elementwise work that mixes orders of axes, which is slower than the copy, or whose result
      is returned, stored, viewed or handed on.
    - A comment on the line, or on the one above, says why it is there.
    - The view has no axis with unit stride among its last two (`x[::2, ::2]`), where products
      are slow without the copy, or is broadcast.
    - Attention whose operand has no unit stride in its last axis, which the fused kernels need,
      or with a mask: some versions of its kernels were wrong for strided inputs.
    - A `memory_format` is asked for.
    - Layouts that are not known: a parameter may well come in strided.
    - In a traced run: the axes are exchanged just before, and the result is dense only because
      of the layout that a kernel happened to choose.

    ## Example

    ```python
    import torch


    def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return q @ k.transpose(-2, -1).contiguous()
    ```

    ## Use instead

    ```python
    import torch


    def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return q @ k.transpose(-2, -1)
    ```

    ## Fix safety

    Safe where the layout is known, or where the consumer is a matrix product or a `reshape` that
    copies: the values are the same (bit by bit where that was measured; another BLAS may differ in
    the last digit). Unsafe where the layout rests on an assumption, since the result may then be a
    view of what was copied.

    ## How to confirm

    Look for `aten::contiguous` and `aten::clone` right before `aten::mm` or `aten::bmm` in a
    profile, and at the bytes that they move.

    ## References

    - [Remove redundant .contiguous() calls](https://github.com/huggingface/trl/pull/6045)
    - [torch.Tensor.contiguous](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.contiguous.html)
    - [torch.reshape](https://docs.pytorch.org/docs/stable/generated/torch.reshape.html)
    """

    code = "MEM305"
    name = "redundant-contiguous"
    severity = Severity.INFO
    applicability = Applicability.SAFE
    needs = Needs({".contiguous("}, {"torch"}, units=[{".contiguous("}])
    calls: ClassVar[frozenset[str]] = PRODUCTS | RESHAPES | ELEMENTWISE | {".contiguous"}

    def __init__(self, options: dict[str, object] | None = None) -> None:
        super().__init__(options)
        self._tree: ast.Module | None = None
        self._snapshots: Snapshots | None = None
        self._dense: dict[int, tuple[Called, list[bool | None]]] = {}
        self._taken: dict[int, Draft] = {}

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """A new program."""
        self._tree, self._snapshots = start.tree, None
        self._dense, self._taken = {}, {}
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """Note copies, and what takes them: a function may be called in several ways."""
        if self._tree is None:
            return
        uses = uses_in(self._tree)
        if called.name == ".contiguous":
            self._note_dense(called, uses)
            return
        operands = called.operands[:1] if called.name in RESHAPES else called.operands
        if called.name == ATTENTION and mask_given(called.args.get("attn_mask", 3)):
            return
        for copy in copies_among((*operands, *called.args.keywords.values())):
            node = copy.made.node
            if id(node) in self._taken or not only_taken_by(copy, called.node, uses):
                continue
            if already_dense(copy.source) is not False:
                continue  # told as such
            if isinstance(node, ast.Call) and not deliberate(node, called.source):
                draft = self._before(called, copy, node, uses)
                if draft is not None and not self._is_snapshot(node, called.node, uses):
                    self._taken[id(node)] = draft
        yield from ()

    def check_end(self, end: ProgramEnd) -> Iterator[Draft]:
        """What was found, where it holds in every way that leads there."""
        yield from self._taken.values()
        for called, verdicts in self._dense.values():
            if False not in verdicts and isinstance(called.node, ast.Call):
                yield self._of_dense(called, called.node, assumed=None in verdicts)

    def _note_dense(self, called: Called, uses: Uses) -> None:
        keywords = tuple(called.args.keywords.items())
        made = Made(called.name, called.node, called.operands, keywords)
        if called.receiver is None or not is_plain_copy(made) or called.args.open:
            return
        verdict = already_dense(called.receiver)
        if not made_in_scope_of(called.node, called.receiver, uses):
            verdict = False
        if isinstance(called.node, ast.Call) and deliberate(called.node, called.source):
            verdict = False
        self._dense.setdefault(id(called.node), (called, []))[1].append(verdict)

    def _of_dense(self, called: Called, node: ast.Call, *, assumed: bool) -> Draft:
        condition = " (if what it comes from is)" if assumed else ""
        return self.finding(
            from_method(node),
            f"{_text(node)} is row-major already{condition}: `.contiguous()` gives back the same",
            "leave the call out",
            confidence=Confidence.MEDIUM if assumed else Confidence.HIGH,
            fix=_fix(called.source, node, sure=not assumed),
        )

    def _is_snapshot(self, copy: ast.Call, reader: ast.AST, uses: Uses) -> bool:
        if self._tree is None or not isinstance(copy.func, ast.Attribute):
            return True
        if self._snapshots is None:
            self._snapshots = Snapshots(self._tree, uses)
        return self._snapshots.overwritten(copy.func.value, reader)

    def _before(self, called: Called, copy: Copy, node: ast.Call, uses: Uses) -> Draft | None:
        what = called.name.rpartition(".")[2]
        if called.name in RESHAPES:
            copies = reshape_copies(copy, what, _without_first(called))
            if copies is False:
                return None
            reason = f"`{what}`, which copies by itself where the shape needs it"
            sure, confidence = copies is True, Confidence.MEDIUM
        elif called.name in ELEMENTWISE:
            taken = called.node
            if not isinstance(taken, ast.expr) or not _is_fresh(called.args):
                return None
            serves = taken_element_by_element(copy, taken, called.operands, uses)
            if serves is False:
                return None
            reason = (
                "an operation element by element, which takes the strided view as it is: the copy "
                "costs a pass over the tensor, and its size in memory"
            )
            sure, confidence = serves is True, Confidence.MEDIUM
        else:
            if not taken_in_place(copy.source, last=called.name == ATTENTION):
                return None
            reason = (
                "a matrix product, which takes the strided view as it is: the copy costs a pass "
                "over the tensor, and its size in memory"
            )
            sure = True
            assumed = any(
                not isinstance(one, Tensor) or one.assumed for one in alternatives(copy.source)
            )
            confidence = Confidence.MEDIUM if assumed else Confidence.HIGH
        return self.finding(
            from_method(node),
            f"the only thing that is done with this dense copy of {_text(node)} is {reason}",
            "leave the `.contiguous()` out",
            confidence=Confidence.HIGH if sure and called.name in RESHAPES else confidence,
            related=[] if called.node.lineno == node.lineno else [Related(called.node, "here")],
            fix=_fix(called.source, node, sure=sure),
        )

    def observe_idle(self, asked: Asked) -> Iterator[Sighting]:
        """Calls that give back the tensor that they are called on."""
        if asked.name != "contiguous" or not asked.always or not is_large(asked.operand):
            return
        if asked.exchanged:
            return
        yield Sighting(
            self,
            asked.site,
            "`.contiguous()` gave back the tensor that it was called on, each time: it was "
            "row-major already",
            "leave the call out, unless it is there for arrays of another layout",
            Severity.INFO,
            asked.count,
            asked.steps,
            0,
        )

    def observe_copies(self, operation: Operation) -> Iterator[Sighting]:
        """Dense copies of arrays that have been made dense at another place before."""
        first = operation.copied_at
        if first is None or first == operation.site or not is_dense_copy(operation):
            return
        source = operation.operands[0]
        nbytes = 2 * source.array.nbytes * operation.again
        yield Sighting(
            self,
            operation.site,
            f"{spell(source)} is made dense here, though a dense copy of the same numbers was made "
            "before",
            "make the dense copy once and hand it on",
            Severity.INFO,
            operation.again,
            operation.steps,
            nbytes,
            related=((first, "it was made dense here"),),
            claims=(Claim(operation, (0,), 1.0, (Part(operation, (0,), 1, True),), charged=False),),
            totals=": {nbytes} were read and written again",
        )


def _is_fresh(args: Args) -> bool:
    """Whether the result is an array of its own."""
    return not args.open and "out" not in args.keywords and "inplace" not in args.keywords


def _without_first(called: Called) -> Args:
    """The arguments behind the array, whether it is the receiver or not."""
    if called.receiver is not None:
        return called.args
    return Args(called.args.positional[1:], called.args.keywords, called.args.open)


def _text(call: ast.Call) -> str:
    assert isinstance(call.func, ast.Attribute)
    text = ast.unparse(call.func.value)
    return f"`{text}`" if len(text) <= 40 else "this tensor"


def _fix(source: Source, call: ast.Call, *, sure: bool) -> DraftFix | None:
    if call.args or call.keywords or not isinstance(call.func, ast.Attribute):
        return None
    edit = Replacement(call, source.segment(call.func.value))
    applicability = Applicability.SAFE if sure else Applicability.UNSAFE
    return DraftFix("leave `.contiguous()` out", (edit,), applicability)
