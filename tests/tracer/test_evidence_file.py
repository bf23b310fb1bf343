"""The evidence file: what is in it, that it follows its schema, and that it is read back."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import jsonschema
import pytest

pytest.importorskip("torch")

import memlint
from memlint.tracer.evidence_file import EvidenceError, read_evidence
from memlint.tracer.records import Operation, Site
from memlint.tracer.sites import MOST_SITES, SiteCount, site_counts
from tests.tracer.programs import HIDDEN_COPY, schema


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The evidence of a traced program in the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(HIDDEN_COPY, encoding="utf-8")
    with memlint.trace(output="out.json", quiet=True):
        runpy.run_path("program.py")
    return tmp_path / "out.json"


def test_real_output_follows_the_schema(written: Path) -> None:
    jsonschema.validate(json.loads(written.read_text("utf-8")), schema())


def test_measured_evidence_follows_the_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(
        "import torch\na = torch.randn(512, 512)\nb = torch.randn(512, 512).t()\na + b\n"
    )
    with memlint.trace(output="out.json", quiet=True):
        runpy.run_path("program.py")
    document = json.loads(Path("out.json").read_text("utf-8"))
    assert any(one["evidence"]["ratio"] is not None for one in document["findings"])
    jsonschema.validate(document, schema())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d["findings"][0]["evidence"].update(verdict="proved"),
        lambda d: d["findings"][0]["evidence"].pop("net_ratio"),
        lambda d: d["findings"][0].update(evidence=None),
        lambda d: d["sites"][0].update(count=0),
        lambda d: d["meta"].pop("complete"),
    ],
)
def test_the_schema_refuses_what_is_spoilt(written: Path, spoil: Any) -> None:
    document = json.loads(written.read_text("utf-8"))
    spoil(document)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())


def test_findings_and_sites_are_read_back(written: Path) -> None:
    evidence = read_evidence(written)
    [copy] = [one for one in evidence.findings if one.code == "MEM312"]
    assert (copy.path, copy.location.line) == ("program.py", 8)
    assert copy.evidence is not None
    assert copy.evidence["function"] == "flatten"
    assert copy.evidence["statement"] == "return moved.reshape(-1,16)"
    clones = [one for one in evidence.sites if one.operation == "aten.clone.default"]
    assert clones == [SiteCount("program.py", "flatten", 8, "aten.clone.default", 3)]
    assert "never" not in {one.function for one in evidence.sites}


def test_the_trace_tells_what_it_cost_itself(written: Path) -> None:
    meta = read_evidence(written).meta
    overhead = meta["overhead"]
    assert overhead["seconds"] == pytest.approx(
        overhead["us_per_operation"] * 1e-6 * meta["operations"]
    )


def test_fingerprints_are_those_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memlint.toml").write_text("")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "program.py").write_text(HIDDEN_COPY)
    marks = []
    for folder, path in ((tmp_path, "jobs/program.py"), (tmp_path / "jobs", "program.py")):
        monkeypatch.chdir(folder)
        with memlint.trace(quiet=True) as trace:
            runpy.run_path(path)
        marks += [one.fingerprint for one in trace.findings if one.code == "MEM312"]
        assert trace.findings[0].path == path
    assert len(marks) == 2
    assert len(set(marks)) == 1


def test_a_program_that_changes_folders_is_still_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    Path("program.py").write_text(HIDDEN_COPY + "import os\nos.chdir('elsewhere')\n")
    with memlint.trace(output="out.json", quiet=True) as trace:
        runpy.run_path("program.py")
    assert {one.path for one in trace.findings} == {"program.py"}
    assert (tmp_path / "out.json").is_file()


def test_each_rank_writes_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with memlint.trace(output=tmp_path / "out.json", quiet=True):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["out.rank3.json"]
    assert read_evidence(tmp_path / "out.rank3.json").meta["rank"] == 3


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 2}', '{"version": 1, "meta": {}, "findings": [1]}']
)
def test_what_is_no_evidence_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(EvidenceError, match=r"other\.json"):
        read_evidence(path)


def test_the_most_frequent_sites_are_kept() -> None:
    operations = [
        Operation(Site("a.py", "f", line), "aten.add.Tensor", "forward", (), (), count=line)
        for line in range(1, MOST_SITES + 4)
    ]
    kept, left_out = site_counts(
        operations, [], lambda path: path, lambda path, line: f"{path} {line}"
    )
    assert left_out == 3
    assert min(one.count for one in kept) == 4
    assert kept[0].source == "a.py 4"


def test_it_is_said_when_there_is_no_time_to_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(
        "import torch\na = torch.randn(512, 512)\nb = torch.randn(512, 512).t()\na + b\n"
    )
    with memlint.trace(quiet=True, replay_budget=0.0) as trace:
        runpy.run_path("program.py")
    assert all((one.evidence or {})["ratio"] is None for one in trace.findings)
    assert any("1 finding was not measured" in spot for spot in trace.meta["blind_spots"])
    with memlint.trace(quiet=True, replay=False) as trace:
        runpy.run_path("program.py")
    assert not any("not measured" in spot for spot in trace.meta["blind_spots"])
