from __future__ import annotations

import json
from pathlib import Path

import pytest

import memlint
from memlint.config import ConfigError, Settings
from memlint.findings import Confidence, Location, Report, Severity
from memlint.linter.run import check
from tests.linter.conftest import Write

SELECT = {"select": ("TST",)}


def lint(*paths: str, **options: object) -> Report:
    options.setdefault("use_cache", False)
    overrides = {**SELECT, **options.pop("overrides", {})}  # type: ignore[dict-item]
    return check(paths or ["."], overrides=overrides, **options)  # type: ignore[arg-type]


def places(report: Report) -> list[tuple[str, int, str]]:
    return [(f.path, f.location.line, f.code) for f in report.findings]


def test_a_finding_has_all_that_the_rule_gave(write: Write) -> None:
    write("pkg/a.py", "def f():\n    é = flag_me(1)\n")
    report = lint()
    (finding,) = report.findings
    assert (finding.code, finding.name, finding.path, finding.cell) == (
        "TST101", "flag-me", "pkg/a.py", None,
    )  # fmt: skip
    assert finding.location == Location(2, 9, 2, 19)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.HIGH)
    assert finding.related[0].location == Location(2, 9, 2, 16)
    assert finding.fix is not None
    assert finding.fix.edits[0].content == "None"
    assert len(finding.fingerprint) == 32
    assert finding.url.endswith("/flag-me/")
    assert (report.files, report.errors, report.suppressed, report.cached) == (1, (), 0, 0)
    assert report.seconds > 0
    assert memlint.check is check


def test_files_without_the_rules_words_are_not_parsed(write: Write) -> None:
    write("a.py", "this is not Python\n")
    write("b.py", "flag_me(\n")
    report = lint()
    assert [error.path for error in report.errors] == ["b.py"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_same_result_whatever_the_workers(
    write: Write, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memlint.linter.pool.start_method", lambda: method)
    monkeypatch.setattr("memlint.linter.pool._BYTES_PER_WORKER", 10)
    monkeypatch.setattr("memlint.linter.pool._BATCH_FILES", 2)
    for number in range(9):
        write(f"m{number}.py", "flag_me()\n" * (1 + number % 3) + "x(\n" * (number == 4))
    one, two = lint(jobs=1), lint(jobs=3)
    assert (one.findings, one.errors) == (two.findings, two.errors)
    assert len(one.findings) == sum(1 + n % 3 for n in range(9) if n != 4)
    assert [error.path for error in one.errors] == ["m4.py"]


def test_confidence_limit_and_supersession(write: Write) -> None:
    write("a.py", "for x in flag_loop(flag_me(1)):\n    flag_me(2)\nflag_me(3)\ndoubtful()\n")
    assert places(lint()) == [("a.py", 1, "TST102"), ("a.py", 3, "TST101")]
    low = lint(overrides={"min_confidence": Confidence.LOW})
    assert ("a.py", 4, "TST103") in places(low)
    only = lint(overrides={"select": ("TST101",)})
    assert [line for _, line, _ in places(only)] == [1, 2, 3], "rules that do not run hide nothing"


def test_suppressed_findings_are_counted(write: Write) -> None:
    write("a.py", "flag_me()  # memlint: ignore[flag-me]\nflag_me()  # noqa\nflag_me()\n")
    report = lint()
    assert places(report) == [("a.py", 3, "TST101")]
    assert report.suppressed == 2


def test_per_file_ignores(write: Write) -> None:
    write("memlint.toml", '[per-file-ignores]\n"tests/**" = ["flag-me"]\n')
    write("a.py", "flag_me()\n")
    write("tests/b.py", "flag_me()\n")
    assert places(lint()) == [("a.py", 1, "TST101")]


def test_notebooks_are_one_program_and_findings_name_the_cell(write: Write) -> None:
    cells = [
        {"cell_type": "markdown", "source": "flag_me()"},
        {"cell_type": "code", "source": "%time x\nflag_me()"},
        {
            "cell_type": "code",
            "source": ["a = 1\n", "b = flag_me()\n", "# memlint: ignore-file[TST102]"],
        },
    ]
    write("n.ipynb", json.dumps({"cells": cells}))
    found = [(f.cell, f.location.line, f.related[0].cell) for f in lint().findings]
    assert found == [(2, 2, 2), (3, 2, 3)]


def test_a_syntax_error_in_a_notebook_names_the_cell(write: Write) -> None:
    cells = [{"cell_type": "code", "source": text} for text in ("flag_me()", "x = (1\n")]
    write("n.ipynb", json.dumps({"cells": cells}))
    (error,) = lint().errors
    assert (error.cell, error.location and error.location.line) == (2, 1)


def test_standard_input(write: Write) -> None:
    write("other.py", "flag_me()\n")
    report = lint("other.py", stdin=b"x\nflag_me()\n", stdin_filename="pkg/in.py")
    assert places(report) == [("other.py", 1, "TST101"), ("pkg/in.py", 2, "TST101")]
    assert check([], stdin=b"flag_me()", overrides=SELECT).findings[0].path == "<stdin>"
    cells = json.dumps({"cells": [{"cell_type": "code", "source": "flag_me()"}]}).encode()
    assert check([], stdin=cells, stdin_filename="n.ipynb", overrides=SELECT).findings[0].cell == 1
    excluded = {**SELECT, "force_exclude": True, "exclude": ("pkg",)}
    assert check([], stdin=b"flag_me()", stdin_filename="pkg/x.py", overrides=excluded).files == 0


def test_given_settings_are_used_alone(write: Write, tmp_path: Path) -> None:
    write("memlint.toml", 'ignore = ["ALL"]\n')
    write("a.py", "flag_me()\n")
    settings = Settings(root=tmp_path, select=("TST101",))
    assert len(check(["a.py"], settings=settings, use_cache=False).findings) == 1
    assert check(["a.py"], use_cache=False).findings == ()


def test_rule_selection_errors_are_configuration_errors(write: Write) -> None:
    write("a.py", "")
    with pytest.raises(ConfigError, match="flag-mee"):
        lint(overrides={"select": ("flag-mee",)})


def test_timings_and_progress(write: Write) -> None:
    for number in range(3):
        write(f"m{number}.py", "flag_me()\n")
    steps: list[tuple[int, int]] = []
    report = lint(timings=True, progress=lambda done, total: steps.append((done, total)))
    assert len(report.findings) == 3
    assert {"discover", "lint", "parse", "analyze", "flag-me"} <= report.timings.keys()
    assert steps == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert lint().timings == {}


def test_files_over_the_size_limit_are_skipped_and_said_so(write: Write) -> None:
    write("big.py", "flag_me()\n" * 100)
    write("ok.py", "flag_me()\n")
    report = lint(overrides={"max_file_size": 500})
    assert places(report) == [("ok.py", 1, "TST101")]
    (error,) = report.errors
    assert error.path == "big.py"
    assert "max-file-size" in error.message


def test_no_file_of_the_linted_tree_is_imported(write: Write, tmp_path: Path) -> None:
    evil = "open('touched', 'w').close()\nflag_me()\n"
    for name in ("conftest.py", "sitecustomize.py", "memlint_rules.py", "torch.py", "setup.py"):
        write(name, evil)
    assert len(lint().findings) == 5
    assert not (tmp_path / "touched").exists()
