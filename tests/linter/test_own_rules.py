from __future__ import annotations

import pytest

from memlint.findings import Finding
from memlint.linter.rules import all_rules
from memlint.linter.run import check
from tests.linter.conftest import Write


def unused(write: Write, text: str, select: tuple[str, ...] = ("TST", "MEM901")) -> list[Finding]:
    write("a.py", text)
    report = check(["a.py"], overrides={"select": select}, use_cache=False)
    assert not report.errors
    return [finding for finding in report.findings if finding.code == "MEM901"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1  # memlint: ignore[flag-me]\n", "no finding of `flag-me`"),
        ("x = 1  # memlint: ignore[TST101]\n", "no finding of `TST101`"),
        ("x = 1  # noqa: TST101\n", "no finding of `TST101`"),
        ("flag_me()  # memlint: ignore[flag-me, flag-loop]\n", "no finding of `flag-loop`"),
        ("# memlint: ignore-file[flag-me]\n", "no finding of `flag-me`"),
        (
            "flag_me()  # memlint: ignore[flag-mee]\n",
            "unknown rule: flag-mee (did you mean 'flag-me'?)",
        ),
        ("flag_me()  # memlint: ignore[TST1]\n", "`TST1` is no single rule"),
        ("x = 1  # memlint: ignore[flag-me\n", "cannot be understood"),
        ("# memlint: ignore[flag-me]\n\nx = flag_me()\n", "no finding of `flag-me`"),
    ],
)
def test_unused_suppressions_are_reported(write: Write, text: str, message: str) -> None:
    (finding,) = unused(write, text)
    assert message in finding.message
    assert text.split("\n")[finding.location.line - 1][finding.location.column - 1] == "#"


@pytest.mark.parametrize(
    "text",
    [
        "flag_me()  # memlint: ignore[flag-me]\n",
        "flag_me()  # noqa: TST101, E501\n",
        "x = 1  # noqa\n",
        "x = 1  # noqa: E501\n",
        "# memlint: ignore-file[flag-me]\nflag_me()\n",
        "x = 1  # memlint: ignore[flag-me, unused-suppression]\n",
    ],
)
def test_used_ones_and_those_of_others_are_not(write: Write, text: str) -> None:
    assert unused(write, text) == []


def test_rules_that_did_not_run_are_not_judged(write: Write) -> None:
    text = "x = 1  # memlint: ignore[flag-me]\n"
    assert unused(write, text, select=("TST102", "MEM901")) == []
    assert unused(write, text, select=("TST102",)) == []
    assert unused(write, "x = 1  # memlint: ignore\n", select=("TST102", "MEM901")) == []


def test_a_bare_ignore_is_judged_when_all_rules_ran(write: Write) -> None:
    assert len(unused(write, "x = 1  # memlint: ignore\n", select=("ALL",))) == 1
    assert unused(write, "flag_me()  # memlint: ignore\n", select=("ALL",)) == []


def test_the_fix_takes_the_comment_away(write: Write) -> None:
    (finding,) = unused(write, "é = 1  # memlint: ignore[flag-me]\n")
    assert finding.fix is not None
    (edit,) = finding.fix.edits
    assert (edit.location.column, edit.location.end_column, edit.content) == (6, 34, "")
    (finding,) = unused(write, "x = 1  # memlint: ignore[flag-me]  # type: ignore\n")
    assert finding.fix is None, "other comments must stay"


def test_the_rule_is_off_by_default_and_has_a_page() -> None:
    rule = all_rules().rules["MEM901"]
    assert not rule.default_on
    assert rule.family() == "engine"
    for heading in ("## What it does", "## Why it is bad", "## Example", "## Use instead"):
        assert heading in (rule.__doc__ or "")
