"""Launches: what kernels, foreign functions and collectives are handed, told once each."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from collections.abc import Sequence as Listing
from dataclasses import replace

from memlint.analysis.events import Argument, KernelLaunch
from memlint.analysis.interpreter.frameworks import Frameworks
from memlint.analysis.interpreter.handed import (
    STRIDE_NAME,
    Given,
    array_behind,
    column_major,
    is_pointer,
    is_strides,
    spread,
    with_strides,
)
from memlint.analysis.interpreter.state import Frame
from memlint.analysis.knowledge import Args
from memlint.analysis.triton_kernels import Addresses
from memlint.analysis.values import Sequence, Tensor, Unknown, Value, alternatives

Kernel = ast.FunctionDef | ast.AsyncFunctionDef


class Launches(Frameworks):
    """Keeps the launches; the last state of a loop is the one that counts."""

    pending: dict[tuple[int, ...], KernelLaunch]
    backends: list[Value]
    addresses: dict[int, Addresses]

    def launch(
        self,
        kind: str,
        callee: str,
        args: Args,
        node: ast.AST,
        kernel: Kernel | None = None,
        parameters: tuple[str, ...] = (),
        *,
        nodes: Listing[ast.AST] | None = None,
        provenance: tuple[tuple[str, Value], ...] = (),
    ) -> None:
        """Note a launch with these arguments."""
        given = list(_given(args, node, parameters, nodes))
        if parameters:
            order = {name: place for place, name in enumerate(parameters)}
            given.sort(key=lambda one: order.get(one.parameter or "", len(order)))
        arguments: list[Argument] = []
        along = self._addressed_with_strides(kernel, given)
        for one, strided in zip(given, with_strides(given), strict=True):
            array = array_behind(one.value)
            arguments.append(
                Argument(
                    one.node,
                    one.text,
                    array,
                    one.parameter,
                    strided or one.parameter in along,
                    is_pointer(one.value),
                    self._came_from(array),
                    column_major(array),
                )
            )
        # In one chain of calls, what is read last is read with all that loops bring about.
        key = (id(node), id(kernel), *(id(frame.call) for frame in self.stack))
        self.pending[key] = KernelLaunch(
            node, kind, callee, tuple(arguments), kernel, parameters, provenance
        )

    def _addressed_with_strides(self, kernel: Kernel | None, given: list[Given]) -> set[str]:
        """The parameters to whose addresses the kernel adds multiples of strides."""
        strides = frozenset(
            one.parameter
            for one in given
            if one.parameter and (STRIDE_NAME.search(one.label) or is_strides(one.value))
        )
        if kernel is None or not strides:
            return set()
        known = self.addresses.get(id(kernel))
        if known is None:
            known = self.addresses[id(kernel)] = Addresses(kernel)
        return known.go_with(strides) - strides

    def tell_launches(self) -> Iterator[KernelLaunch]:
        """The launches of the program, in the order in which they were first met."""
        backends = tuple(("backend", value) for value in self.backends)
        for launch in self.pending.values():
            if launch.kind == "collective":
                launch = replace(launch, provenance=backends)
            yield launch

    def _came_from(self, value: Value) -> ast.AST | None:
        """The call that handed ``value`` into the function around the launch, if one did."""
        found: ast.AST | None = None
        for depth in range(len(self.stack) - 1, 0, -1):
            frame = self.stack[depth]
            if frame.call is None or not any(
                _handed_to(frame, one) or self._made_before(depth, one)
                for one in alternatives(value)
            ):
                break
            found = frame.call
        return found

    def _made_before(self, depth: int, value: Value) -> bool:
        """Whether the odd layout was made by a function that waits for the one at ``depth``."""
        if not isinstance(value, Tensor) or value.born is None:
            return False
        if _spans(self.stack[depth], value.born):
            return False
        return any(_spans(frame, value.born) for frame in self.stack[:depth])


def _spans(frame: Frame, node: ast.AST) -> bool:
    if frame.function is None:
        return False
    around = frame.function.node
    first, last = around.lineno, around.end_lineno or around.lineno
    return first <= getattr(node, "lineno", 0) <= last


def _handed_to(frame: Frame, value: Value) -> bool:
    if isinstance(value, Unknown):
        return False
    for parameter in frame.parameters:
        if parameter is value:
            return True
        if isinstance(parameter, Sequence) and any(i is value for i in parameter.items or ()):
            return True
    return False


def _given(
    args: Args, node: ast.AST, parameters: tuple[str, ...], nodes: Listing[ast.AST] | None
) -> Iterator[Given]:
    keywords: dict[str | None, ast.AST] = {}
    if isinstance(node, ast.Call):
        keywords = {k.arg: k.value for k in node.keywords}
        if nodes is None:
            nodes = node.args
    nodes = nodes or []
    aligned = len(nodes) == len(args.positional) and not any(
        isinstance(n, ast.Starred) for n in nodes
    )
    for index, value in enumerate(args.positional):
        shown = nodes[index] if aligned else node
        name = parameters[index] if index < len(parameters) and not args.open else None
        yield from (Given(shown, part, name, shown is node) for part in spread(value))
    for keyword, value in args.keywords.items():
        shown = keywords.get(keyword, node)
        yield from (Given(shown, part, keyword, shown is node) for part in spread(value))
