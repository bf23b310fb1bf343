"""What holds for every rule of the pack: its fixtures, its page, its fixes."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memlint.findings import Applicability
from memlint.report.rule_page import body
from memlint.rule import Rule
from tests.rules.fixed_programs import fixed_path, fixed_programs, folder, is_fixed
from tests.rules.linting import (
    FIXTURES,
    PACK,
    SECTIONS,
    fixed,
    found,
    lint,
    marks,
    pack_rules,
    reported,
)

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"MEM\d{3}")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
# Programs of each kind: for a rule that is on by default, and for one that is not.
FEWEST = {True: 8, False: 4}

RULES = pack_rules()
PROGRAMS = sorted(path for path in FIXTURES.glob("*/*/*.py") if not is_fixed(path))


def programs(rule: type[Rule], kind: str) -> list[Path]:
    return [path for path in PROGRAMS if path.parent == folder(rule) and path.name.startswith(kind)]


def short(path: Path) -> str:
    return path.relative_to(FIXTURES).as_posix()


def section(rule: type[Rule], heading: str) -> str:
    _, _, rest = body(rule).partition(f"## {heading}\n")
    return rest.partition("\n## ")[0]


def program(rule: type[Rule], heading: str) -> str:
    (text,) = BLOCK.findall(section(rule, heading))
    return str(text)


def test_there_are_rules_and_programs() -> None:
    assert len(RULES) >= 5
    assert PROGRAMS


@pytest.mark.parametrize("path", PROGRAMS, ids=short)
def test_a_program_is_reported_exactly_where_it_is_marked(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert reported(text, path.parent.name) == marks(text)


@pytest.mark.parametrize("path", PROGRAMS, ids=short)
def test_a_program_is_marked_as_its_name_says(path: Path) -> None:
    names = {name for _, name in marks(path.read_text(encoding="utf-8"))}
    expected = {path.parent.name} if path.name.startswith("bad_") else set()
    assert path.name.startswith(("bad_", "good_"))
    assert names & {path.parent.name} == expected


@pytest.mark.parametrize("path", PROGRAMS, ids=short)
def test_a_fix_removes_its_finding_and_adds_none(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    findings = lint(text, also=path.parent.name)
    for finding in findings:
        if finding.fix is None or finding.fix.applicability is Applicability.DISPLAY:
            continue
        mended = fixed(text, finding.fix)
        ast.parse(mended)
        kept = sorted(other.name for other in findings if other is not finding)
        assert sorted(other.name for other in lint(mended, also=path.parent.name)) == kept, (
            finding.location
        )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
class TestRule:
    def test_enough_programs(self, rule: type[Rule]) -> None:
        assert len(programs(rule, "bad_")) >= FEWEST[rule.default_on]
        assert len(programs(rule, "good_")) >= FEWEST[rule.default_on]

    def test_programs_become_what_is_kept_beside_them(
        self, rule: type[Rule], tmp_path: Path
    ) -> None:
        kept = {path for path in folder(rule).iterdir() if is_fixed(path)}
        become = {fixed_path(path): text for path, text in fixed_programs(rule, tmp_path).items()}
        assert kept == set(become)
        for path, text in become.items():
            assert path.read_text(encoding="utf-8") == text, path
        if rule.applicability in (Applicability.SAFE, Applicability.UNSAFE):
            assert become

    def test_code_and_name(self, rule: type[Rule]) -> None:
        assert CODE.fullmatch(rule.code)
        assert NAME.fullmatch(rule.name)
        module = rule.__module__.rpartition(".")[2]
        assert module == rule.name.replace("-", "_")
        assert [r.code for r in RULES].count(rule.code) == 1
        assert [r.name for r in RULES].count(rule.name) == 1

    def test_page_is_complete(self, rule: type[Rule]) -> None:
        summary, blank, *_ = body(rule).splitlines()
        assert summary.endswith(".")
        assert blank == ""
        headings = re.findall(r"^## (.*)$", body(rule), re.MULTILINE)
        assert len(headings) == len(SECTIONS)
        for heading, allowed in zip(headings, SECTIONS, strict=True):
            assert heading == allowed or heading in allowed
            assert section(rule, heading).strip()

    def test_example_is_reported(self, rule: type[Rule]) -> None:
        example = program(rule, "Example")
        assert found(example, rule.name)
        assert {finding.name for finding in lint(example, also=rule.name)} == {rule.name}

    def test_use_instead_is_silent(self, rule: type[Rule]) -> None:
        assert lint(program(rule, "Use instead"), also=rule.name) == ()

    def test_no_fix_is_stronger_than_the_rule_says(self, rule: type[Rule]) -> None:
        order = (
            Applicability.NONE,
            Applicability.DISPLAY,
            Applicability.UNSAFE,
            Applicability.SAFE,
        )
        for path in programs(rule, "bad_"):
            for finding in found(path.read_text(encoding="utf-8"), rule.name):
                given = finding.fix.applicability if finding.fix else Applicability.NONE
                assert order.index(given) <= order.index(rule.applicability)

    def test_a_finding_says_what_is_wrong_and_what_to_do(self, rule: type[Rule]) -> None:
        for path in programs(rule, "bad_"):
            for finding in found(path.read_text(encoding="utf-8"), rule.name):
                assert len(finding.message) > 20
                assert finding.help
                assert "  " not in finding.message


def test_rules_load_without_heavy_libraries() -> None:
    """Not even where the libraries are missing: all rules must cost milliseconds."""
    script = (
        "import sys\n"
        "for name in ('libcst', 'torch', 'numba', 'numpy'):\n"
        "    sys.modules[name] = None\n"
        "from memlint.rule import load_rules\n"
        "loaded = load_rules()\n"
        "assert not loaded.errors, loaded.errors\n"
        "rules = [r for r in loaded.rules.values() if not r.trace_only]\n"
        f"print(sum(r.__module__.startswith('{PACK}.') for r in rules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(RULES)
