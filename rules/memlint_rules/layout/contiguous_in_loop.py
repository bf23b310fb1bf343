"""MEM306 contiguous-in-loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from memlint.analysis.axes import contiguous
from memlint.analysis.changes import called_name
from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.hoisting import hoisted
from memlint.analysis.invariance import Invariance, Repeated, given_each_time
from memlint.analysis.loop_candidates import repeats, repeats_what_is_given
from memlint.analysis.looped_text import in_loops
from memlint.analysis.shown import short_text
from memlint.analysis.values import Object, Tensor, Unknown, Value, alternatives, made_of
from memlint.findings import Applicability, Confidence, Severity
from memlint.rule import Draft, DraftFix, Needs, Related, Rule
from memlint.tracer.operands import is_dense_copy, spell
from memlint.tracer.records import Operation
from memlint.tracer.sightings import Claim, Part, Sighting

FUNCTIONS = frozenset({"numpy.ascontiguousarray", "cupy.ascontiguousarray"})
WORDS = ("contiguous(", "ascontiguousarray(")
NAMES = frozenset({"contiguous", "ascontiguousarray"})
VIEWS = frozenset({".t", ".transpose", ".permute", ".T", ".mT", ".swapaxes", ".movedim"})


def _copies_in_loops(text: str) -> bool:
    return in_loops(text, WORDS)


def _may_copy(call: ast.Call) -> bool:
    """``contiguous(memory_format=...)`` makes another layout than the dense one."""
    return not call.keywords and bool(call.args) == (called_name(call) == "ascontiguousarray")


class ContiguousInLoop(Rule):
    """A loop makes the same dense copy of a strided view in every iteration.

    ## What it does

    Reports `.contiguous()` and `np.ascontiguousarray(...)` on a view that is not contiguous (a
    transpose, a permutation, a column slice) inside a loop that neither rebinds nor writes into
    anything that the view is made of: each iteration copies the same elements to the same order.

    ## Why it is slow

    The copy reads and writes every element, and the read is strided. For a 64 MB matrix it was
    measured at 56 ms on two cores of an AMD Zen 3 (torch 2.14 on CPU), more than twice the
    matrix product that it was made for (24 ms); on a GPU it is a kernel launch and twice the
    bytes of the array through memory, and each time a fresh allocation. Made once before the
    loop it costs the same, once. What that comes to depends on the array's size and on the number
    of iterations.

    ## When it is silent

    - the layout of what is copied is not known, or it is contiguous already (then there is no
      copy);
    - anything in the expression may change in the loop: it is assigned, written into by an
      in-place method, a subscript, `out=`, a collective or a function of the program that does so,
      or it is a parameter and an optimizer steps;
    - the result is written into, collected, returned or yielded: each iteration needs a copy of
      its own then;
    - the copy is made on some iterations only (`if step % 100 == 0`, a cache that is filled
      once), or the loop is left right after it;
    - the loop has at most eight iterations, or each of its iterations is a long one: epochs,
      folds, seeds;
    - benchmarks, by their names.

    ## Example

    ```python
    import torch


    def decode(states: torch.Tensor, weight: torch.Tensor, steps: int) -> torch.Tensor:
        for _ in range(steps):
            by_column = weight.t().contiguous()
            states = torch.tanh(states @ by_column)
        return states
    ```

    ## Use instead

    ```python
    import torch


    def decode(states: torch.Tensor, weight: torch.Tensor, steps: int) -> torch.Tensor:
        by_column = weight.t().contiguous()
        for _ in range(steps):
            states = torch.tanh(states @ by_column)
        return states
    ```

    ## Fix safety

    Unsafe: the fix moves the whole assignment in front of the loop. It is offered where the copy
    is a statement of its own directly in the loop's body and its variable is bound nowhere else
    in the loop. It keeps the copy alive until the loop ends, makes it even if the loop has no
    iteration, and is wrong where the view is written into by code that cannot be seen.

    ## How to confirm

    Count the calls of `aten::contiguous`/`aten::clone` (or `aten::copy_`) from that line in a
    profile, and look at `data_ptr()` and `_version` of what is copied: they stay the same.

    ## References

    - [torch.Tensor.contiguous](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.contiguous.html)
    - [Tensor views](https://docs.pytorch.org/docs/stable/tensor_view.html)
    """

    code = "MEM306"
    name = "contiguous-in-loop"
    severity = Severity.WARNING
    applicability = Applicability.UNSAFE
    supersedes = ("loop-invariant-transfer", "redundant-contiguous")
    needs = Needs(
        {".contiguous(", "ascontiguousarray"},
        {"for ", "while "},
        {_copies_in_loops},
        units=[WORDS, {"for ", "while "}],
        nearest=True,
        places=repeats(NAMES, _may_copy),
        callers=repeats_what_is_given(NAMES, _may_copy),
    )
    calls: ClassVar[frozenset[str]] = FUNCTIONS | {".contiguous"}

    _invariance: Invariance

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Take the program's tree: what a loop changes is asked of the whole program."""
        self._invariance = Invariance(start.tree)
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """A dense copy of the same view in each iteration."""
        if not called.context.loops or not isinstance(called.node, ast.Call):
            return
        source = called.operands[0] if called.operands else None
        if source is None or not _is_strided(source) or _asks_for_format(called):
            return
        repeated = self._invariance.repeated(called)
        if repeated is None:
            return
        text = _what(given_each_time(repeated) or _copied(called.node))
        yield self.finding(
            called.node,
            f"`{text}` does not change in the loop, but is copied to a dense array in every "
            "iteration: a strided read and a write of all its elements each time",
            "make the dense copy once, before the loop",
            confidence=Confidence.MEDIUM if _rests_on_assumption(source) else Confidence.HIGH,
            related=[Related(repeated.head, "nothing in this loop changes it")],
            fix=_fix(called, self._invariance, repeated),
        )

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        """Dense copies of the same numbers, made at one place again and again."""
        if not is_dense_copy(operation) or operation.copied_at != operation.site:
            return
        source, born = operation.operands[0], operation.births.get(0)
        nbytes = 2 * source.array.nbytes * operation.again
        yield Sighting(
            self,
            operation.site,
            f"{spell(source)} was made dense {operation.count} times, {operation.again} of them "
            "with the same numbers as before",
            "make the dense copy once, before the loop",
            self.severity,
            operation.again,
            operation.steps,
            nbytes,
            related=((born, "its axes are exchanged here"),) if born is not None else (),
            claims=(Claim(operation, (0,), operation.uses, (Part(operation, (0,), 1, True),)),),
            totals=": {nbytes} were read and written again",
        )


def _is_strided(value: Value) -> bool:
    return all(map(_is_strided_array, alternatives(value)))


def _is_strided_array(value: Value) -> bool:
    """What is known to be strided, and a transpose of what has any number of axes, or is an
    ``nn.Parameter`` (an object of its own class here)."""
    if isinstance(value, Tensor) and (known := contiguous(value.layout)) is not None:
        return not known
    made = made_of(value)
    if made is None or made.name not in VIEWS or not made.inputs:
        return False
    first = made.inputs[0]
    if isinstance(first, Object):
        return first.cls == "torch.nn.Parameter"
    return isinstance(first, (Tensor, Unknown)) and not _may_be_transposed(first)


def _may_be_transposed(value: Value) -> bool:
    made = made_of(value)
    return (isinstance(value, Tensor) and contiguous(value.layout) is False) or (
        made is not None and made.name in VIEWS
    )


def _asks_for_format(called: Called) -> bool:
    """``contiguous(memory_format=...)`` makes another layout than the dense one."""
    return bool(called.args.keywords) or (called.receiver is not None and bool(called.operands[1:]))


def _rests_on_assumption(value: Value) -> bool:
    return any(
        not isinstance(one, Tensor) or one.assumed or contiguous(one.layout) is None
        for one in alternatives(value)
    )


def _copied(node: ast.Call) -> ast.expr:
    return node.args[0] if node.args else getattr(node.func, "value", node.func)


def _what(copied: ast.expr) -> str:
    return short_text(ast.unparse(copied))


def _fix(called: Called, invariance: Invariance, repeated: Repeated) -> DraftFix | None:
    edit = hoisted(called.source, repeated, invariance)
    if edit is None:
        return None
    return DraftFix("make the copy before the loop", (edit,), Applicability.UNSAFE)
