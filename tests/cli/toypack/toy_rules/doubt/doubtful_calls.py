from collections.abc import Iterator

from memlint.analysis.events import ProgramStart
from memlint.findings import Confidence
from memlint.rule import Draft, Needs, Rule
from toy_rules.calls import calls


class DoubtfulCall(Rule):
    """A call may be bad."""

    code = "TOY201"
    name = "doubtful-call"
    needs = Needs({"doubt_me"})

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for call in calls(program.tree, "doubt_me"):
            yield self.finding(call, "this call may be bad", "be sure", confidence=Confidence.LOW)


class LikelyCall(Rule):
    """A call is likely bad."""

    code = "TOY202"
    name = "likely-call"
    needs = Needs({"suspect_me"})

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for call in calls(program.tree, "suspect_me"):
            yield self.finding(
                call, "this call is likely bad", "be sure", confidence=Confidence.MEDIUM
            )
