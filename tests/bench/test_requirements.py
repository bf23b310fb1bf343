"""What is missing is said."""

from __future__ import annotations

import pytest

from memlint.bench.requirements import missing

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("gpu", "known", "there"),
    [
        (True, {}, True),
        (False, {"amx_bf16": True, "avx2": True}, True),
        (False, {"avx512_bf16": False, "avx512_f": True}, False),
        (False, {}, False),
    ],
)
def test_low_precision_is_what_a_gpu_or_the_cpus_instructions_give(
    monkeypatch: pytest.MonkeyPatch, gpu: bool, known: dict[str, bool], there: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known, raising=False)
    assert (missing(("torch", "bfloat16")) == "") is there


def test_any_module_can_be_needed() -> None:
    assert missing(("json",)) == ""
    assert missing(("json", "no_such_module")) == "no_such_module is not installed"
