"""``memlint merge``: the evidence of several ranks as one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from memlint.findings import Confidence, Finding, Location, Severity
from memlint.tracer.evidence import OBSERVED, unseen
from memlint.tracer.evidence_file import EvidenceFile, document
from memlint.tracer.merge import merge
from memlint.tracer.sites import SiteCount
from tests.tracer.command import Command
from tests.tracer.programs import schema

META = {
    "memlint": "0",
    "torch": "2",
    "python": "3.11.0",
    "device": "cuda",
    "folder": "/work",
    "steps": 2,
    "operations": 5,
    "complete": True,
    "blind_spots": ["threads"],
}


def finding(mark: str, **evidence: Any) -> Finding:
    return Finding(
        "MEM310", "mixed-layout-operands", Severity.WARNING, Confidence.HIGH, "a.py", None,
        Location(3, 1, 3, 6), "mixed", "do not", fingerprint=mark,
        evidence={**unseen(OBSERVED, "seen"), **evidence},
    )  # fmt: skip


def layout(strides: list[int], device: str = "cuda:0") -> list[dict[str, Any]]:
    return [{"shape": [4, 8], "strides": strides, "dtype": "float32", "device": device}]


def rank(number: int, *findings: Finding, **meta: Any) -> EvidenceFile:
    site = SiteCount("a.py", "work", 3, "aten.add.Tensor", number + 1)
    return EvidenceFile({**META, "host": f"h{number}", "rank": number, **meta}, findings, (site,))


def test_the_same_finding_is_told_once() -> None:
    ranks = {
        0: rank(0, finding("a", count=2, ms_per_step=1.0)),
        1: rank(1, finding("a", count=4, ms_per_step=5.0), finding("b", count=1)),
        2: rank(2, finding("a", count=6, ms_per_step=2.0)),
    }
    whole = merge(ranks)
    assert [one.fingerprint for one in whole.findings] == ["a", "b"]
    first, second = (one.evidence or {} for one in whole.findings)
    assert first["ms_per_step"] == 5.0
    assert first["ranks"]["seen"] == [0, 1, 2]
    assert first["ranks"]["max"]["count"] == 6
    assert first["ranks"]["median"] == {"count": 4, "ms_per_step": 2.0}
    assert second["ranks"]["seen"] == [1]
    assert second["ranks"]["all"] == [0, 1, 2]


def test_ranks_of_another_layout_are_named() -> None:
    ranks = {
        number: rank(number, finding("a", layouts=layout(strides, f"cuda:{number}")))
        for number, strides in enumerate(([8, 1], [8, 1], [1, 4], [8, 1]))
    }
    [one] = merge(ranks).findings
    assert (one.evidence or {})["ranks"]["other_layouts"] == [2]


def test_the_worst_verdict_speaks_for_all() -> None:
    ranks = {
        0: rank(0, finding("a", verdict="refuted", ms_per_step=3.0)),
        1: rank(1, finding("a", verdict="confirmed", ms_per_step=1.0)),
    }
    [one] = merge(ranks).findings
    assert (one.evidence or {})["verdict"] == "confirmed"


def test_counts_and_meta_are_joined() -> None:
    low, high = ({"us_per_operation": 1.0, "seconds": seconds} for seconds in (0.1, 0.2))
    assert merge({0: rank(0, overhead=low), 1: rank(1, overhead=high)}).meta["overhead"] == high
    whole = merge({0: rank(0), 1: rank(1, steps=7, complete=False, blind_spots=["workers"])})
    assert whole.sites == (SiteCount("a.py", "work", 3, "aten.add.Tensor", 3),)
    assert whole.meta["host"] == "h0, h1"
    assert whole.meta["ranks"] == [0, 1]
    assert (whole.meta["steps"], whole.meta["operations"]) == (7, 10)
    assert whole.meta["complete"] is False
    assert whole.meta["blind_spots"] == ["threads", "workers"]


def _journey(count: int, device: str = "cuda:0", line: int = 4) -> dict[str, Any]:
    site = {"path": "a.py", "function": "work", "line": line}
    use = {"site": site, "operation": "aten.add.Tensor", "count": count}
    [form] = layout([1, 4], device)
    return {
        "born": site, "layout": form, "births": 1, "uses": [use], "converted": [],
        "copy_ms": None, "sum_ms": None,
    }  # fmt: skip


def test_journeys_are_told_once_and_profiled_steps_are_not_joined() -> None:
    seldom, often, other = _journey(2), _journey(5, "cuda:1"), _journey(3, line=9)
    profile = {"step_ms": 1.0}
    ranks = {
        0: replace(rank(0), journeys=(seldom, other), profile=profile),
        1: replace(rank(1), journeys=(often,)),
    }
    whole = merge(ranks)
    assert whole.journeys == (often, other)
    assert whole.profile is None
    assert any("the files of the ranks" in spot for spot in whole.meta["blind_spots"])
    assert merge({1: ranks[1]}).meta["blind_spots"] == ["threads"]


def test_nothing_to_merge() -> None:
    with pytest.raises(ValueError, match="no evidence"):
        merge({})


def test_the_command(tmp_path: Path) -> None:
    command = Command(tmp_path)
    for number in (10, 2):
        one = rank(number, finding("a", count=number, layouts=layout([8, 1])))
        command.store(f"rank{number}.json", document(one.meta, one.findings, one.sites))
    done = command.memlint("merge", "rank10.json", "rank2.json", "-o", "out.json")
    assert done.stdout == "1 finding of 2 ranks written to out.json\n"
    written = command.load("out.json")
    jsonschema.validate(written, schema())
    assert written["findings"][0]["evidence"]["ranks"]["all"] == [2, 10]
    twice = command.memlint("merge", "rank2.json", "rank2.json", "-o", "out.json", status=2)
    assert twice.stderr == "error: rank2.json: rank 2 is there twice\n"
    missing = command.memlint("merge", "rank7.json", "-o", "out.json", status=2)
    assert missing.stderr.startswith("error: rank7.json: ")
    report = command.memlint("report", "out.json").stdout
    assert "on 2 of 2 ranks" in report


def test_a_rank_of_no_number_goes_by_its_file(tmp_path: Path) -> None:
    command = Command(tmp_path)
    one = rank(0, finding("a"))
    command.store("x.json", document({**one.meta, "rank": None}, one.findings, one.sites))
    command.store("y.json", document(one.meta, [replace(one.findings[0])], one.sites))
    command.memlint("merge", "x.json", "y.json", "-q", "-o", "out.json")
    assert command.load("out.json")["meta"]["ranks"] == [0, "x.json"]
