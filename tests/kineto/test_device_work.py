"""What is told of a GPU's copies and kernels, from traces as Kineto writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from memlint.findings import Finding
from memlint.kineto.analysis import analyze
from memlint.tracer.evidence_file import EvidenceFile, document
from tests.kineto.traces import Recording
from tests.tracer.programs import schema

PAGEABLE, PINNED = "HtoD (Pageable -> Device)", "HtoD (Pinned -> Device)"
MEGABYTE = 1 << 20
SHAPE = [512, 512]


def analyzed(recording: Recording, folder: Path) -> EvidenceFile:
    evidence = analyze(recording.save(folder / "trace.json"), folder)
    jsonschema.validate(document(evidence.meta, evidence.findings, evidence.sites), schema())
    return evidence


def codes(evidence: EvidenceFile) -> list[str]:
    return [one.code for one in evidence.findings]


def told(finding: Finding, *names: str) -> tuple[Any, ...]:
    assert finding.evidence is not None
    return tuple(finding.evidence[name] for name in names)


def batches(way: str, *, steps: int = 3, nbytes: int = MEGABYTE, waits: bool = True) -> Recording:
    """A batch moved in each step."""
    made = Recording()
    for number in range(steps):
        begin = 1000.0 * number
        made.step(number, begin, 1000)
        made.event("user_annotation", "load", begin + 5, 200)
        made.operator("aten::to", begin + 10, 100, [SHAPE], values=["", "6", "", "", "False"])
        made.operator("aten::_to_copy", begin + 11, 98, [SHAPE], strides=[[512, 1]],
                      values=["", "6", "0", "cuda:0", "", "False", ""])  # fmt: skip
        made.operator("aten::copy_", begin + 12, 90, [SHAPE, SHAPE],
                      strides=[[512, 1], [512, 1]], values=["", "", "False"])  # fmt: skip
        made.copied(way, begin + 13, 80, nbytes)
        if waits:
            made.waited(begin + 20)
    return made


def test_pageable_batches(tmp_path: Path) -> None:
    evidence = analyzed(batches(PAGEABLE), tmp_path)
    [finding] = evidence.findings
    assert (finding.code, finding.path) == ("MEM201", "trace.json")
    assert "1.0 MB at a time go to cuda from pageable memory, 0.08 ms each" in finding.message
    assert told(finding, "operator", "function") == ("aten::_to_copy", "load")
    assert told(finding, "verdict", "count", "steps", "bytes") == ("observed", 3, 3, 3 * MEGABYTE)
    assert told(finding, "as_is_ms", "spent_ms_per_step") == pytest.approx((0.08, 0.08))
    assert told(finding, "spent_share") == pytest.approx((0.08,))
    assert told(finding, "ratio", "alternative_ms", "ms_per_step") == (None, None, None)
    assert (evidence.meta["device"], evidence.meta["steps"]) == ("cuda", 3)
    assert evidence.meta["copies"] == [
        {"kind": f"Memcpy {PAGEABLE}", "count": 3, "bytes": 3 * MEGABYTE,
         "ms": pytest.approx(0.24)}
    ]  # fmt: skip


def test_pinned_batches(tmp_path: Path) -> None:
    """They are told where the host waits for them."""
    [finding] = analyzed(batches(PINNED), tmp_path).findings
    assert finding.code == "MEM202"
    assert codes(analyzed(batches(PINNED, waits=False), tmp_path)) == []


def test_pinning_that_is_not_told(tmp_path: Path) -> None:
    """As on ROCm."""
    evidence = analyzed(batches("HtoD (Host -> Device)"), tmp_path)
    assert codes(evidence) == []
    assert (
        "whether memory was pinned, for 3 of 3 copies to the device" in evidence.meta["blind_spots"]
    )


def test_copies_of_unknown_size_are_sized_by_their_calls(tmp_path: Path) -> None:
    made = Recording()
    made.operator("aten::copy_", 0, 100)
    made.launched("gpu_memcpy", "Memcpy HtoD (Host -> Device)", 10, 20, call="hipMemcpyWithStream",
                  host={"size": "2560", "kind": "1"}, kind="HtoD")  # fmt: skip
    [copies] = analyzed(made, tmp_path).meta["copies"]
    assert (copies["count"], copies["bytes"]) == (1, 2560)


def test_what_happens_once_is_no_batch(tmp_path: Path) -> None:
    """A model that is moved before the first step, or in it."""
    assert codes(analyzed(batches(PAGEABLE, steps=1), tmp_path)) == ["MEM201"]
    made = batches(PAGEABLE, steps=1)
    made.step(1, 1000, 1000)
    made.step(2, 2000, 1000)
    assert codes(analyzed(made, tmp_path)) == []
    made.events = [one for one in made.events if not one["name"].startswith("ProfilerStep")]
    evidence = analyzed(made, tmp_path)
    assert codes(evidence) == []
    assert any(spot.startswith("steps, ") for spot in evidence.meta["blind_spots"])


def test_small_copies(tmp_path: Path) -> None:
    made = Recording()
    for number in range(2):
        made.step(number, 10_000.0 * number, 10_000)
        for copy in range(20):
            begin = 10_000.0 * number + 100 * copy + 10
            made.operator("aten::copy_", begin, 50, [[16], [16]], strides=[[1], [1]],
                          values=["", "", "False"])  # fmt: skip
            made.copied(PAGEABLE, begin + 1, 2, 64)
    [finding] = analyzed(made, tmp_path).findings
    assert finding.code == "MEM216"
    assert "20 arrays of 64 bytes are copied from cpu to cuda one by one" in finding.message
    without_steps = [one for one in made.events if one["cat"] != "user_annotation"]
    made.events = without_steps
    assert codes(analyzed(made, tmp_path)) == []


def reads(*, from_device: bool) -> Recording:
    made = Recording()
    for number in range(2):
        made.step(number, 1000.0 * number, 1000)
        for read in range(4):
            begin = 1000.0 * number + 100 * read + 10
            made.operator("aten::item", begin, 50)
            made.operator("aten::_local_scalar_dense", begin + 1, 48)
            if from_device:
                made.copied("DtoH (Device -> Pageable)", begin + 2, 2, 4)
                made.waited(begin + 5)
            else:
                made.launched("kernel", "void other()", begin + 60, 2)
    return made


def test_numbers_read_from_the_device(tmp_path: Path) -> None:
    """Without shapes as well: what is read is one number."""
    [finding] = analyzed(reads(from_device=True), tmp_path).findings
    assert finding.code == "MEM205"
    assert "4 times a step" in finding.message
    assert told(finding, "verdict", "count", "steps") == ("observed", 8, 2)
    assert codes(analyzed(reads(from_device=False), tmp_path)) == []


def convolution(kernel: str, *, operator: str = "aten::cudnn_convolution") -> Recording:
    made = Recording()
    for number in range(2):
        begin = 1000.0 * number
        made.step(number, begin, 1000)
        made.operator("aten::conv2d", begin + 10, 200)
        made.operator("aten::convolution", begin + 11, 198)
        made.operator("aten::_convolution", begin + 12, 190)
        made.operator(operator, begin + 13, 180)
        for launch in range(3):
            made.launched("kernel", kernel, begin + 20 + 10 * launch, 25)
        made.launched("kernel", "sm80_xmma_fprop_implicit_gemm_nhwckrsc_nchw", begin + 60, 100)
    return made


@pytest.mark.parametrize(
    ("kernel", "formats"),
    [
        ("void cudnn::ops::nchwToNhwcKernel<float, float>(int)", "NCHW to NHWC"),
        ("void cudnn::engines_precompiled::nhwcToNchwKernel<__half>(int)", "NHWC to NCHW"),
        ("_ZN5cudnn19engines_precompiled16nchwToNhwcKernelI6__halfS2_fEEv", "NCHW to NHWC"),
        ("batched_transpose_32x16_dword", "NCHW to NHWC or back"),
    ],
)
def test_conversions_around_convolutions(kernel: str, formats: str, tmp_path: Path) -> None:
    evidence = analyzed(convolution(kernel), tmp_path)
    [finding] = evidence.findings
    assert finding.code == "MEM301"
    assert f"6 kernels convert {formats} for it, 25 us each" in finding.message
    assert told(finding, "operator", "count", "bytes") == ("aten::convolution", 6, None)
    assert told(finding, "spent_ms_per_step") == pytest.approx((0.075,))
    [conversions] = evidence.meta["conversions"]
    assert conversions == {"kind": formats, "count": 6, "ms": pytest.approx(0.15)}


def test_convolutions_in_their_own_format(tmp_path: Path) -> None:
    evidence = analyzed(convolution("sm80_xmma_fprop_implicit_gemm_nhwc"), tmp_path)
    assert codes(evidence) == []
    assert evidence.meta["conversions"] == []


def test_copies_within_convolutions(tmp_path: Path) -> None:
    """A row-major image, made channels_last in each call since the weight is."""
    image, weight = [8, 64, 32, 32], [64, 64, 3, 3]
    row_major, last = [65536, 1024, 32, 1], [65536, 1, 2048, 64]
    made = Recording()
    for number in range(2):
        begin = 1000.0 * number
        made.step(number, begin, 1000)
        made.operator("aten::convolution", begin + 10, 300, [image, weight],
                      strides=[row_major, [576, 1, 192, 64]])  # fmt: skip
        made.operator("aten::copy_", begin + 20, 100, [image, image], strides=[last, row_major])
        made.launched("kernel", "void copy()", begin + 30, 40)
        made.launched("kernel", "void convolve()", begin + 200, 60)
    [finding] = analyzed(made, tmp_path).findings
    assert finding.code == "MEM302"
    assert "each call copies the input, 0.04 of 0.1 ms in a profiled step" in finding.message
    assert told(finding, "spent_ms", "spent_ms_per_step") == pytest.approx((0.08, 0.04))


def elementwise(strides: list[list[int]] | None) -> Recording:
    made = Recording()
    made.step(0, 0, 1000)
    made.operator("aten::add", 10, 100, [SHAPE, SHAPE], strides=strides)
    made.launched("kernel", "void add()", 20, 40)
    return made


def test_layouts(tmp_path: Path) -> None:
    [finding] = analyzed(elementwise([[512, 1], [1, 512]]), tmp_path).findings
    assert finding.code == "MEM310"
    assert told(finding, "spent_ms") == pytest.approx((0.04,))  # of the device, not of the host
    [_, odd] = told(finding, "layouts")[0]
    assert odd == {"shape": SHAPE, "strides": [1, 512], "dtype": "float32", "device": "cuda"}
    assert codes(analyzed(elementwise([[512, 1], [512, 1]]), tmp_path)) == []


def test_no_layout_is_made_up(tmp_path: Path) -> None:
    evidence = analyzed(elementwise(None), tmp_path)
    assert codes(evidence) == []
    assert any("no strides" in spot for spot in evidence.meta["blind_spots"])


def test_backward_stands_where_its_forward_operator_does(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("def forward(x, y):\n    z = x * 2\n    return z @ y\n")
    made = Recording()
    made.event("python_function", "net.py(1): forward", 0, 100)
    made.operator("aten::mul", 10, 20, [SHAPE, []], types=["float", "Scalar"],
                  strides=[[512, 1], []], sequence=6)  # fmt: skip
    made.operator("aten::mm", 40, 20, [SHAPE, SHAPE], strides=[[512, 1], [512, 1]], sequence=7)
    node = "autograd::engine::evaluate_function: MmBackward0"
    for event in (
        ("cpu_op", node, 200, 80, {"Sequence number": 7}),
        ("cpu_op", "MmBackward0", 201, 78, {"Sequence number": 7}),
    ):
        category, name, begin, duration, args = event
        made.event(category, name, begin, duration, **args)
    made.operator("aten::sum", 210, 20, [SHAPE], strides=[[1, 512]])
    for one in made.events[-3:]:
        one["tid"] = 2
    [summed] = [
        one for one in analyzed(made, tmp_path).sites if one.operation.startswith("aten.sum")
    ]
    assert (summed.path, summed.line) == ("net.py", 3)


def test_ranks_have_findings_in_common(tmp_path: Path) -> None:
    """Those without lines are the same by operator and range, whatever the files are called."""
    for rank in range(2):
        made = batches(PAGEABLE)
        made.header["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
        made.save(tmp_path / f"rank{rank}.json.gz")
    first, second = (analyze(tmp_path / f"rank{rank}.json.gz", tmp_path) for rank in range(2))
    assert (first.meta["rank"], second.meta["rank"]) == (0, 1)
    assert first.findings[0].fingerprint == second.findings[0].fingerprint
    assert first.findings[0].path != second.findings[0].path
