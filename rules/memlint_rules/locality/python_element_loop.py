"""MEM103: arithmetic on the elements of an array, one after the other, in interpreted code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from memlint.analysis.element_loops import (
    ElementLoop,
    compiled_lines,
    element_loop,
    summed_elements,
)
from memlint.analysis.events import Called, LoopNest, ProgramStart
from memlint.analysis.places.element_loop import (
    computes_with_what_is_given,
    may_compute_by_elements,
)
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, Needs, Rule

_INDEXED = late_pattern(r"\w\[[^\]\n:'\"]*[A-Za-z_]\w*")


class PythonElementLoop(Rule):
    """Interpreted code does arithmetic on the elements of an array one by one.

    ## What it does

    Finds Python loops whose body is nothing but arithmetic on single elements of arrays or
    tensors: `for i in range(n): y[i] = x[i] * 2`, sums over elements, `for v in x`,
    `sum(t[i].item() for i in range(n))`. The arrays must be known to be such, or show it by
    `x.shape` or by an index such as `x[i, j]`.

    Off by default: whether such a loop matters depends on how many elements it runs over, which
    can rarely be read from the program.

    ## Why it is slow

    Each element is taken out of the array as a Python object of its own, so that the
    interpreter, not memory, sets the pace: on an AMD Zen 3 with Python 3.11 about 140 ns for an
    element of a NumPy array, 1.6 us for `.item()` of a torch tensor, 8 us for an assignment to
    one of its elements. The operation on the whole array took 300 to 700 times less. The order
    of the loops does not matter here.

    ## When it is silent

    - where an iteration needs what an earlier one stored (recurrences, filters, simulations);
    - where the body calls other functions than those of single numbers, leaves the loop, or
      appends to a list;
    - in code that Numba, Triton, Taichi or another compiler takes over, also where a decorator
      only looks like it;
    - where the loop is known to have at most 16 iterations;
    - on lists, dictionaries, and on objects that may be such.

    ## Example

    ```python
    import numpy as np

    def decibels(power):
        power = np.asarray(power, dtype=np.float64)
        out = np.empty_like(power)
        for i in range(power.shape[0]):
            out[i] = 10.0 * np.log10(power[i])
        return out
    ```

    ## Use instead

    ```python
    import numpy as np

    def decibels(power):
        power = np.asarray(power, dtype=np.float64)
        return 10.0 * np.log10(power)
    ```

    ## Fix safety

    There is no automatic fix. Sums over whole arrays are added up in another order; where the
    loop has to stay, `.tolist()` first, or compiling the function with Numba, takes most of the
    cost away.

    ## How to confirm

    Profile by lines, or time the loop against the expression on whole arrays, as
    `memlint bench python-element-loop` does.

    ## References

    - [NumPy: broadcasting and vectorization](https://numpy.org/doc/stable/user/whatisnumpy.html#why-is-numpy-fast)
    """

    code, name = "MEM103", "python-element-loop"
    severity = Severity.INFO
    default_on = False
    calls = frozenset({"builtins.sum"})
    needs = Needs(
        {"for "},
        {"numpy", "torch", "cupy", "numba"},
        {_INDEXED, " in "},
        units=[{"for "}],
        nearest=True,
        places=may_compute_by_elements,
        callers=computes_with_what_is_given,
    )

    def __init__(self, options: object = None) -> None:
        super().__init__(options)  # type: ignore[arg-type]
        self._compiled: list[tuple[int, int]] = []

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Note what other compilers take over."""
        self._compiled = compiled_lines(start.tree)
        yield from ()

    def check_nest(self, nest: LoopNest) -> Iterator[Draft]:
        """A loop over elements."""
        found = element_loop(nest)
        if found is not None:
            yield from self._findings(found)

    def check_sum(self, called: Called) -> Iterator[Draft]:
        """A sum over a generator of elements."""
        found = summed_elements(called)
        if found is not None:
            yield from self._findings(found)

    def _findings(self, found: ElementLoop) -> Iterator[Draft]:
        line = getattr(found.node, "lineno", 0)
        if any(first <= line <= last for first, last in self._compiled):
            return
        names = [f"`{name}`" for name in found.arrays[:3]]
        arrays = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        cost = (
            "microseconds for each element of a tensor"
            if found.torch
            else "some 140 ns for each element"
        )
        yield self.finding(
            found.node,
            f"the interpreter computes with the elements of {arrays} one by one, at {cost}; the "
            "operation on whole arrays takes hundreds of times less",
            "write it as an expression of whole arrays; where the loop has to stay, take the "
            "numbers out once with `.tolist()`, or compile the function",
            confidence=Confidence.HIGH if found.known else Confidence.MEDIUM,
        )

    @bench(
        "doubles the elements of an array and adds one",
        as_is="one by one",
        alternative="out[:] = x * 2 + 1",
        needs=("numpy",),
        sizes=Sizes("elements", quick=10_000, full=(100, 10_000, 100_000)),
        dtypes=("float64", "float32"),
    )
    def bench_array(self, size: Size) -> Pair:
        """Elements of an array of NumPy."""
        import numpy as np

        def one_by_one(x: Any, out: Any) -> None:
            for i in range(len(x)):
                out[i] = x[i] * 2 + 1

        def whole(x: Any, out: Any) -> None:
            out[:] = x * 2 + 1

        def operands() -> tuple[Any, ...]:
            x = np.random.default_rng(0).random(size.number).astype(size.dtype)
            return x, np.zeros_like(x)

        return Pair(one_by_one, whole, operands, f"{size.dtype}, {size.number} elements")

    @bench(
        "adds up the elements of a tensor",
        as_is="sum(x[i].item() for i in range(n))",
        alternative="x.sum().item()",
        needs=("torch",),
        sizes=Sizes("elements", quick=1000, full=(100, 1000, 10_000)),
        dtypes=("float32", "float64"),
    )
    def bench_tensor(self, size: Size) -> Pair:
        """Elements of a tensor of torch."""
        return _sum_of_tensor(size, lambda x: sum(x[i].item() for i in range(x.numel())))

    @bench(
        "adds up the elements of a tensor: where the loop has to stay",
        as_is="sum(x[i].item() for i in range(n))",
        alternative="sum(x.tolist())",
        needs=("torch",),
        sizes=Sizes("elements", quick=1000, full=(100, 1000, 10_000)),
        dtypes=("float32", "float64"),
        quick=False,
    )
    def bench_tolist(self, size: Size) -> Pair:
        """Elements of a tensor, taken out one by one and all at once."""
        by_items = _sum_of_tensor(size, lambda x: sum(x[i].item() for i in range(x.numel())))
        return replace(by_items, alternative=lambda x: float(sum(x.tolist())))


def _sum_of_tensor(size: Size, as_is: Callable[[Any], Any]) -> Pair:
    import torch

    def operands() -> tuple[Any, ...]:
        torch.manual_seed(0)
        return (torch.rand(size.number, dtype=getattr(torch, size.dtype)),)

    what = f"{size.dtype}, {size.number} elements"
    return Pair(as_is, lambda x: x.sum().item(), operands, what)
