import ast
import os
import time
from collections.abc import Iterator
from pathlib import Path

from memlint.analysis.events import ProgramStart
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Applicability, Severity
from memlint.rule import Draft, DraftFix, Needs, Option, Related, Replacement, Rule
from toy_rules.calls import assignment, calls


class FlaggedCall(Rule):
    """A call is flagged.

    ## What it does
    Flags calls of `flag_me`.
    """

    code = "TOY101"
    name = "flagged-call"
    applicability = Applicability.SAFE
    needs = Needs({"flag_me"})
    options = {"limit": Option(3, "How much is too much."), "strict": Option(False, "Be strict.")}

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        born = assignment(program.tree, "origin")
        for call in calls(program.tree, "flag_me"):
            yield self.finding(
                call,
                f"this call is flagged, limit {self.option('limit')}",
                "call spare_me instead",
                related=[] if born is None else [Related(born, "born here")],
                fix=DraftFix(
                    "call spare_me",
                    (Replacement(call.func, "spare_me"),),
                    Applicability.SAFE,
                ),
            )

    @bench(
        "adds up numbers",
        as_is="as often as the size says",
        alternative="once",
        needs=(),
        sizes=Sizes("times", quick=4, full=(4, 8)),
    )
    def bench_sum(self, size: Size) -> Pair:
        return _sums(size.number)

    @bench(
        "adds up numbers of a type",
        as_is="twice",
        alternative="twice, too",
        needs=(),
        sizes=Sizes("times", quick=2, full=(2,)),
        dtypes=("float32", "float64"),
    )
    def bench_typed(self, size: Size) -> Pair:
        return _sums(1)


def _sums(times: int) -> Pair:
    def operands() -> tuple[list[int]]:
        return (list(range(2000)),)

    return Pair(
        lambda numbers: sum(sum(numbers) for _ in range(times)) // times,
        sum,
        operands,
        "2000 numbers",
    )


class GraveCall(Rule):
    """A call is a grave error."""

    code = "TOY102"
    name = "grave-call"
    severity = Severity.ERROR
    needs = Needs({"grave"})

    @bench(
        "adds up numbers", as_is="four times", alternative="once", needs=(),
        sizes=Sizes("times", quick=4, full=(4,)),
    )  # fmt: skip
    def bench_quick(self, size: Size) -> Pair:
        return _sums(size.number)

    @bench(
        "takes its time", as_is="for long", alternative="for long, too", needs=(),
        sizes=Sizes("times", quick=1, full=(1,)), quick=False,
    )  # fmt: skip
    def bench_slow(self, size: Size) -> Pair:
        Path(os.environ["TOY_STARTED"]).touch()
        time.sleep(30)
        return _sums(1)

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for call in calls(program.tree, "grave"):
            yield self.finding(call, "this call is grave", "do not call it")


class LightCall(Rule):
    """A call is a light matter."""

    code = "TOY103"
    name = "light-call"
    severity = Severity.INFO
    needs = Needs({"light"})

    @bench(
        "fails", as_is="at once", alternative="never", needs=(),
        sizes=Sizes("times", quick=1, full=(1,)),
    )  # fmt: skip
    def bench(self, size: Size) -> Pair:
        raise ValueError("this bench\x1b[2J is broken")

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for call in calls(program.tree, "light"):
            yield self.finding(call, "this call is light", "call it less")


class ShyCall(Rule):
    """A call is flagged only on demand."""

    code = "TOY104"
    name = "shy-call"
    default_on = False
    needs = Needs({"shy"})

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for call in calls(program.tree, "shy"):
            yield self.finding(call, "this call is shy", "leave it alone")


class SlowRule(Rule):
    """A rule takes its time."""

    code = "TOY105"
    name = "slow-rule"
    needs = Needs({"dawdle"})

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for call in calls(program.tree, "dawdle"):
            seconds, started = (ast.literal_eval(argument) for argument in call.args)
            Path(started).touch()
            time.sleep(seconds)
            yield self.finding(call, "this took a while", "be patient")
