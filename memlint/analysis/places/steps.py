"""What the names of a function may stand for, by its syntax alone: a help of sieves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from memlint.analysis.imported_names import imported
from memlint.analysis.walking import kinds_in, walk
from memlint.late_pattern import late_pattern

_KEPT = late_pattern(r"^([^=\n]*\.\w[^=\n]*)=(?!=)", re.MULTILINE)
_ATTRIBUTE = late_pattern(r"\.(\w+)")
# Operations in place that may be a step on a way that is looked for.
_IN_PLACE = (ast.Pow, ast.Mult, ast.Sub)


class Steps:
    """The steps of a function from one array to the next."""

    def __init__(self, function: ast.AST, source: str) -> None:
        kinds = kinds_in(function)
        self._source = source
        self._body = getattr(function, "body", [])
        self._set: dict[str, list[ast.expr | None]] = {}
        for one in kinds[ast.Assign]:
            for target in one.targets:
                self._note(target, one.value)
        for one in (*kinds[ast.AnnAssign], *kinds[ast.NamedExpr]):
            if one.value is not None:
                self._note(one.target, one.value)
        for one in kinds[ast.AugAssign]:
            self._note(one.target, None if isinstance(one.op, _IN_PLACE) else ast.Constant(0))
        for one in (*kinds[ast.For], *kinds[ast.AsyncFor], *kinds[ast.comprehension]):
            self._note(one.target, None)
        for one in kinds[ast.withitem]:
            if one.optional_vars is not None:
                self._note(one.optional_vars, None)
        every = [one.arg for one in kinds[ast.arg]]
        arguments = getattr(function, "args", None)
        own = [one.arg for one in walk(arguments) if isinstance(one, ast.arg)] if arguments else []
        self._given = frozenset(every)
        # Those of functions within this one: there, what this one sets does not count.
        self._given_within = {one for one in every if every.count(one) > own.count(one)}

    def _note(self, target: ast.expr, value: ast.expr | None) -> None:
        whole = isinstance(target, ast.Name)
        for one in walk(target):
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                self._set.setdefault(one.id, []).append(value if whole else None)

    def values_of(self, name: str, use: ast.expr) -> Iterator[ast.expr | None]:
        """What a name may stand for at ``use``; ``None`` for what may be anything."""
        values = self._set.get(name, [])
        yield from values
        if name in self._given:
            if not self._is_replaced(name, use):
                yield None
        elif not values and name not in imported(self._source):
            yield None

    def is_given(self, nodes: Iterable[ast.AST], use: ast.expr) -> bool:
        """Whether these may rest on a parameter."""
        waiting = _names_in(nodes)
        seen = set(waiting)
        while waiting:
            name = waiting.pop()
            if name in self._given and name != "self" and not self._is_replaced(name, use):
                return True
            new = _names_in(one for one in self._set.get(name, []) if one is not None) - seen
            seen |= new
            waiting |= new
        return False

    def _is_replaced(self, name: str, use: ast.expr) -> bool:
        """Whether a parameter has been given another value for certain."""
        return name not in self._given_within and any(
            isinstance(one, ast.Assign)
            and (one.end_lineno or one.lineno) < use.lineno
            and any(isinstance(target, ast.Name) and target.id == name for target in one.targets)
            for one in self._body
        )


@lru_cache(maxsize=4)
def kept_attributes(source: str) -> frozenset[str]:
    """The names of the attributes that a source sets."""
    return frozenset(name for one in _KEPT.findall(source) for name in _ATTRIBUTE.findall(one))


def _names_in(nodes: Iterable[ast.AST]) -> set[str]:
    return {one.id for node in nodes for one in walk(node) if isinstance(one, ast.Name)}
