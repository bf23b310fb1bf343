"""MEM506 implicit-float64."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from memlint.analysis.casts import goes_into_doubles, is_cast_at_once
from memlint.analysis.edits import call_with_keyword, followed_by
from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.precision import Precision, precision_of
from memlint.analysis.promotion import OPERATORS, is_single, promotes
from memlint.analysis.shown import shown
from memlint.analysis.uses import uses_in
from memlint.analysis.values import (
    Absent,
    Tensor,
    Value,
    alternatives,
    made_of,
)
from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, DraftFix, Needs, Rule
from memlint.tracer.operands import LEAST_BYTES, spell
from memlint.tracer.records import Operand, Operation
from memlint.tracer.sightings import Claim, Sighting

MAKERS = ("torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.asarray")
# What makes float64, or a scalar of 64 bits, in NumPy.
SOURCE = late_pattern(
    r"(?<!torch\.)(?<!math\.)\b(zeros|ones|empty|eye|identity|full|linspace|logspace|geomspace|tri|"
    r"loadtxt|genfromtxt|hanning|hamming|blackman|bartlett|kaiser|randn?|random|random_sample|"
    r"sample|ranf|normal|uniform|standard_normal|beta|gamma|exponential|laplace|lognormal|rayleigh|"
    r"dirichlet|multivariate_normal|standard_exponential|triangular|vonmises|array|arange|sqrt|exp|"
    r"log|log2|log10|sin|cos|tan|tanh|float64|int64|power|prod)\s*\("
)
WANTED = late_pattern(
    r"set_default_dtype\(\s*(torch\.)?(float64|double)|set_default_tensor_type\([^)]*Double|"
    r"jax_enable_x64"
)
NARROW = frozenset({"float32", "float16", "bfloat16"})


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

    Print the `dtype` of the tensor where it is used. A trace replays the operation in the narrower
    type; what follows it in double precision is not counted in.

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
                late_pattern(
                    r"(?:from_numpy|tensor(?:(?<!\wtensor)|(?<=\Was_tensor))|torch\.asarray)\s*\("
                ),
                late_pattern(r"import .*\b(from_numpy|as_tensor|tensor)\b"),
                late_pattern(r"float32\b(?<!torch.float32)"),
            },
        ],
        values=[{SOURCE, late_pattern(r"numpy import"), "Image.open", "imread"}],
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
        uses = uses_in(self._tree)
        for array, other in (called.args.positional, called.args.positional[::-1]):
            if not is_single(array, uses):
                continue
            what = promotes(other, uses)
            if what and not is_cast_at_once(called.node, uses):
                yield self.finding(
                    called.node,
                    f"a float32 array becomes float64 here: {what}",
                    "use a Python number (`math.sqrt`, `float(...)`), or an array of float32",
                    confidence=Confidence.HIGH,
                )
                return

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        """Work of single precision, or less, that an array of double precision enters."""
        if operation.short.endswith("_"):
            return  # what is summed up in double precision was made for that
        wide = [n for n, one in enumerate(operation.operands) if _is_one_of(one, {"float64"})]
        narrow = [one for one in operation.operands if _is_one_of(one, NARROW)]
        results = [one for one in operation.results if _is_one_of(one, {"float64"})]
        if not (wide and narrow and results) or results[0].array.nbytes < LEAST_BYTES:
            return
        maker = operation.makers.get(wide[0])
        # Half of what is read and written would do.
        nbytes = results[0].array.nbytes * operation.count
        yield Sighting(
            self,
            operation.site,
            f"`{operation.short}` of {narrow[0].dtype} and {spell(operation.operands[wide[0]])} "
            "gives float64: twice the bytes, and on a GPU a fraction of the speed, from here on",
            f"make it {narrow[0].dtype} where it comes from",
            self.severity,
            operation.count,
            operation.steps,
            nbytes,
            related=((maker.site, "the float64 comes from here"),) if maker is not None else (),
            claims=(Claim(operation, tuple(wide), form=narrow[0].dtype),),
        )


def _is_array(value: Value) -> bool:
    """An array of NumPy, not a list of them or a number."""
    return all(
        (isinstance(one, Tensor) and one.lib in ("numpy", ""))
        or ((made := made_of(one)) is not None and not made.name.startswith("builtins."))
        for one in alternatives(value)
    )


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


def _is_one_of(operand: Operand, dtypes: Collection[str]) -> bool:
    """Whether an operand decides the type of a result: numbers without axes do not."""
    return operand.dtype in dtypes and bool(operand.array.shape)
