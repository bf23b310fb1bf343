import ast
import time
from collections.abc import Iterator
from pathlib import Path

from memlint.analysis.events import ProgramStart
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


class GraveCall(Rule):
    """A call is a grave error."""

    code = "TOY102"
    name = "grave-call"
    severity = Severity.ERROR
    needs = Needs({"grave"})

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for call in calls(program.tree, "grave"):
            yield self.finding(call, "this call is grave", "do not call it")


class LightCall(Rule):
    """A call is a light matter."""

    code = "TOY103"
    name = "light-call"
    severity = Severity.INFO
    needs = Needs({"light"})

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
