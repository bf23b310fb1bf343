"""MEM214 tensor-from-array-list."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from math import prod
from typing import Any

from memlint.analysis.entries import (
    ARRAY,
    LIST_OF_ARRAYS,
    annotated,
    is_untouched,
    tests_entries,
)
from memlint.analysis.events import Called
from memlint.analysis.imports import name_of_module
from memlint.analysis.knowledge.array_makers import gives_several, is_array
from memlint.analysis.values import (
    Absent,
    Const,
    Sequence,
    Tensor,
    Value,
    alternatives,
    join,
    made_of,
)
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, DraftFix, Needs, Replacement, Rule

INFER = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray"})
# Constructors that fix the dtype of what they make.
TYPED = frozenset(
    f"torch.{device}{name}Tensor"
    for name in ("", "Float", "Double", "Long", "Int", "Short", "Byte")
    for device in ("", "cuda.")
    if name or not device
)
# Fewer numbers than this are not worth a word: one or two microseconds are lost.
FEW = 64


class TensorFromArrayList(Rule):
    """A tensor is made of a list of NumPy arrays, number by number.

    ## What it does

    Reports `torch.tensor(frames)`, `torch.as_tensor(frames)` and the older `torch.FloatTensor(
    frames)` where `frames` is a list or tuple whose elements are known to be NumPy arrays, also
    one that NumPy gives (`np.nonzero(mask)`, `np.meshgrid(x, y)`).

    ## Why it is slow

    PyTorch reads a list by Python's sequence protocol: each number of each array becomes a
    Python object, is looked at for its type, and converted. An array as such is copied at
    memory speed. Measured for 2000 arrays of 512 float32 numbers: 128 ms from the list against
    1.3 ms from `np.array` of it, copy included (AMD Zen 3, PyTorch 2.14). PyTorch itself warns
    once per process that this is "extremely slow".

    ## When it is silent

    - the elements are not known to be arrays: numbers (`np.mean(x)`, `x.item()`), tensors,
      lists, or what nobody can see into;
    - the list becomes one array first: `np.array(frames)`, `np.stack(frames)`;
    - `torch.stack` and `torch.cat` of tensors;
    - the function asks for the type of the entries (`isinstance(frames[0], np.ndarray)`);
    - arrays of objects, and a few numbers in all (up to 64).

    ## Example

    ```python
    import numpy as np
    import torch


    def load_batch(paths):
        frames = [np.load(path) for path in paths]
        return torch.tensor(frames, dtype=torch.float32)
    ```

    ## Use instead

    ```python
    import numpy as np
    import torch


    def load_batch(paths):
        frames = [np.load(path) for path in paths]
        return torch.tensor(np.stack(frames), dtype=torch.float32)
    ```

    ## Fix safety

    Safe where all arrays are known to have one dtype or the call names the dtype of the
    result: values, dtype and shape stay. Otherwise unsafe, since NumPy promotes mixed dtypes
    (float32 and int64 to float64) where PyTorch does not. It is offered where the module
    imports NumPy by name.

    ## How to confirm

    Run with `-W error::UserWarning`: "Creating a tensor from a list of numpy.ndarrays is
    extremely slow" becomes an exception at the call. `memlint bench tensor-from-array-list`
    times both ways.

    ## References

    - [torch.tensor](https://docs.pytorch.org/docs/stable/generated/torch.tensor.html)
    - [torch.from_numpy](https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html)
    - [pytorch#13918: torch.tensor of a list of arrays is slow](https://github.com/pytorch/pytorch/issues/13918)
    """

    code = "MEM214"
    name = "tensor-from-array-list"
    severity = Severity.WARNING
    applicability = Applicability.SAFE
    calls = INFER | TYPED
    needs = Needs(
        {"torch"},
        {"numpy", "imread"},
        {late_pattern(r"[tT]ensor\(|asarray\(")},
        units=[
            {late_pattern(r"[tT]ensor\(|asarray\(")},
            {"np.", "numpy", "imread", "cv2.", "toarray", "get_fdata"},
        ],
        classwide=True,
    )

    def check(self, call: Called) -> Iterator[Draft]:
        """A tensor made of a list whose elements are arrays."""
        given = call.args.get("data" if call.name in INFER else "", 0)
        node = _argument(call.node)
        options = [one for one in alternatives(given) if not _is_empty(one)]
        lists = [arrays for one in options if (arrays := _arrays(one))]
        if node is None or not all(_arrays(one) or is_array(one) for one in options):
            lists = []
        if not lists and not (node and _is_declared(call, node, given)):
            return
        assert node is not None
        arrays = [array for one in lists for array in one]
        function = call.context.function
        tested = function and isinstance(node, ast.Name) and tests_entries(function, node.id)
        if _numbers(given) <= FEW or tested:
            return
        shown = f"`{node.id}`" if isinstance(node, ast.Name) else "this list"
        yield self.finding(
            call.node,
            f"`{call.name}` reads {shown} of NumPy arrays number by number, through Python "
            "objects: some 10 to 100 times slower than copying one array, once there are "
            "thousands of numbers",
            "make one array of the list first: `torch.from_numpy(np.stack(...))`, or "
            "`torch.tensor(np.array(...))`",
            confidence=Confidence.HIGH if lists else Confidence.MEDIUM,
            fix=_fix(call, node, arrays),
        )

    @bench(
        "a tensor is made of arrays of 512 numbers",
        as_is="torch.tensor(arrays)",
        alternative="torch.tensor(np.array(arrays))",
        needs=("torch", "numpy"),
        sizes=Sizes("arrays", quick=64, full=(8, 64, 2000)),
        dtypes=("float32", "float64"),
    )
    def bench(self, size: Size) -> Pair:
        """A list of arrays, by way of Python objects and by way of one array."""
        import numpy as np
        import torch

        with warnings.catch_warnings():
            # It is given once per process: here, so that it does not stand in the report.
            warnings.simplefilter("ignore")
            torch.tensor([np.zeros(1)])

        def operands() -> tuple[Any, ...]:
            draw = np.random.default_rng(0)
            return ([draw.random(512).astype(size.dtype) for _ in range(size.number)],)

        return Pair(
            lambda arrays: torch.tensor(arrays),
            lambda arrays: torch.tensor(np.array(arrays)),
            operands,
            f"{size.dtype}, {size.number} arrays of 512",
        )


def _is_declared(call: Called, node: ast.expr, given: Value) -> bool:
    """A list that the function's annotations say to be of arrays."""
    function = call.context.function
    if function is None or isinstance(function, ast.Lambda):
        return False
    if isinstance(node, (ast.List, ast.Tuple)):
        items = given.items if isinstance(given, Sequence) and given.items else ()
        pairs = list(zip(node.elts, items, strict=False))
        return len(items) == len(node.elts) > 0 and all(
            is_array(value) or (is_untouched(value) and annotated(function, shown, ARRAY))
            for shown, value in pairs
        )
    return is_untouched(given) and annotated(function, node, LIST_OF_ARRAYS)


def _argument(call: ast.expr) -> ast.expr | None:
    if not isinstance(call, ast.Call):
        return None
    named = next((k.value for k in call.keywords if k.arg == "data"), None)
    first = call.args[0] if call.args else named
    return None if isinstance(first, ast.Starred) else first


def _arrays(value: Value) -> list[Value] | None:
    """The arrays in a list of (lists of) arrays; ``None`` where it is anything else."""
    made = made_of(value)
    if made is not None and gives_several(made):
        return [value]
    if not isinstance(value, Sequence) or value.kind == "set":
        return None
    found: list[Value] = []
    for part in _entries(value):
        inner = [part] if is_array(part) else _arrays(part)
        if not inner:
            return None
        found.extend(inner)
    return found


def _is_empty(value: Value) -> bool:
    """A list to which nothing has been added yet: one that is begun anew for each batch."""
    return isinstance(value, Sequence) and value.items == ()


def _entries(value: Sequence) -> list[Value]:
    """What is in a list, without the ``None`` that it was filled with before."""
    if value.items is not None:
        return list(value.items)
    options = [one for one in alternatives(value.element) if one != Const(None)]
    return [join(options)] if options else [value.element]


def _numbers(value: Value) -> float:
    """How many numbers there are; infinitely many where that is not known."""
    if isinstance(value, Sequence) and value.items is not None:
        return sum(map(_numbers, value.items))
    if isinstance(value, Tensor) and value.sizes is not None:
        sizes = [size for size in value.sizes if isinstance(size, int)]
        if len(sizes) == len(value.sizes):
            return prod(sizes)
    return float("inf")


def _fix(call: Called, node: ast.expr, arrays: list[Value]) -> DraftFix | None:
    numpy = name_of_module(call.source, "numpy")
    if not numpy or isinstance(node, ast.GeneratorExp):
        return None
    dtypes = {array.dtype if isinstance(array, Tensor) else None for array in arrays}
    dtype = call.args.get("dtype")
    fixed = call.name in TYPED or (not isinstance(dtype, Absent) and not call.args.open)
    one = len(dtypes) == 1 and None not in dtypes
    return DraftFix(
        f"make one array first: `{numpy}.array(...)`",
        (Replacement(node, f"{numpy}.array({call.source.segment(node)})"),),
        Applicability.SAFE if fixed or one else Applicability.UNSAFE,
    )
