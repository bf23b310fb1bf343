"""MEM501 concat-in-loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlint.analysis.accumulation import Accumulation, accumulation
from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.places.growing import may_grow, may_join
from memlint.analysis.uses import uses_in
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, Needs, Rule
from memlint.tracer.operands import megabytes
from memlint.tracer.records import Growth
from memlint.tracer.sightings import JoinOnce, Sighting

JOINING = {
    "torch": ("cat", "concat", "concatenate", "hstack", "vstack", "dstack", "row_stack",
              "column_stack"),
    "numpy": ("append", "concat", "concatenate", "hstack", "vstack", "dstack", "row_stack",
              "column_stack", "r_", "c_"),
    "jax.numpy": ("append", "concat", "concatenate", "hstack", "vstack", "dstack",
                  "column_stack"),
    "cupy": ("append", "concatenate", "hstack", "vstack", "dstack", "column_stack"),
    "pandas": ("concat",),
}  # fmt: skip
# What tokens that are decoded one by one, and the keys and values kept of them, are called.
DECODED = late_pattern(
    r"(^|_)(k|v|kv|keys?|values?|past|cache|ids?|idx|tokens?|generated|decoded|prompts?|"
    r"input_ids|decoder_input_ids|ys|tgt|toks?)(\d*|_cache|_states?|\[.*)$|cache|past_key"
)
LIST = "append the parts to a list and concatenate it once after the loop"
STATIC = (
    "where the final size is known, allocate it once (`torch.empty`, `np.empty`) and write each "
    "part into its slice"
)
# Of what runs: fewer steps are no growth, and fewer bytes cost nothing.
FEWEST_STEPS, LEAST_COPIED = 8, 1 << 18


class ConcatInLoop(Rule):
    """An array is made longer by concatenation in each iteration of a loop.

    ## What it does

    Reports `torch.cat`, `np.concatenate`, `np.append`, `np.vstack`, `np.r_`, `pd.concat` and
    their kin where the result replaces one of the operands, so that each iteration of a loop
    copies all that was collected before: `out = torch.cat([out, x])`. The variable may be an
    attribute or an item (`self.rows`, `out["x"]`), the concatenation may stand in a function
    that the loop calls, and the new array may take the place of the old one by way of another
    variable. Of an attribute that a method such as `update` or `forward` makes longer, the
    method itself is reported.

    ## Why it is slow

    Neither library can make an array longer in place: each concatenation allocates a new one and
    copies both operands. For n parts that is about n²/2 parts copied, where collecting them
    costs n. Measured on two cores of an AMD Zen 3 (PyTorch 2.14, NumPy 2.4), on rows of 256
    float32 with torch: 24 times the time of a list with one `cat` at the end for 200 rows, 87
    times for 1000, 176 times for 4000; with NumPy 16 000 appends take 553 ms against 26 ms by a
    list and 5 ms into an array that is allocated once. The old and the new array exist at the
    same time, and the freed ones have odd sizes that the next ones do not fit.

    Tokens that are decoded one at a time, and caches of keys and values, need the whole array in
    each step: there a list does not help, an array of the full length does (3 times faster at 256
    steps and 11 times at 1024, with 16 heads of 64). Some programs grow these on purpose, so they
    are reported as *info*.

    ## When it is silent

    - the variable is made anew in each iteration, or the result goes elsewhere;
    - what is joined is a window of constant size: `torch.cat([buf[1:], x])`, or a slice of the
      result is taken;
    - the loop is known to run 16 times or less, or runs over the layers of a model (dense and
      skip connections), or over the axes of an array;
    - parts are appended to a list and joined once;
    - `cat([x, x])` doubles: that takes few steps.

    ## Example

    ```python
    import torch


    def embed(model, chunks):
        bank = torch.empty(0, model.width)
        for chunk in chunks:
            bank = torch.cat([bank, model.encode(chunk)])
        return bank
    ```

    ## Use instead

    ```python
    import torch


    def embed(model, chunks):
        parts = []
        for chunk in chunks:
            parts.append(model.encode(chunk))
        return torch.cat(parts)
    ```

    ## Fix safety

    No fix is offered: the variable must become a list wherever the loop and what comes after it
    use it.

    ## How to confirm

    Print the size of the result over a few iterations: it grows, and so does the time of one
    iteration. In a profile of a long run `aten::cat` or `memcpy` rises from nothing to the top. A
    trace replays concatenations from all over the growth against a single one of as many parts.
    `memlint bench concat-in-loop` measures it on your machine.

    ## References

    - [numpy.append: "append does not occur in-place"](https://numpy.org/doc/stable/reference/generated/numpy.append.html)
    - [torch.cat](https://docs.pytorch.org/docs/stable/generated/torch.cat.html)
    - [deepmd-kit: do not loop using np.append](https://github.com/deepmodeling/deepmd-kit/pull/2259)
    """

    code = "MEM501"
    name = "concat-in-loop"
    severity = Severity.WARNING
    calls = frozenset(f"{lib}.{name}" for lib, names in JOINING.items() for name in names)
    needs = Needs(
        {"torch", "numpy", "jax", "cupy", "pandas"},
        {"cat", "stack", "append", "r_", "c_"},
        {"for ", "while ", "self."},
        units=[{may_join}],
        places=may_grow,
    )

    def check_start(self, program: ProgramStart) -> Iterator[Draft]:
        """Keep the program's tree: it tells what stands around a call."""
        self._tree = program.tree
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """A concatenation whose result takes the place of what went in."""
        if called.name not in self.calls:
            return
        found = accumulation(called, uses_in(self._tree))
        if found is None:
            return
        decoded = found.read or DECODED.search(found.name) is not None
        small = found.loop is not None and found.loop.role == "epoch"
        yield self.finding(
            called.node,
            _message(called, found, decoded=decoded),
            STATIC if decoded else f"{LIST}; {STATIC}",
            severity=Severity.INFO if decoded or small else Severity.WARNING,
            confidence=Confidence.HIGH if found.loop is not None else Confidence.MEDIUM,
        )

    def observe(self, growth: Growth) -> Iterator[Sighting]:
        """A concatenation that takes up again and again what it has made before."""
        final, rounds = growth.largest.array.nbytes, max(growth.rounds, 1)
        if growth.count < FEWEST_STEPS or growth.nbytes < LEAST_COPIED:
            return
        yield Sighting(
            self,
            growth.site,
            f"an array is made longer here, {growth.count / rounds:,.4g} times, by copying all "
            f"that it holds: {megabytes(growth.nbytes / rounds)} are written for one of "
            f"{megabytes(final)}",
            f"{LIST}; {STATIC}",
            self.severity,
            growth.count,
            growth.steps,
            growth.nbytes,
            claims=(JoinOnce(growth),),
        )

    @bench(
        "collects rows of 256 float32, one in each step",
        as_is="out = torch.cat([out, row])",
        alternative="a list, joined by one torch.cat",
        needs=("torch",),
        sizes=Sizes("steps", quick=200, full=(16, 200, 1000)),
    )
    def bench_rows(self, size: Size) -> Pair:
        """The whole is needed at the end alone."""
        import torch

        from memlint.bench.tensors import normal

        def growing(rows: Any) -> Any:
            out = torch.empty(0, 256, device=size.device)
            for row in rows:
                out = torch.cat([out, row])  # memlint: ignore[concat-in-loop]
            return out

        def joined(rows: Any) -> Any:
            parts = []
            for row in rows:
                parts.append(row)  # noqa: PERF402 - one comes in each step
            return torch.cat(parts)

        def operands() -> tuple[Any, ...]:
            return (normal(size, size.number, 256).split(1),)

        return Pair(growing, joined, operands, f"{size.number} steps", settle=size.settle)

    @bench(
        "decodes: a cache of 16 heads of 64 float32 takes up one position in each step",
        as_is="cache = torch.cat([cache, new], dim=2)",
        alternative="a slice of a cache of full length",
        needs=("torch",),
        sizes=Sizes("steps", quick=128, full=(16, 128, 256, 512)),
    )
    def bench_cache(self, size: Size) -> Pair:
        """The whole is needed in each step."""
        import torch

        from memlint.bench.tensors import normal

        def growing(positions: Any) -> Any:
            cache = positions[0]
            for position in positions[1:]:
                cache = torch.cat([cache, position], dim=2)  # memlint: ignore[concat-in-loop]
            return cache

        def allocated(positions: Any) -> Any:
            whole = torch.empty(1, 16, size.number, 64, device=size.device)
            cache = whole
            for step, position in enumerate(positions):
                whole[:, :, step : step + 1] = position
                cache = whole[:, :, : step + 1]
            return cache

        def operands() -> tuple[Any, ...]:
            return (normal(size, 1, 16, size.number, 64).split(1, dim=2),)

        return Pair(growing, allocated, operands, f"{size.number} steps", settle=size.settle)


def _message(called: Called, found: Accumulation, *, decoded: bool) -> str:
    when = "in each iteration of the loop"
    if found.loop is None:
        when = f"each time `{called.context.name}` is called"
    text = (
        f"`{found.name}` is made longer by concatenation {when}: all that it holds already is "
        "copied again, so the bytes copied grow with the square of its length"
    )
    if decoded:
        text += "; this matters for long sequences"
    return text
