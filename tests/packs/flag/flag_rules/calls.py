import ast
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from memlint.analysis.events import ProgramStart
from memlint.findings import Applicability, Confidence
from memlint.rule import Draft, DraftFix, Needs, Related, Replacement, Rule


def _calls(program: ProgramStart, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


class FlagMe(Rule):
    """A call of flag_me."""

    code, name = "TST101", "flag-me"
    applicability = Applicability.SAFE
    needs = Needs({"flag_me"})

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for node in _calls(program, "flag_me"):
            yield self.finding(
                node,
                "flag_me is called",
                "Do not call it.",
                related=[Related(node.func, "the name")],
                fix=DraftFix("Drop it", (Replacement(node, "None"),), Applicability.SAFE),
            )


class FlagLoop(Rule):
    """A loop over flag_loop()."""

    code, name = "TST102", "flag-loop"
    needs = Needs({"flag_loop"})
    supersedes = ("flag-me",)

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for node in ast.walk(program.tree):
            if isinstance(node, ast.For) and ast.unparse(node.iter).startswith("flag_loop"):
                yield self.finding(node, "loop over flag_loop", "Do not loop.")


class Doubtful(Rule):
    """A call of doubtful, with low confidence."""

    code, name = "TST103", "doubtful-call"
    needs = Needs({"doubtful"})

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for node in _calls(program, "doubtful"):
            yield self.finding(node, "doubtful", "Look at it.", confidence=Confidence.LOW)


class Misbehaving(Rule):
    """Raises, dies or hangs where a program asks for it."""

    code, name = "TST201", "misbehaving"
    needs = Needs({"misbehave_"})

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for node in ast.walk(program.tree):
            if isinstance(node, ast.Name) and node.id.startswith("misbehave_"):
                how = node.id.removeprefix("misbehave_")
                _misbehave(how)
                yield from self._odd_findings(how, node, program.tree)

    def _odd_findings(self, how: str, node: ast.Name, tree: ast.Module) -> Iterator[Any]:
        sound = self.finding(node, "sound", "Nothing.")
        nowhere = ast.copy_location(ast.Name("x"), node)
        nowhere.lineno = nowhere.end_lineno = 10_000
        odd = {
            "none": None,
            "module": replace(sound, node=tree),
            "far": replace(sound, node=nowhere),
            "number": replace(sound, message=5),
            "related": replace(sound, related=(Related(tree, "where"),)),
            "word": replace(sound, severity="error"),
        }
        if how in odd:
            yield odd[how]


def _misbehave(how: str) -> None:
    if how == "raise":
        raise KeyError("from the rule")
    if how == "abort":
        os.abort()
    if how == "exit":
        os._exit(7)
    if how == "system_exit":
        raise SystemExit(3)
    if how == "memory":
        raise MemoryError
    if how == "print":
        print("noise on standard output")
    if how == "hang":
        open("hanging", "w").close()
        time.sleep(600)
