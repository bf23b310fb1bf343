"""MEM506 implicit-float64."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memlint.analysis.casts import goes_into_doubles, is_cast_at_once
from memlint.analysis.edits import call_with_keyword, followed_by
from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.float64_places import may_be_float64
from memlint.analysis.knowledge.float64 import STRONG_SCALARS
from memlint.analysis.knowledge.kinds import dtype_of
from memlint.analysis.precision import Precision, precision_of
from memlint.analysis.shown import shown
from memlint.analysis.uses import uses_in
from memlint.analysis.values import (
    Absent,
    Const,
    Linear,
    Made,
    Tensor,
    Value,
    alternatives,
    deps_of,
    made_of,
)
from memlint.findings import Applicability, Confidence, Severity
from memlint.rule import Draft, DraftFix, Needs, Rule

MAKERS = ("torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.asarray")
# What makes float64, or a scalar of 64 bits, in NumPy.
SOURCE = re.compile(
    r"(?<!torch\.)(?<!math\.)\b(zeros|ones|empty|eye|identity|full|linspace|logspace|geomspace|tri|"
    r"loadtxt|genfromtxt|hanning|hamming|blackman|bartlett|kaiser|randn?|random|random_sample|"
    r"sample|ranf|normal|uniform|standard_normal|beta|gamma|exponential|laplace|lognormal|rayleigh|"
    r"dirichlet|multivariate_normal|standard_exponential|triangular|vonmises|array|arange|sqrt|exp|"
    r"log|log2|log10|sin|cos|tan|tanh|float64|int64|power|prod)\s*\("
)
OPERATORS = tuple(f"operator.{name}" for name in ("add", "subtract", "multiply", "true_divide"))
CALCULATIONS = frozenset({*OPERATORS, "operator.pow", "operator.floor_divide", "builtins.max",
                          "builtins.min", "builtins.abs"})  # fmt: skip
# What gives a number of Python, whatever it is given.
NUMBERS = frozenset({"builtins.len", "builtins.int", "builtins.float"})
# What gives an array of the dtype that it is given.
ARRAYS = frozenset({"numpy.asarray", "numpy.array", "numpy.ascontiguousarray", "numpy.asanyarray"})
# Makers whose dtype can be given by its name alone.
MAKING = frozenset(f"numpy.{name}" for name in ("linspace", "logspace", "geomspace", "tri", "eye"))
DEPTH = 6
WANTED = re.compile(
    r"set_default_dtype\(\s*(torch\.)?(float64|double)|set_default_tensor_type\([^)]*Double|"
    r"jax_enable_x64"
)


class ImplicitFloat64(Rule):
    """An array is float64 because nobody said otherwise.

    ## What it does

    Reports

    - `torch.from_numpy`, `torch.tensor` and `torch.as_tensor` of an array of NumPy that is
      float64 by default: from `np.random.rand`, `np.linspace`, `np.zeros`, window functions, text
      files, pictures divided by 255, and what is computed from them;
    - a float32 array that meets a NumPy scalar (`x * np.sqrt(2)`, with NumPy 2) or an array of
      integers (`x * np.arange(n)`), and becomes float64.

    ## Why it is slow

    float64 takes twice the memory, and makes float64 of all that it meets. Measured with NumPy
    2.4 on an AMD Zen 4: adding two arrays of 16 million numbers took 13 ms in float32 and 24 ms
    in float64. The copy to a GPU is twice as large, and most GPUs compute float64 many times
    slower than float32.

    NumPy's defaults are float64, torch's are float32. Since NumPy 2 a scalar of NumPy counts with
    its dtype: `np.sqrt(2)` is float64, and so is a float32 array times it; `math.sqrt(2)`, `2.0`
    and `np.pi` are Python floats and change nothing.

    ## When it is silent

    - the tensor is cast at once: `.float()`, `.to(torch.float32)`, `dtype=`;
    - float64 was asked for by name, is torch's default dtype in this program, or that of the
      model that the tensor is given to;
    - the array's dtype is not known, or it holds integers;
    - the tensor is only written into another one, or compared in a test;
    - the value goes to `torch.linalg` and such, where the digits are needed.

    ## Example

    ```python
    import numpy as np
    import torch


    def positions(n, device):
        return torch.from_numpy(np.linspace(0, 1, n)).to(device)
    ```

    ## Use instead

    ```python
    import numpy as np
    import torch


    def positions(n, device):
        return torch.from_numpy(np.linspace(0, 1, n, dtype=np.float32)).to(device)
    ```

    ## Fix safety

    Unsafe: the numbers are rounded to float32, and what was float64 downstream is float32 then.

    ## How to confirm

    Print the `dtype` of the tensor where it is used.

    ## References

    - [NEP 50: promotion rules for Python scalars](https://numpy.org/neps/nep-0050-scalar-promotion.html)
    - [torch.from_numpy](https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html)
    """

    code = "MEM506"
    name = "implicit-float64"
    severity = Severity.INFO
    applicability = Applicability.UNSAFE
    calls = frozenset({*MAKERS, *OPERATORS})
    needs = Needs(
        {"numpy"},
        units=[
            {
                re.compile(r"\b(from_numpy|as_tensor|tensor|torch\.asarray)\s*\("),
                re.compile(r"import .*\b(from_numpy|as_tensor|tensor)\b"),
                re.compile(r"(?<!torch\.)\bfloat32\b"),
            },
        ],
        values=[{SOURCE, re.compile(r"numpy import"), "Image.open", "imread"}],
        places=may_be_float64,
    )

    def check_start(self, program: ProgramStart) -> Iterator[Draft]:
        """Keep the program's tree: it tells what is done with a value."""
        self._tree = program.tree
        self._wanted = WANTED.search(program.source.text) is not None
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """A tensor or an array that is float64 by default."""
        if self._wanted or re.match(r"(test_|\w+\.test_)", called.context.name):
            return
        if called.name in MAKERS:
            yield from self._tensor(called)
        else:
            yield from self._promoted(called)

    def _tensor(self, called: Called) -> Iterator[Draft]:
        keys = {"torch.from_numpy": None, "torch.asarray": None}
        dtype = called.args.get("dtype", keys.get(called.name, 1))
        if called.name == "torch.from_numpy":
            dtype = Absent()
        if called.args.open or not isinstance(dtype, Absent):
            return
        array = called.args.positional[0] if called.args.positional else Absent()
        if not _is_array(array) or precision_of(array) is not Precision.DEFAULT:
            return
        uses = uses_in(self._tree)
        if is_cast_at_once(called.node, uses) or goes_into_doubles(called.node, uses):
            return
        given = called.node.args if isinstance(called.node, ast.Call) else []
        yield self.finding(
            called.node,
            f"{shown(given[0]) if given else 'the array'} is float64, NumPy's default, and so is "
            "the tensor: twice the memory, and float64 for all that is computed with it",
            "make the array with `dtype=np.float32`, or cast the tensor with `.float()` at once",
            fix=_fix(called),
        )

    def _promoted(self, called: Called) -> Iterator[Draft]:
        if len(called.args.positional) != 2:
            return
        for array, other in (called.args.positional, called.args.positional[::-1]):
            if not _is_single(array):
                continue
            what = _promotes(other)
            if what and not is_cast_at_once(called.node, uses_in(self._tree)):
                yield self.finding(
                    called.node,
                    f"a float32 array becomes float64 here: {what}",
                    "use a Python number (`math.sqrt`, `float(...)`), or an array of float32",
                    confidence=Confidence.HIGH,
                )
                return


def _is_array(value: Value) -> bool:
    """An array of NumPy, not a list of them or a number."""
    return all(
        (isinstance(one, Tensor) and one.lib in ("numpy", ""))
        or ((made := made_of(one)) is not None and not made.name.startswith("builtins."))
        for one in alternatives(value)
    )


def _is_single(value: Value, depth: int = DEPTH) -> bool:
    """Whether a value is an array of float32, not a number."""
    return depth > 0 and all(_one_is_single(one, depth) for one in alternatives(value))


def _one_is_single(value: Value, depth: int) -> bool:
    made = made_of(value)
    if made is not None and _is_promoted(made, depth):
        return False
    if isinstance(value, Tensor) and (value.dtype is not None or made is None):
        return value.lib == "numpy" and value.dtype == "float32" and value.sizes != ()
    if made is None:
        return False
    if made.name in MAKING:
        return dtype_of(made.get("dtype")) == "float32"
    if made.name in ARRAYS:
        return dtype_of(made.get("dtype", 1)) == "float32"
    if made.name in OPERATORS and len(made.inputs) == 2:
        kinds = {precision_of(one) for one in made.inputs}
        single = any(_is_single(one, depth - 1) for one in made.inputs)
        return single and kinds <= {Precision.SINGLE, Precision.WEAK}
    return False


def _is_promoted(made: Made, depth: int) -> bool:
    """Whether an operation made float64 of a float32 array already: that was told there."""
    if depth == 0 or made.name not in OPERATORS:
        return False
    if any(map(_promotes, made.inputs)):
        return True
    inner = (made_of(one) for one in made.inputs)
    return any(_is_promoted(one, depth - 1) for one in inner if one is not None)


def _promotes(value: Value) -> str:
    """Why a float32 array that meets ``value`` is float64 afterwards, if it is."""
    for one in alternatives(value):
        made = made_of(one)
        if made is None:
            return ""
        if made.name == "numpy.arange" and precision_of(one) is Precision.INTEGER:
            return "the other operand is an array of 64-bit integers"
        if made.name in STRONG_SCALARS and _is_scalar(made):
            name = "np." + made.name.removeprefix("numpy.")
            return f"`{name}(...)` is a 64-bit scalar, which counts with its dtype since NumPy 2"
    return ""


def _is_scalar(made: Made) -> bool:
    if made.name in ("numpy.float64", "numpy.int64"):
        return True
    written = made.node.args if isinstance(made.node, ast.Call) else []
    return bool(made.inputs) and (
        all(map(_is_number, made.inputs)) or all(map(_is_written_number, written))
    )


def _is_written_number(node: ast.expr) -> bool:
    """Whether an expression is one of numbers and constants: ``2 / np.pi``."""
    match node:
        case ast.Constant(value=value):
            return type(value) in (int, float)
        case ast.BinOp(left=left, right=right):
            return _is_written_number(left) and _is_written_number(right)
        case ast.UnaryOp(operand=operand):
            return _is_written_number(operand)
        case ast.Attribute(value=ast.Name(id="np" | "numpy" | "math"), attr=name):
            return name in ("pi", "e", "euler_gamma", "tau")
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"))):
            return True
    return False


def _is_number(value: Value, depth: int = DEPTH) -> bool:
    """Whether a value is a number of Python, or computed from such numbers."""
    if isinstance(value, (Const, Linear)):
        return True
    made = made_of(value)
    if made is None:
        deps = deps_of(value)
        return bool(deps) and all(one.kind == "size" for one in deps)
    if depth == 0:
        return False
    if made.name in NUMBERS:
        return True
    return made.name in CALCULATIONS and all(_is_number(one, depth - 1) for one in made.inputs)


def _fix(called: Called) -> DraftFix | None:
    if not isinstance(called.node, ast.Call):
        return None
    if called.name == "torch.from_numpy":
        edit = followed_by(called.source, called.node, ".float()")
        return DraftFix("cast to float32: `.float()`", (edit,), Applicability.UNSAFE)
    name = ast.unparse(called.node.func).rpartition(".")[0]
    if not name:
        return None
    cast = call_with_keyword(called.source, called.node, "dtype", f"{name}.float32")
    if cast is None:
        return None
    return DraftFix("make it float32: `dtype=`", (cast,), Applicability.UNSAFE)
