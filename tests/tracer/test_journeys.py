"""The journeys of layouts: born, dragged, converted."""

from __future__ import annotations

import json
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

pytest.importorskip("torch")

import memlint
from memlint.tracer.evidence_file import read_evidence
from tests.tracer.programs import schema

STREAM = """\
import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
images = torch.randn(4, 64, 16, 16)


def blocks(tokens):
    for _ in range(3):
        tokens = tokens + functional.layer_norm(tokens, (64,))
    return tokens.contiguous()


for _ in range(4):
    tokens = images.flatten(2).transpose(1, 2)
    blocks(tokens)
    trace.step()
"""


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> memlint.Trace:
    folder = tmp_path_factory.mktemp("traced")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("program.py").write_text(STREAM, encoding="utf-8")
        with memlint.trace(output="out.json", quiet=True, replay_budget=60.0) as trace:
            runpy.run_path("program.py", {"trace": trace})
    trace.folder = folder  # type: ignore[attr-defined]
    return trace


def _document(trace: memlint.Trace) -> Mapping[str, Any]:
    path: Path = trace.folder / "out.json"  # type: ignore[attr-defined]
    found: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def _born_at(document: Mapping[str, Any], line: int) -> Mapping[str, Any]:
    (found,) = [one for one in document["journeys"] if one["born"]["line"] == line]
    return found


def test_the_document_follows_the_schema(traced: memlint.Trace) -> None:
    document = _document(traced)
    assert document["profile"]["events"]
    jsonschema.Draft202012Validator(schema()).validate(document)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.pop("profile"),
        lambda d: d["profile"]["events"][0].update(phase="sideways"),
        lambda d: d["profile"]["events"][0].update(us=-1.0),
        lambda d: d["profile"]["memory"][0]["points"].append([1.0]),
        lambda d: d["profile"]["memory"][0]["points"].append([1.0, 2, 3]),
        lambda d: d["journeys"][0]["born"].update(line=0),
        lambda d: d["journeys"][0]["uses"][0].pop("count"),
        lambda d: d["sites"][0].pop("source"),
    ],
)
def test_the_schema_refuses_what_is_spoilt(traced: memlint.Trace, spoil: Any) -> None:
    document = _document(traced)
    spoil(document)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate(document)


def test_a_stream_from_its_birth_to_the_copy_that_ends_it(traced: memlint.Trace) -> None:
    stream = _born_at(_document(traced), 16)
    assert stream["layout"]["shape"] == [4, 256, 64]
    assert stream["layout"]["strides"] == [16384, 1, 256]
    assert stream["births"] == 3  # in the steps that were noted
    uses = {(one["site"]["line"], one["operation"]): one["count"] for one in stream["uses"]}
    assert uses == {(11, "aten.native_layer_norm.default"): 9, (11, "aten.add.Tensor"): 9}
    (copy,) = stream["converted"]
    assert (copy["site"]["line"], copy["operation"]) == (12, "aten.clone.default")
    assert (copy["count"], copy["bytes"]) == (3, 3 * 4 * 256 * 64 * 4)


def test_what_was_measured_of_a_stream(traced: memlint.Trace) -> None:
    stream = _born_at(_document(traced), 16)
    (told,) = [one for one in traced.findings if one.code == "MEM308"]
    assert told.evidence is not None
    assert stream["copy_ms"] == told.evidence["conversion_ms"]
    lost = told.evidence["as_is_ms"] - told.evidence["alternative_ms"]
    per_step = told.evidence["count"] / told.evidence["steps"]
    assert stream["sum_ms"] == pytest.approx(lost * per_step)


def test_sites_come_with_their_source(traced: memlint.Trace) -> None:
    lines = STREAM.splitlines()
    sites = [one for one in _document(traced)["sites"] if one["path"] == "program.py"]
    assert {one["line"] for one in sites} >= {11, 12, 16}
    for one in sites:
        assert one["source"] == lines[one["line"] - 1].strip()


def test_profile_and_journeys_are_read_back(traced: memlint.Trace) -> None:
    document = _document(traced)
    evidence = read_evidence(traced.folder / "out.json")  # type: ignore[attr-defined]
    assert evidence.profile == document["profile"]
    assert list(evidence.journeys) == document["journeys"]
    assert {one.source for one in evidence.sites} == {one["source"] for one in document["sites"]}


def test_the_report_is_readable(traced: memlint.Trace) -> None:
    report = traced.report()
    assert all(len(line) <= 80 for line in report.splitlines()), report
    (place,) = [n for n, line in enumerate(report.splitlines()) if "MEM308" in line]
    assert report.splitlines()[place + 1] == "  | tokens = images.flatten(2).transpose(1, 2)"
    assert "one step under the profiler" in report
    rows = [line.split() for line in report.splitlines()]
    (forward,) = [row for row in rows if row[:1] == ["forward"]]
    assert traced.profile is not None
    (phase,) = traced.profile["phases"]
    assert (int(forward[1]), float(forward[2])) == (phase["operations"], round(phase["ms"], 1))
    assert "aten::native_layer_norm" in report
    assert "memory on cpu: at most" in report
