"""The pages of rules that speak of runs alone: complete, and their examples show what they say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

pytest.importorskip("torch")

from memlint.linter.rules import all_rules
from memlint.report.rule_page import body
from memlint.rule import Rule, observers
from tests.rules.linting import PACK, SECTIONS
from tests.tracer.command import Command

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
TRACING = "with memlint.trace():"
RULES = [
    rule
    for rule in all_rules().rules.values()
    if rule.trace_only and rule.__module__.startswith(f"{PACK}.")
]


def program(rule: type[Rule], heading: str) -> str:
    _, _, rest = body(rule).partition(f"## {heading}\n")
    (text,) = BLOCK.findall(rest.partition("\n## ")[0])
    return str(text)


RUNNING = [rule for rule in RULES if TRACING in program(rule, "Example")]


def seen(text: str, tmp_path: Path) -> set[str]:
    """The codes of what a program that traces itself shows."""
    assert TRACING in text
    output = tmp_path / "trace.json"
    quiet = f"memlint.trace(replay=False, quiet=True, output={str(output)!r})"
    script = tmp_path / "program.py"
    script.write_text(text.replace("memlint.trace()", quiet), encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")
    return {one["code"] for one in Command(tmp_path).load("trace.json")["findings"]}


def test_there_are_such_rules() -> None:
    assert len(RULES) >= 7
    assert len(RUNNING) >= 4


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_page_is_complete(rule: type[Rule]) -> None:
    summary, blank, *_ = body(rule).splitlines()
    assert summary.endswith(".")
    assert blank == ""
    headings = re.findall(r"^## (.*)$", body(rule), re.MULTILINE)
    assert len(headings) == len(SECTIONS)
    for heading, allowed in zip(headings, SECTIONS, strict=True):
        assert heading == allowed or heading in allowed
    assert observers(rule)
    assert rule.__module__.rpartition(".")[2] == rule.name.replace("-", "_")
    for one in ("Example", "Use instead"):
        compile(program(rule, one), one, "exec")


@pytest.mark.parametrize("rule", RUNNING, ids=lambda rule: rule.name)
def test_example_is_seen_and_what_to_use_instead_is_not(rule: type[Rule], tmp_path: Path) -> None:
    assert rule.code in seen(program(rule, "Example"), tmp_path)
    assert rule.code not in seen(program(rule, "Use instead"), tmp_path)
