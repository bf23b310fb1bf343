"""MEM307 repeat-instead-of-expand."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from memlint.analysis.broadcast_uses import read_only_by_broadcast
from memlint.analysis.chains import integer, mades, operation_of, short
from memlint.analysis.copies_along_axes import (
    Repetition,
    arguments_text,
    is_small,
    only_ones,
    repetition,
)
from memlint.analysis.events import Called, ProgramEnd, ProgramStart
from memlint.analysis.places.repetition import may_be_needless, repeats_parameters
from memlint.analysis.shown import shown
from memlint.analysis.uses import attributes_set, uses_in
from memlint.analysis.values import Instance, Object
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, DraftFix, Needs, Replacement, Rule
from memlint.source.model import Source
from memlint.tracer.operands import is_large, megabytes, spell
from memlint.tracer.records import Operand, Repeated
from memlint.tracer.sightings import ExpandInstead, Sighting

COPIES = frozenset(
    {".repeat", ".tile", "torch.tile", "numpy.tile", "numpy.repeat", "torch.repeat_interleave",
     ".repeat_interleave"}
)  # fmt: skip
DENSE_COPIES = frozenset({".copy", ".clone"})
_PLACED = frozenset({".to", ".cuda", ".eval", ".train", ".requires_grad_"})
_TABLE = "torch.nn.Embedding"

# Called, or given another name.
_REPEATS = late_pattern(
    r"\b(repeat|tile|repeat_interleave)(\s*\(| as )|\.(repeat|tile|repeat_interleave)\s*($|[,)#])",
    re.MULTILINE,
)


def _repeats(text: str) -> bool:
    """Whether a text may repeat an array."""
    return ("repeat" in text or "tile" in text) and _REPEATS.search(text) is not None


def _copies_views(text: str) -> bool:
    """Whether a text may copy a broadcast view at once."""
    views = "expand(" in text or "expand_as(" in text or "broadcast_to(" in text
    return views and (".clone(" in text or ".copy(" in text)


class RepeatInsteadOfExpand(Rule):
    """An array is copied along an axis of length 1 where a broadcast view would do.

    ## What it does

    Reports `repeat`, `tile` and `repeat_interleave` of torch, and `tile`, `repeat` and
    `broadcast_to(...).copy()` of numpy, if all repeated axes are new or known to have length 1
    (`unsqueeze`, `x[:, None]`, `keepdim=True`, `torch.zeros(1, 1, d)`) and the result is only
    read by operations that take a broadcast view as well: arithmetic, comparisons, `where`,
    `cat`, `stack`, `gather`, matrix products, sums, losses, the mask of
    `scaled_dot_product_attention`, an embedding, a network. A slice like `x[:1]` or `x[-1:]`
    counts as one of length 1.

    ## Why it is slow

    The copy is written to memory and read again, as often as it is repeated. `expand` and
    `broadcast_to` give a view with a stride of 0: nothing is written, and the same line of
    memory is read from the cache. On one core of an AMD Zen 4, adding a bias of 4096 numbers to
    4096 x 4096 float32 took 128 ms where it was repeated and 65 ms where it was broadcast
    (PyTorch 2.13), with NumPy's `tile` 36 against 24 ms. Where the operand broadcasts by itself,
    no call is needed at all.

    ## When it is silent

    - an axis that is repeated is not known to have length 1;
    - the result is written in place, returned, stored, registered as a buffer, or handed to
      functions that are not known to take a view: they may need memory of its own;
    - it is reshaped in a way that merges the repeated axis, which copies anyway;
    - the result is known to be small;
    - `einops.repeat`, which gives a view where it can.

    ## Example

    ```python
    import torch
    from torch import nn


    class Tokens(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.cls = nn.Parameter(torch.zeros(1, 1, width))

        def forward(self, patches):
            cls = self.cls.repeat(patches.shape[0], 1, 1)
            return torch.cat((cls, patches), dim=1)
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn


    class Tokens(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.cls = nn.Parameter(torch.zeros(1, 1, width))

        def forward(self, patches):
            cls = self.cls.expand(patches.shape[0], -1, -1)
            return torch.cat((cls, patches), dim=1)
    ```

    ## Fix safety

    Unsafe: the result is a view, which must not be written to in place, and `.view` on it may
    fail. Values are the same. It is offered for the methods of torch where the counts are
    written out.

    ## How to confirm

    A trace replays the copy and the elementwise operation that takes it against the same operation
    on a view. Or look for `aten::repeat` in a profile with memory, and compare its bytes with those
    of its only consumer. `memlint bench repeat-instead-of-expand` measures it on your machine.

    ## References

    - [torch.Tensor.expand](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.expand.html)
    - [numpy.broadcast_to](https://numpy.org/doc/stable/reference/generated/numpy.broadcast_to.html)
    """

    code = "MEM307"
    name = "repeat-instead-of-expand"
    severity = Severity.INFO
    applicability = Applicability.UNSAFE
    calls: ClassVar[frozenset[str]] = COPIES | DENSE_COPIES | _PLACED | {_TABLE}
    needs = Needs(
        {_repeats, _copies_views},
        {"torch", "numpy"},
        units=[{_repeats, _copies_views}],
        nearest=True,
        places=may_be_needless,
        callers=repeats_parameters,
    )

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Begin a program."""
        self._tree = start.tree
        self._numpy = "numpy" in start.source.text
        self._found: list[tuple[Called, Repetition | None]] = []
        self._networks: set[str] = set()
        self._tables: set[tuple[str, ast.ClassDef]] = set()
        yield from ()

    def check(self, call: Called) -> Iterator[Draft]:
        """Keep what may be a needless copy, and the names of networks."""
        if call.name in _PLACED:
            if isinstance(call.receiver, (Object, Instance)):
                self._networks.update(uses_in(self._tree).names_of(call.node))
            return
        if call.name == _TABLE:
            self._tables.update(attributes_set(call.node, uses_in(self._tree)))
            return
        made = operation_of(call)
        if call.name in DENSE_COPIES:
            if _copies_broadcast(call):
                self._found.append((call, None))
            return
        found = repetition(made, numpy=self._numpy)
        if found is not None and only_ones(found) and not is_small(found):
            self._found.append((call, found))
        yield from ()

    def check_end(self, end: ProgramEnd) -> Iterator[Draft]:
        """The copies that are read by what would take a view."""
        uses = uses_in(end.tree)
        for call, found in self._found:
            owner = uses.class_of(call.node)
            tables = {name for name, one in self._tables if one is owner}
            readers = read_only_by_broadcast(call.node, uses, self._networks | tables)
            if readers:
                yield self._report(call, found)

    def _report(self, call: Called, found: Repetition | None) -> Draft:
        view = "broadcast_to" if _of_numpy(call) else "expand"
        return self.finding(
            call.node,
            f"{shown(call.node)} writes the same numbers again and again along an axis of length "
            "1, and what reads them would take a broadcast view as well: memory and traffic of the "
            "whole result for nothing",
            f"let the operand broadcast by itself, or use `{view}`, which makes a view; do not "
            "write to it in place",
            confidence=Confidence.HIGH,
            fix=None if found is None else _fix(call, found, call.source),
        )

    def observe(self, repeated: Repeated) -> Iterator[Sighting]:
        """Copies along axes of size 1, into which nothing is written."""
        operation = repeated.repeat
        if operation.written:
            return
        source, result = operation.operands[0], operation.results[0]
        if not is_large(result) or not _serves_as_view(source, result):
            return
        nbytes = result.array.nbytes * operation.count
        yield Sighting(
            self,
            operation.site,
            f"{spell(source)} is repeated to {megabytes(result.array.nbytes)}, along axes of size "
            "1 only, and nothing is written into the copies",
            "`.expand(...)` gives a view of the same shape, which has no memory of its own",
            self.severity,
            operation.count,
            operation.steps,
            nbytes,
            claims=(ExpandInstead(repeated),) if repeated.taker is not None else (),
        )

    @bench(
        "adds a row to all rows of a matrix",
        as_is="x + row.repeat(n, 1)",
        alternative="x + row.expand(n, -1)",
        needs=("torch",),
        sizes=Sizes("rows and columns", quick=1024, full=(64, 256, 1024, 2048)),
        dtypes=("float32", "bfloat16", "float64"),
    )
    def bench(self, size: Size) -> Pair:
        """A copy of the whole, and a view."""
        from memlint.bench.tensors import normal

        number = size.number

        def repeated(x: Any, row: Any) -> Any:
            return x + row.repeat(number, 1)

        def expanded(x: Any, row: Any) -> Any:
            return x + row.expand(number, -1)

        def operands() -> tuple[Any, ...]:
            return normal(size, number, number), normal(size, 1, number, seed=1)

        what = f"{size.dtype}, {number} x {number}"
        return Pair(repeated, expanded, operands, what, settle=size.settle)


def _of_numpy(call: Called) -> bool:
    return call.name.startswith("numpy.") or call.name == ".copy"


def _copies_broadcast(call: Called) -> bool:
    """``np.broadcast_to(x, s).copy()`` and ``x.expand(n, -1).clone()``."""
    func = call.node.func if isinstance(call.node, ast.Call) else None
    return isinstance(func, ast.Attribute) and any(
        short(made.name) in ("broadcast_to", "expand", "expand_as") and made.node is func.value
        for made in mades(call.operands[0])
    )


def _fix(call: Called, found: Repetition, source: Source) -> DraftFix | None:
    """``x.repeat(n, 1)`` as ``x.expand(n, -1)``."""
    node = call.node
    counts = arguments_text(node)
    if call.name not in (".repeat", ".tile") or counts is None or len(counts) != len(found.counts):
        return None
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Attribute)
        or _of_numpy(call)
    ):
        return None
    sizes = [
        "-1" if integer(value) == 1 and index >= found.new else source.segment(text)
        for index, (text, value) in enumerate(zip(counts, found.counts, strict=True))
    ]
    text = f"{source.segment(node.func.value)}.expand({', '.join(sizes)})"
    return DraftFix(
        f"make a view: `.expand({', '.join(sizes)})`",
        (Replacement(node, text),),
        Applicability.UNSAFE,
    )


def _serves_as_view(source: Operand, result: Operand) -> bool:
    """Whether only axes of size 1, or new ones in front, have grown."""
    added = len(result.array.shape) - len(source.array.shape)
    shape = (1,) * added + source.array.shape
    return all(a in (1, b) for a, b in zip(shape, result.array.shape, strict=True))
