"""Traces that others have recorded on GPUs, against a count of their events.

The folder is named by ``MEMLINT_TRACES``; it is no part of this repository."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from memlint.kineto.analysis import analyze
from memlint.tracer.evidence_file import EvidenceFile, document
from tests.tracer.programs import schema

FOLDER = os.environ.get("MEMLINT_TRACES")
pytestmark = pytest.mark.skipif(FOLDER is None, reason="MEMLINT_TRACES names no folder of traces")
NAMES = ["alexnet_cuda", "rank0_cuda", "sampled_rank0_cuda", "minitoy_rocm"]
LAYOUT = re.compile(r"MEM3(?!01)")


def trace(name: str) -> Path:
    return Path(FOLDER or "", f"{name}.json.gz")


def analyzed(name: str) -> EvidenceFile:
    return analyze(trace(name))


@pytest.mark.parametrize("name", NAMES)
def test_counts(name: str) -> None:
    events: list[dict[str, Any]] = json.loads(gzip.decompress(trace(name).read_bytes()))[
        "traceEvents"
    ]
    copies, nbytes, spent = Counter[str](), Counter[str](), Counter[str]()
    conversions = 0
    for one in events:
        if one.get("cat") == "gpu_memcpy":
            copies[one["name"]] += 1
            nbytes[one["name"]] += one["args"].get("bytes", 0)
            spent[one["name"]] += one["dur"]
        if one.get("cat") == "kernel":
            conversions += bool(re.search("nchwToNhwc|nhwcToNchw", one["name"]))
    evidence = analyzed(name)
    jsonschema.validate(document(evidence.meta, evidence.findings, evidence.sites), schema())
    told = evidence.meta["copies"]
    assert {one["kind"]: one["count"] for one in told} == copies
    assert {one["kind"]: one["ms"] * 1e3 for one in told} == pytest.approx(spent)
    if name != "minitoy_rocm":  # the sizes stand at the calls there
        assert {one["kind"]: one["bytes"] for one in told} == nbytes
    assert sum(one["count"] for one in evidence.meta["conversions"]) == conversions


@pytest.mark.parametrize("name", NAMES)
def test_no_layout_is_made_up(name: str) -> None:
    """None of them has an operand whose order of axes costs anything."""
    assert [one.code for one in analyzed(name).findings if LAYOUT.match(one.code)] == []


def test_alexnet() -> None:
    evidence = analyzed("alexnet_cuda")
    assert {one.code for one in evidence.findings} == {"MEM301"}
    assert sum((one.evidence or {})["count"] for one in evidence.findings) == 12


def test_pinning_is_unknown_on_rocm() -> None:
    evidence = analyzed("minitoy_rocm")
    assert evidence.findings == ()
    assert any("pinned, for 2 of 2 copies" in spot for spot in evidence.meta["blind_spots"])
