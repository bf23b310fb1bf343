"""Where processes are not forked, all rules can be handed to the workers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memlint.linter.run import check
from tests.rules.linting import FIXTURES

PROGRAMS = ("transfer/missing-pin-memory", "allocation/graph-retention", "layout/nchw-conv")


def test_spawned_workers_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in PROGRAMS:
        for number, program in enumerate(sorted((FIXTURES / place).glob("bad_*.py"))[:2]):
            shutil.copy(program, tmp_path / f"{Path(place).name.replace('-', '_')}_{number}.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("memlint.linter.pool._BYTES_PER_WORKER", 1)
    found = []
    for method in ("fork", "spawn"):
        monkeypatch.setattr("memlint.linter.pool.start_method", lambda method=method: method)
        report = check(["."], isolated=True, overrides={"select": ["ALL"]}, jobs=2, use_cache=False)
        assert report.errors == ()
        found.append(report.findings)
    assert found[0] == found[1] != ()
