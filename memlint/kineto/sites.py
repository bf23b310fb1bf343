"""Where in the program the operators of a trace stand.

The profiler names the function that an operator ran in.  The expression is worked out from the
source, if that is there and leaves no choice; else the place is the function's first line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from memlint.kineto.frames import Function
from memlint.kineto.functions import Bodies, Body, Expression
from memlint.kineto.placing import Placer
from memlint.kineto.walk import Activation, Spot
from memlint.source.read import SourceError, read_source
from memlint.tracer.records import Site


class Places:
    """Places calls in the program that lies below ``root``.

    ``missing`` are the files that could not be read there, ``doubtful`` tells, of places that are
    but those of a function, the lines that the call may stand in."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files: dict[str, Bodies | None] = {}
        self._placers: dict[Function, Placer | None] = {}
        self.missing: set[str] = set()
        self.doubtful: dict[Site, set[int]] = {}

    def place(self, activation: Activation) -> None:
        """Give each call of a run of a function its place."""
        spots = activation.spots
        placer = self._placer(activation.function)
        if placer is None:
            where = Site(self._path(activation.function), activation.function.name,
                         activation.function.line)  # fmt: skip
            for spot in spots:
                spot.place = where
            return
        calls = [spot.call for spot in spots]
        found = placer.place(calls, whole=activation.whole)
        for spot, expression in zip(spots, found, strict=True):
            spot.place = self._site(placer, spot, expression, activation.function)

    def place_alone(self, spot: Spot) -> None:
        """Give a call its place that is known without the run of its function.  Versions of
        PyTorch differ in the line that they tell: the function's first one, or the call's."""
        function = spot.function
        if function is None:
            return
        path = self._path(function)
        placer = self._placer(function)
        if placer is None:
            spot.place = Site(path, function.name, function.line)
        elif function.line == placer.body.line:
            spot.place = self._site(placer, spot, None, function)
        else:
            spot.place = Site(path, placer.body.name, function.line)

    def _site(
        self, placer: Placer, spot: Spot, expression: Expression | None, function: Function
    ) -> Site:
        path, body = self._path(function), placer.body
        if expression is not None:
            return _site_of(path, body, expression.node)
        site = Site(path, body.name, max(body.line, 1))
        lines = {one.node.lineno for one in placer.candidates(spot.call)}
        self.doubtful.setdefault(site, set()).update(lines)
        return site

    def _placer(self, function: Function) -> Placer | None:
        if function not in self._placers:
            bodies = self._bodies(function.path)
            body = None if bodies is None else bodies.find(function)
            self._placers[function] = None if body is None else Placer(body)
        return self._placers[function]

    def _bodies(self, path: str) -> Bodies | None:
        if path not in self._files:
            try:
                tree = ast.parse(read_source(self._root / path).text)
            except (OSError, SourceError, SyntaxError, ValueError):
                self.missing.add(path)
                self._files[path] = None
            else:
                self._files[path] = Bodies(tree)
        return self._files[path]

    def _path(self, function: Function) -> str:
        return str(self._root / function.path)


def _site_of(path: str, body: Body, node: ast.expr | ast.stmt) -> Site:
    return Site(
        path,
        body.name,
        node.lineno,
        node.col_offset + 1,
        node.end_lineno or node.lineno,
        (node.end_col_offset or node.col_offset) + 1,
    )


def lines_text(lines: Iterable[int]) -> str:
    """``line 4`` or ``line 4, 7 or 9``."""
    every = [str(one) for one in sorted(lines)]
    if len(every) < 2:
        return f"line {every[0]}" if every else "no line"
    return f"line {', '.join(every[:-1])} or {every[-1]}"
