"""A program that is too much to be read is said to be."""

from __future__ import annotations

import pytest

from memlint.analysis.interpreter import machine
from memlint.config import Settings
from memlint.linter.file import FileResult, Job, Plan
from memlint.linter.rules import all_rules
from tests.conftest import ROOT

PROGRAM = """
import ctypes
lib = ctypes.CDLL("libx.so")

def launch(x):
    lib.f(ctypes.c_void_p(x.transpose(0, 1).data_ptr()))
"""


def lint(text: str) -> FileResult:
    known = all_rules().rules
    plan = Plan(Settings(ROOT), (known["MEM303"],), known)
    return plan.run(Job("p.py", "p.py", 0, len(text), data=text.encode()))


def test_a_program_that_is_read_to_its_end_gives_no_error() -> None:
    result = lint(PROGRAM)
    assert [finding.code for finding in result.findings] == ["MEM303"]
    assert result.errors == ()


def test_a_program_that_is_given_up_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "BUDGET", 5)
    (error,) = lint(PROGRAM).errors
    assert "analysed only in part" in error.message
    assert "exclude it" in error.message
