"""Which functions a trace has seen operations of."""

from __future__ import annotations

import pytest

from memlint.tracer.evidence_file import EvidenceFile
from memlint.tracer.functions import ReachedFunctions, around
from memlint.tracer.sites import SiteCount


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("<module>", {"<module>"}),
        ("work", {"<module>", "work"}),
        ("<lambda>", {"<module>"}),
        ("work.<locals>.<listcomp>", {"<module>", "work"}),
        ("Net.forward", {"<module>", "Net", "Net.forward"}),
        (
            "Net.forward.<locals>.inner.<locals>.<lambda>",
            {"<module>", "Net", "Net.forward", "Net.forward.<locals>.inner"},
        ),
    ],
)
def test_a_function_runs_within_what_it_is_defined_in(function: str, expected: set[str]) -> None:
    assert set(around(function)) == expected


def reached(function: str, python: str) -> ReachedFunctions:
    site = SiteCount("jobs/a.py", function, 3, "aten.add.Tensor", 1)
    return ReachedFunctions(EvidenceFile({"python": python}, (), (site,)), lambda path: path[5:])


def test_functions_are_known_by_their_file_and_name() -> None:
    functions = reached("Net.forward", "3.12.1")
    assert functions.has("a.py", "Net.forward")
    assert functions.has("a.py", "<module>")
    assert not functions.has("a.py", "Net.backward")
    assert not functions.has("a.py", "forward")
    assert not functions.has("b.py", "Net.forward")


def test_python_3_10_tells_the_bare_name_only() -> None:
    functions = reached("forward", "3.10.14")
    assert functions.has("a.py", "Net.forward")
    assert not functions.has("a.py", "Net.backward")
