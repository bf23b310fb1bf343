"""Kernels that Python functions are compiled to for GPUs: the threads, what each accesses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from memlint.analysis.axes import dense_any_rank, reverse
from memlint.analysis.events import LaneAccess
from memlint.analysis.interpreter.arrays import Arrays
from memlint.analysis.interpreter.machine import UNKNOWN, text_of
from memlint.analysis.interpreter.state import OpenLoop
from memlint.analysis.knowledge import Args, SliceValue
from memlint.analysis.linear import symbol_value
from memlint.analysis.values import (
    Const,
    Function,
    Object,
    Ref,
    Sequence,
    Symbol,
    Tensor,
    Unknown,
    Value,
    alternatives,
    plain,
)

# Decorators of kernels whose code is Python's, and of those whose code is another language's
# that looks like it.
KERNELS = frozenset({"numba.cuda.jit", "cupyx.jit.rawkernel"})
ELSEWHERE = ("numba.cuda.", "cupyx.jit.", "triton.", "taichi.", "warp.", "jax.", "pythran.")
AXES = "xyz"
CUDA = frozenset({"cuda"})
_INDICES = frozenset(f"{module}.threadIdx" for module in ("numba.cuda", "cupyx.jit"))
_GRIDS = ("numba.cuda.grid", "cupyx.jit.grid")
_SHARED = ("numba.cuda.shared.array", "cupyx.jit.shared_memory")
_OWN = ("numba.cuda.local.array", "numba.cuda.const.array_like")


class Lanes(Arrays):
    """What the threads of a block access side by side."""

    lane_accesses: dict[tuple[int, int], LaneAccess]
    # Kernels that bring tiles into shared memory, in whose order they may do so.
    tiled: set[int]

    def attribute(self, base: Value, name: str, node: ast.AST) -> Value:
        if isinstance(base, Ref) and base.name in _INDICES and name in AXES:
            return self._lane(name)
        return super().attribute(base, name, node)

    def _lane(self, axis: str) -> Value:
        return symbol_value(Symbol("lane", axis, self.sites.at(self.tree, f"lane {axis}")))

    def _grid(self, args: Args, node: ast.AST) -> Value:
        """``cuda.grid(2)``: the thread's place in the whole grid."""
        count = args.get("ndim", 0)
        number = count.value if isinstance(count, Const) else None
        if type(number) is not int or number not in (1, 2, 3):
            return UNKNOWN
        lanes = tuple(self._lane(axis) for axis in AXES[:number])
        return lanes[0] if number == 1 else Sequence("tuple", lanes)

    def _shared_tile(self, args: Args, node: ast.AST) -> Value:
        if self.frame.function is not None:
            self.tiled.add(id(self.frame.function.node))
        return self._own_array(args, node)

    def _own_array(self, args: Args, node: ast.AST) -> Value:
        """Memory of a block or of a thread, where neighbours need not meet."""
        return Object("memlint.on_chip", self.sites.at(node))

    def _to_device(self, args: Args, node: ast.AST) -> Value | None:
        """A copy on the GPU, with the layout of what is copied."""
        first = args.get("obj", 0)
        if not isinstance(first, Tensor):
            return None
        return replace(first, lib="cupy", devices=CUDA, site=self.sites.at(node), made=None)

    def _device_array(self, args: Args, node: ast.AST) -> Value | None:
        if args.get("order", 3) != Const("F"):
            return None
        layout = reverse(dense_any_rank())
        return Tensor("cupy", layout, None, CUDA, born=node, site=self.sites.at(node))

    def note_nest(self, opened: list[OpenLoop]) -> None:
        # The loops of other machines say nothing of this one's caches.
        function = self.frame.function
        if function is None or not self._runs_elsewhere(function):
            super().note_nest(opened)

    def _runs_elsewhere(self, function: Function) -> bool:
        if any(name.startswith(ELSEWHERE) for name in self.trait_names(function)):
            return True
        return any(
            isinstance(one, Object) and one.fact("target") == Const("cuda")
            for trait in self.traits_of(function)
            for one in alternatives(trait)
        )

    def note_access(
        self,
        node: ast.AST,
        base_node: ast.expr,
        base: Value,
        items: tuple[Value | SliceValue, ...],
        mode: str,
        given: Value = UNKNOWN,
    ) -> None:
        super().note_access(node, base_node, base, items, mode, given)
        function = self.frame.function
        if function is None or KERNELS.isdisjoint(self.trait_names(function)):
            return
        values = [plain(one) for one in alternatives(base)]
        if not all(isinstance(one, (Tensor, Unknown)) for one in values):
            return
        launch = self.frame.call
        key = (id(node), id(launch))
        self.lane_accesses[key] = LaneAccess(
            node,
            text_of(base_node),
            base,
            items,
            mode,
            tuple(opened.loop for opened in self.frame.loops),
            function.node,
            launch is not None,
            self.block_width,
        )

    # How many threads of a block lie along x, in the launch that is being read.
    block_width: Value = UNKNOWN

    def _launch_one(self, kernel: Value, made: Object, args: Args, node: ast.AST) -> None:
        if isinstance(kernel, Function) and not KERNELS.isdisjoint(self.trait_names(kernel)):
            self._read_kernel(kernel, made, args, node)
            return
        super()._launch_one(kernel, made, args, node)

    def _read_kernel(self, kernel: Function, made: Object, args: Args, node: ast.AST) -> None:
        """The body of a kernel as the threads of this launch run it."""
        if any(f.function is not None and f.function.node is kernel.node for f in self.stack):
            return
        before = self.block_width
        self.block_width = self._width_of(made.site.node)
        try:
            self.run(kernel, args, node)
        finally:
            self.block_width = before

    def _width_of(self, node: ast.AST) -> Value:
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
            return UNKNOWN
        if len(node.slice.elts) < 2:
            return UNKNOWN
        block = self.evaluate(node.slice.elts[1])
        if isinstance(block, Sequence) and block.items:
            return block.items[0]
        return block

    def tell_lanes(self) -> Iterator[LaneAccess]:
        """What the threads of the kernels access; by launches, where there are any."""
        seen = list(self.lane_accesses.values())
        launched = {id(one.kernel) for one in seen if one.launched}
        for one in seen:
            if id(one.kernel) in self.tiled:
                continue
            if one.launched or id(one.kernel) not in launched:
                yield one


for _name in _GRIDS:
    Lanes.FUNCTIONS[_name] = Lanes._grid
Lanes.FUNCTIONS["numba.cuda.to_device"] = Lanes._to_device
Lanes.FUNCTIONS["numba.cuda.device_array"] = Lanes._device_array
for _name in _SHARED:
    Lanes.FUNCTIONS[_name] = Lanes._shared_tile
for _name in _OWN:
    Lanes.FUNCTIONS[_name] = Lanes._own_array
