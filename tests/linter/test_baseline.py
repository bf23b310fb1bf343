from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from memlint.config import ConfigError
from memlint.findings import Report
from memlint.linter.baseline import write_baseline
from memlint.linter.run import check
from tests.linter.conftest import Write


def lint(**overrides: object) -> Report:
    return check(["."], overrides={"select": ("TST",), **overrides}, use_cache=False)


def test_known_findings_are_left_out_when_lines_move(write: Write, tmp_path: Path) -> None:
    write("a.py", "flag_me()\nflag_me()\n")
    baseline = tmp_path / "baseline.json"
    assert write_baseline(baseline, lint()) == 2
    assert lint(baseline=baseline).baselined == 2
    write("a.py", "import os\n\n\nflag_me( )  # moved\n\nflag_me()\nflag_me()\n")
    report = lint(baseline=baseline)
    assert [f.location.line for f in report.findings] == [7]
    assert report.baselined == 2


def test_a_baseline_is_for_reading_and_for_diffs(write: Write, tmp_path: Path) -> None:
    write("b.py", "flag_me()\n")
    write("a.py", "flag_me()\n")
    baseline = tmp_path / "baseline.json"
    write_baseline(baseline, lint())
    entries = json.loads(baseline.read_bytes())["findings"]
    assert [(e["path"], e["code"]) for e in entries] == [("a.py", "TST101"), ("b.py", "TST101")]
    assert len(baseline.read_text().splitlines()) == 7
    write_baseline(baseline, Report())
    assert lint(baseline=baseline).baselined == 0


@pytest.mark.parametrize("content", [None, "", "[]", '{"version": 9, "findings": []}', "{}"])
def test_a_baseline_that_cannot_be_read_is_a_configuration_error(
    write: Write, tmp_path: Path, content: str | None
) -> None:
    write("a.py", "x = 1\n")
    if content is not None:
        write("baseline.json", content)
    with pytest.raises(ConfigError, match=r"baseline\.json"):
        lint(baseline=tmp_path / "baseline.json")


@pytest.mark.parametrize(
    ("content", "reason"),
    [('{"version": 1}', "no 'findings'"), ("{} x", "Extra data: line 1 column 4"), ("[]", "list")],
)
def test_it_is_said_why_a_file_is_no_baseline(
    write: Write, tmp_path: Path, content: str, reason: str
) -> None:
    write("a.py", "x = 1\n")
    write("baseline.json", content)
    with pytest.raises(ConfigError, match=f"not a baseline of memlint: .*{reason}"):
        lint(baseline=tmp_path / "baseline.json")


def test_only_a_baseline_is_overwritten(write: Write, tmp_path: Path) -> None:
    write("a.py", "flag_me()\n")
    for content in ("precious\n", '{"version": 9, "findings": []}', "[" * 100_000):
        write("notes.json", content)
        with pytest.raises(ConfigError, match=r"notes\.json"):
            write_baseline(tmp_path / "notes.json", lint())
        assert (tmp_path / "notes.json").read_text() == content


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_baseline_is_a_regular_file(write: Write, tmp_path: Path) -> None:
    write("a.py", "flag_me()\n")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="not a regular file"):
        lint(baseline=tmp_path / "pipe")
