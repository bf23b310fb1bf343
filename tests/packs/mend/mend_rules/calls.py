import ast
import os
from collections.abc import Iterator

from memlint.analysis.events import ProgramStart
from memlint.findings import Applicability
from memlint.rule import Draft, DraftFix, Needs, Replacement, Rule


def _calls(program: ProgramStart, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


class _Mend(Rule):
    """A call is to be replaced by what its argument says."""

    call = ""

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for node in _calls(program, self.call):
            content = ast.literal_eval(node.args[0])
            fix = DraftFix(f"write {content}", (Replacement(node, content),), self.applicability)
            yield self.finding(node, f"{self.call} is called", "Mend it.", fix=fix)


class MendMe(_Mend):
    """A call that may safely be replaced."""

    code, name, call = "MND101", "mend-me", "mend"
    applicability = Applicability.SAFE
    needs = Needs({"mend"})


class MendUnsafely(_Mend):
    """A call whose replacement may change results."""

    code, name, call = "MND102", "mend-unsafely", "mend_unsafely"
    applicability = Applicability.UNSAFE
    needs = Needs({"mend_unsafely"})


class MendForShow(_Mend):
    """A call whose replacement is a suggestion."""

    code, name, call = "MND103", "mend-for-show", "mend_for_show"
    applicability = Applicability.DISPLAY
    needs = Needs({"mend_for_show"})


class Sore(Rule):
    """A call that cannot be fixed."""

    code, name = "MND104", "sore-call"
    needs = Needs({"sore"})

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for node in _calls(program, "sore"):
            yield self.finding(node, "sore is called", "Do not call it.")


class RenameMe(Rule):
    """A call with another name; its fix speaks of the arguments too."""

    code, name = "MND105", "rename-me"
    applicability = Applicability.SAFE
    needs = Needs({"rename_me"})

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for node in _calls(program, "rename_me"):
            content = program.source.segment(node).replace("rename_me", "renamed", 1)
            fix = DraftFix("rename it", (Replacement(node, content),), Applicability.SAFE)
            yield self.finding(node, "rename_me is called", "Rename it.", fix=fix)


class MendLoop(Rule):
    """A loop whose fix is the whole statement written anew."""

    code, name = "MND106", "mend-loop"
    applicability = Applicability.SAFE
    needs = Needs({"mend_loop"})

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for node in ast.walk(program.tree):
            if isinstance(node, ast.For) and ast.unparse(node.iter).startswith("mend_loop"):
                content = program.source.segment(node).replace("mend_loop", "sound_loop", 1)
                fix = DraftFix("loop soundly", (Replacement(node, content),), Applicability.SAFE)
                yield self.finding(node, "loop over mend_loop", "Loop soundly.", fix=fix)


class Deadly(Rule):
    """Ends the process that reads a certain name."""

    code, name = "MND107", "deadly-name"
    needs = Needs({"die_now"})

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for _ in _calls(program, "die_now"):
            os.abort()
        yield from ()
