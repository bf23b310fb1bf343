"""MEM514 small-view-pins-base."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.parts import TENSOR_FUNCTIONS, pinned_base
from memlint.analysis.places.kept_view import is_given_anything, may_keep_view
from memlint.analysis.shown import shown
from memlint.analysis.uses import uses_in
from memlint.analysis.values import Made, Mapping, Sequence, Tensor, Value, alternatives, made_of
from memlint.analysis.walking import walk
from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, DraftFix, Needs, Replacement, Rule

APPENDS = frozenset({".append", ".appendleft"})
# What a comprehension may gather: the view itself.
TAKEN = frozenset({"operator.getitem", ".narrow", "torch.narrow"})
COPY = {"torch": ".clone()", "numpy": ".copy()", "cupy": ".copy()"}
# An attribute or a key that is set.
_SET = late_pattern(r"(?:\.\w+|\])[\s)]*(?:,[^=\n]*)?(?::[^=\n]+)?=(?!=)")


class SmallViewPinsBase(Rule):
    """A small slice is kept, and with it the whole array that it is a view of.

    ## What it does

    Reports a slice with constant bounds of an array that is made for the moment, where the slice
    outlives it: appended to a list in a loop, gathered by a comprehension, put into a
    dictionary, or set as an attribute.

    ## Why it is slow

    A slice is a view of NumPy and of torch alike: as long as it lives, all of the array does.
    Fifty times `rand(1_000_000)[:5]` in a list held 389 MiB, as copies 30 MiB. NumPy's
    documentation recommends an explicit copy in such cases.

    It is off by default: how large the array is, and how long the list lives, is seldom known.

    ## When it is silent

    - the slice is copied (`.copy()`, `.clone()`), taken by a mask or a list, or turned into a
      number;
    - the bounds are not constant: all of the array may be kept, piece by piece;
    - the array is kept anyway, or was not made in this function (in the loop, for `append`).

    ## Example

    ```python
    import numpy as np


    def heads(paths):
        kept = []
        for path in paths:
            frame = np.load(path)
            kept.append(frame[:8, :8])
        return kept
    ```

    ## Use instead

    ```python
    import numpy as np


    def heads(paths):
        kept = []
        for path in paths:
            frame = np.load(path)
            kept.append(frame[:8, :8].copy())
        return kept
    ```

    ## Fix safety

    Safe: the copy has the same values, and the array that it was a view of is not seen by anybody
    else.

    ## How to confirm

    Compare `x.base.nbytes` (NumPy) or `x.untyped_storage().nbytes()` (torch) with `x.nbytes`.

    ## References

    - [NumPy: basic indexing, slicing and views](https://numpy.org/doc/stable/user/basics.indexing.html#slicing-and-striding)
    """

    code = "MEM514"
    name = "small-view-pins-base"
    severity = Severity.INFO
    default_on = False
    applicability = Applicability.SAFE
    calls = frozenset({*APPENDS, "setattr", "operator.setitem", *TAKEN})
    needs = Needs(
        {"numpy", "torch", "cupy", "cv2"},
        units=[{"append", " for ", _SET}],
        nearest=True,
        places=may_keep_view,
        callers=is_given_anything,
    )

    def check_start(self, program: ProgramStart) -> Iterator[Draft]:
        """Keep the program's tree: it tells where an array is made."""
        self._tree = program.tree
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """A small view that is kept."""
        view = self._kept(called)
        base = None if view is None else pinned_base(view)
        if view is None or base is None or not self._is_temporary(base, called):
            return
        if not isinstance(view.node, ast.expr):
            return
        yield self.finding(
            view.node,
            f"{shown(view.node)} is kept, and as a view it keeps the whole array that it is a part "
            "of",
            "keep a copy: `.copy()`, in torch `.clone()`",
            confidence=Confidence.MEDIUM,
            fix=_fix(called, view, base),
        )

    def _kept(self, called: Called) -> Made | None:
        """The view that a call keeps, or that a comprehension gathers."""
        if called.name in TAKEN:
            if self._gathering(called.node) is None:
                return None
            receiver = () if called.receiver is None else (called.receiver,)
            inputs = (*receiver, *called.args.positional)
            return Made(called.name, called.node, inputs, tuple(called.args.keywords.items()))
        kept = _kept(called)
        return None if kept is None else made_of(kept)

    def _gathering(self, node: ast.AST) -> ast.AST | None:
        """The list or dictionary that a comprehension makes of the values of ``node``."""
        above = uses_in(self._tree).parent(node)
        if isinstance(above, ast.ListComp):
            return above if above.elt is node else None
        if isinstance(above, ast.DictComp):
            return above if above.value is node else None
        return None

    def _is_temporary(self, base: Made, called: Called) -> bool:
        """Whether the array is made where the slice is taken, and kept by nobody else."""
        uses = uses_in(self._tree)
        if uses.scope_of(base.node) is not (called.context.function or self._tree):
            return False
        if called.name in TAKEN:
            around = self._gathering(called.node)
            return around is not None and any(one is base.node for one in _repeated(around))
        if called.name in APPENDS:
            loop = called.context.innermost()
            if loop is None or not any(one is base.node for one in walk(loop.loop.node)):
                return False
        keeping = ("returned", "yielded", "stored", "captured", "contained")
        if not isinstance(base.node, ast.expr):
            return False
        return not any(
            use.kind in keeping or (use.kind == "argument" and use.name.endswith(".append"))
            for use in uses.of(base.node)
        )


def _kept(called: Called) -> Value | None:
    """What a call keeps."""
    positional = called.args.positional
    if called.name in APPENDS or called.name == "setattr":
        return positional[0] if positional else None
    if len(positional) != 2:
        return None
    value, container = positional
    if all(isinstance(one, (Mapping, Sequence)) for one in alternatives(container)):
        return value
    return None


def _repeated(comprehension: ast.AST) -> Iterator[ast.AST]:
    """What a comprehension evaluates for each of its items."""
    if isinstance(comprehension, ast.ListComp):
        yield from walk(comprehension.elt)
    elif isinstance(comprehension, ast.DictComp):
        yield from walk(comprehension.value)


def _fix(called: Called, view: Made, base: Made) -> DraftFix | None:
    value = view.inputs[0]
    copy = COPY.get(value.lib) if isinstance(value, Tensor) else None
    if copy is None and base.name.startswith("numpy."):
        copy = COPY["numpy"]
    if copy is None and base.name in TENSOR_FUNCTIONS:
        copy = COPY["torch"]
    if copy is None or not isinstance(view.node, ast.Subscript):
        return None
    text = called.source.segment(view.node)
    return DraftFix(
        f"keep a copy: `{copy}`", (Replacement(view.node, text + copy),), Applicability.SAFE
    )
