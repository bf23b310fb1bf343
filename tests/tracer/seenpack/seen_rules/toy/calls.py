import ast
from collections.abc import Iterator

from memlint.analysis.events import ProgramStart
from memlint.rule import Draft, Needs, Related, Rule
from memlint.tracer.records import Operation
from memlint.tracer.sightings import Sighting


def methods(tree: ast.Module, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if called == name:
                yield node


class Reshaped(Rule):
    """A reshape that may copy."""

    code = "SEEN101"
    name = "reshaped"
    needs = Needs({"reshape"})

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for call in methods(program.tree, "reshape"):
            yield self.finding(call, "this may copy", "do not reshape")

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        if operation.hidden:
            yield Sighting(
                self,
                operation.site,
                "this copies",
                "do not reshape",
                self.severity,
                operation.hidden,
                operation.steps,
                operation.operands[0].array.nbytes * operation.hidden,
            )


class Filled(Rule):
    """An array is made here and filled elsewhere, where it can be seen."""

    code = "SEEN102"
    name = "filled"
    needs = Needs({"make_array"})

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        fills = [Related(one, "filled here") for one in methods(program.tree, "fill_")]
        for call in methods(program.tree, "make_array"):
            yield self.finding(call, "this is filled", "fill it at once", related=fills)

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        if operation.short == "fill_":
            yield Sighting(
                self, operation.site, "filled", "fill it at once", self.severity, operation.count,
                operation.steps, operation.operands[0].array.nbytes * operation.count,
            )  # fmt: skip


class OnDevice(Rule):
    """Something that matters on a GPU alone."""

    code = "SEEN103"
    name = "on-device"
    needs = Needs({"sum"})
    needs_device = "cuda"

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for call in methods(program.tree, "sum"):
            yield self.finding(call, "slow on a GPU", "leave it")

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        yield from ()


class Unobserved(Rule):
    """Something that nothing observes."""

    code = "SEEN104"
    name = "unobserved"
    needs = Needs({"mean"})

    def check(self, program: ProgramStart) -> Iterator[Draft]:
        for call in methods(program.tree, "mean"):
            yield self.finding(call, "nobody looks", "look")
