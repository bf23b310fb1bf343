"""The sieves lose nothing: what rules need is declared widely enough.

A finding that appears only when every file and every function is read for every rule would
be one that a rule's ``needs`` keep from its users; one that disappears would rest on not
having read what speaks against it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from memlint.analysis import analyze
from memlint.config import Settings
from memlint.linter.gate import Gate
from memlint.rule import Draft, Rule
from memlint.source.read import SourceError, decode_source
from tests.rules.linting import FIXTURES, ROOT, pack_rules

Told = set[tuple[str, int, int, str]]


def told(drafts: Iterable[object]) -> Told:
    return {
        (draft.rule.name, draft.node.lineno, draft.node.col_offset, draft.message)  # type: ignore[attr-defined]
        for draft in drafts
        if isinstance(draft, Draft)
    }


def differences(paths: Iterable[Path]) -> Iterator[str]:
    rules: list[Rule] = [rule() for rule in pack_rules()]
    gate, settings = Gate(rules), Settings(ROOT)
    for path in paths:
        data = path.read_bytes()
        try:
            source = decode_source(data, str(path))
            tree = ast.parse(source.text)
        except (SourceError, SyntaxError):
            continue
        # One by one: a rule for which more is read would hide what another one loses.
        sieved = set[tuple[str, int, int, str]]().union(
            *(
                told(analyze(source, tree, [rule], settings))
                for rule in gate.pass_through(data).speaking
            )
        )
        whole = told(analyze(source, tree, rules, settings, sieve=False))
        for name, line, _, message in sorted(whole - sieved):
            yield f"lost: {path}:{line} {name}: {message}"
        for name, line, _, message in sorted(sieved - whole):
            yield f"only with the sieves: {path}:{line} {name}: {message}"


def test_nothing_is_lost_in_the_fixtures() -> None:
    paths = sorted(FIXTURES.rglob("*.py"))
    assert paths
    assert list(differences(paths)) == []


@pytest.mark.shared
def test_nothing_is_lost_in_the_sample_programs(shared_cases: Path) -> None:
    assert list(differences(sorted((shared_cases / "snippets").glob("*.py")))) == []


@pytest.mark.wheels
def test_nothing_is_lost_in_a_real_project(wheels: Path) -> None:
    assert list(differences(sorted(wheels.rglob("*.py")))) == []
