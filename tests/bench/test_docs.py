"""What the documentation says of benches is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest

from memlint.bench.collect import rule_benches
from memlint.bench.plan import Plan
from memlint.bench.results import Verdict
from memlint.bench.run import Benches, run_benches
from memlint.cli.bench import bench as command
from memlint.rule import Rule

PAGE = (Path(__file__).parents[2] / "docs/bench.md").read_text(encoding="utf-8")


def test_the_bench_of_the_guide_runs() -> None:
    pytest.importorskip("numpy")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {"__name__": "guide"}
    exec(code, names)
    rule = names["AppendInLoop"]
    assert issubclass(rule, Rule)
    rule.code, rule.name = "TST001", "append-in-loop"
    (outcome,) = run_benches(Benches(tuple(rule_benches([rule])), ()), Plan())
    assert outcome.failed == ""
    assert [row.what for row in outcome.rows] == ["float64, 300 x 64"]
    (row,) = outcome.rows
    assert row.verdict is Verdict.SLOWER


def test_the_guide_has_every_option_and_no_other() -> None:
    table = re.findall(r"^\| `(--[a-z]+)", PAGE, re.MULTILINE)
    options = [
        name
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for name in parameter.opts
    ]
    assert sorted(table) == sorted(options)
