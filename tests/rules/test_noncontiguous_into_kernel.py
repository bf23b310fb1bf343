from __future__ import annotations

import pytest

from memlint.findings import Applicability, Confidence, Severity
from tests.rules.linting import fixed, found, only

RULE = "noncontiguous-into-kernel"

FLAT = """
@triton.jit
def add(a, b, out, n, BS: tl.constexpr):
    i = tl.program_id(0) * BS + tl.arange(0, BS)
    tl.store(out + i, tl.load(a + i, mask=i < n) + tl.load(b + i, mask=i < n), mask=i < n)
"""


def program(body: str, *, kernel: str = FLAT) -> str:
    """A program with one kernel; ``body`` is that of a function of ``x``, ``y`` and ``out``."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    imports = "import torch\nimport triton\nimport triton.language as tl\n"
    return f"{imports}{kernel}\n\ndef run(x, y, out, n):\n{lines}\n"


def test_it_names_the_view_where_it_was_made_and_the_kernel() -> None:
    finding = only(program("xt = x.t()\nadd[(n,)](xt, y, out, n, BS=64)"), RULE)
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.MEDIUM)
    assert finding.message == (
        "`xt` is not contiguous (made by `x.t()`), and `add` sees only its pointer: it will read "
        "the wrong elements (assuming that what it is a view of is dense)"
    )
    assert "`xt.contiguous()`" in finding.help
    assert [place.location.line for place in finding.related] == [12]


def test_what_is_proved_is_reported_at_high_confidence() -> None:
    body = "xt = torch.rand(64, 32).t()\nadd[(n,)](xt, y, out, n, BS=64)"
    finding = only(program(body), RULE)
    assert finding.confidence is Confidence.HIGH
    assert "assuming" not in finding.message


def test_all_views_of_a_launch_are_one_finding() -> None:
    body = "a, b = x.chunk(2, dim=-1)\nadd[(n,)](a, b, out, n, BS=64)"
    finding = only(program(body), RULE)
    assert finding.message.startswith(
        "`a` and `b` are not contiguous (made by `x.chunk(2, dim=-1)`)"
    )


def test_the_fix_copies_what_is_only_read_and_mends_the_launch() -> None:
    text = program("xt = x.t()\nadd[(n,)](xt, y.mT, out, n, BS=64)")
    fix = only(text, RULE).fix
    assert fix is not None
    assert fix.applicability is Applicability.UNSAFE
    changed = fixed(text, fix)
    assert "add[(n,)](xt.contiguous(), y.mT.contiguous(), out, n, BS=64)\n" in changed
    assert found(changed, RULE) == []


def test_what_is_written_gets_another_advice_and_no_fix() -> None:
    body = "out = torch.empty_like(x.t())\nadd[(n,)](x, y, out, n, BS=64)"
    finding = only(program(body), RULE)
    assert finding.fix is None
    assert "write to the wrong elements" in finding.message
    assert "torch.empty(shape)" in finding.help


def test_what_is_read_and_written_is_copied_by_hand() -> None:
    finding = only(program("xt = x.t()\nadd[(n,)](xt, y, xt, n, BS=64)"), RULE)
    assert "read and write the wrong elements" in finding.message
    assert finding.fix is None


@pytest.mark.parametrize(
    "body",
    [
        "def inner(a):\n    add[(n,)](a, y, out, n, BS=64)\n\ninner(x.t())",
        "def inner(a):\n    a = a.half()\n    add[(n,)](a, y, out, n, BS=64)\n\ninner(x.t())",
        "def inner(*given):\n    add[(n,)](*given, out, n, BS=64)\n\ninner(x.t(), y)",
    ],
    ids=["as it is", "after a cast", "through a star"],
)
def test_a_view_from_a_caller_is_reported_at_the_call(body: str) -> None:
    text = program(body)
    finding = only(text, RULE)
    last = len(text.splitlines())
    assert finding.location.line == last
    assert "`x.t()`" in finding.message
    assert [place.location.line for place in finding.related][-1] < last


def test_a_view_that_is_made_by_a_helper_is_reported_at_the_launch() -> None:
    body = "def turned(a):\n    return a.t()\n\nadd[(n,)](turned(x), y, out, n, BS=64)"
    text = program(body)
    assert only(text, RULE).location.line == len(text.splitlines())


@pytest.mark.parametrize(
    "body",
    [
        "if n > 4:\n    x = x.t()\nadd[(n,)](x, y, out, n, BS=64)",
        "x = x.t() if n > 4 else x\nadd[(n,)](x, y, out, n, BS=64)",
    ],
)
def test_a_view_on_some_paths_only_is_not_reported(body: str) -> None:
    assert found(program(body), RULE) == []


def test_the_last_round_of_a_loop_counts() -> None:
    body = "for _ in range(n):\n    add[(n,)](x, y, out, n, BS=64)\n    x = out.t()"
    assert found(program(body), RULE) == []


STRIDED = """
@triton.jit
def gather(LOGITS, IDS, MASK, out, stride_ids_b, L):
    LOGITS += tl.program_id(0) * L
    IDS += tl.program_id(0) * stride_ids_b
    MASK += tl.program_id(0) * stride_ids_b
    tl.store(out + tl.program_id(0), tl.load(LOGITS + tl.load(IDS)) * tl.load(MASK))
"""


def test_a_kernel_may_use_the_strides_of_one_array_for_another() -> None:
    body = "i, m = x[:, -n:], y[:, -n:]\ngather[(n,)](out, i, m, torch.empty(n), i.stride(0), n)"
    assert found(program(body, kernel=STRIDED), RULE) == []
    body = body.replace("(out, i", "(out.t(), i")
    assert "`out.t()`" in only(program(body, kernel=STRIDED), RULE).message


def test_arrays_of_one_order_are_silent_in_a_flat_kernel_only() -> None:
    body = "x, y, out = x.t(), y.t(), out.t()\nadd[(n,)](x, y, out, n, BS=64)"
    assert found(program(body), RULE) == []
    by_row = FLAT.replace("tl.load(a + i", "tl.load(a + i % 8")
    assert len(found(program(body, kernel=by_row), RULE)) == 1
    assert len(found(program(body.replace(", out.t()", ", out")), RULE)) == 1


COLLECTIVE = """import torch
import torch.distributed as dist


def main(x):
    dist.init_process_group({backend})
    part = x.t()
    dist.all_reduce(part)
"""


@pytest.mark.parametrize("backend", ['"nccl"', "", "backend=pick()", '"cpu:gloo,cuda:nccl"'])
def test_collectives_refuse_views_unless_the_backend_is_known_to_copy(backend: str) -> None:
    finding = only(COLLECTIVE.format(backend=backend), RULE)
    assert "`dist.all_reduce` raises" in finding.message
    assert finding.fix is None


@pytest.mark.parametrize("backend", ['"gloo"', 'backend="mpi"'])
def test_gloo_and_mpi_reduce_views_without_gaps(backend: str) -> None:
    assert found(COLLECTIVE.format(backend=backend), RULE) == []


def test_gloo_works_in_the_memory_of_a_column() -> None:
    text = COLLECTIVE.format(backend='"gloo"').replace("x.t()", "x[:, 0]")
    assert "over gloo `dist.all_reduce` goes by its pointer" in only(text, RULE).message
    gathered = text.replace("all_reduce(part)", "all_gather_into_tensor(x.new_empty(8), part)")
    assert found(gathered, RULE) == []


def test_gloo_refuses_views_in_all_to_all() -> None:
    text = COLLECTIVE.format(backend='"gloo"')
    text = text.replace("all_reduce(part)", "all_to_all_single(x.new_empty(8), part)")
    assert "gloo refuses" in only(text, RULE).message


def test_cpu_tensors_go_over_gloo() -> None:
    text = COLLECTIVE.format(backend="").replace("x.t()", "torch.ones(4, 8).t()")
    assert found(text, RULE) == []
    assert len(found(text.replace("8).t()", "8)[:, 0]"), RULE)) == 1


EXTENSION = """import torch
from torch.utils.cpp_extension import load, load_inline

SOURCE = "void scale(torch::Tensor x) {{ float* p = x.data_ptr<float>(); {more} }}"
ext = {made}


def run():
    x = torch.rand(4, 8).t()
    return ext.scale(x)
"""


@pytest.mark.parametrize(
    ("made", "more", "confidence"),
    [
        ('load_inline("e", cpp_sources=SOURCE)', "", Confidence.HIGH),
        ('load_inline("e", cpp_sources=[SOURCE])', "", Confidence.HIGH),
        ('load("e", ["scale.cpp"])', "", Confidence.MEDIUM),
        ('load_inline("e", cpp_sources=SOURCE)', "x.is_contiguous();", None),
        ('load_inline("e", cpp_sources=SOURCE)', "x.stride(0);", None),
        ('load_inline("e", cpp_sources=SOURCE)', "x.accessor<float, 2>();", None),
    ],
)
def test_extensions_by_what_their_source_says(
    made: str, more: str, confidence: Confidence | None
) -> None:
    findings = found(EXTENSION.format(made=made, more=more), RULE)
    assert [f.confidence for f in findings] == ([] if confidence is None else [confidence])


def test_an_extension_of_another_module_is_not_reported_by_default() -> None:
    text = "import torch\nimport scale_cuda\n\nscale_cuda.forward(torch.rand(4, 8).t())  # ctypes\n"
    assert found(text, RULE) == []


def test_foreign_functions_are_told_of_numpy() -> None:
    text = (
        "import ctypes\nimport numpy as np\n\nlib = ctypes.CDLL('l.so')\n"
        "a = np.zeros((4, 8)).T\nlib.f(a.ctypes.data)\nlib.f(a.__array_interface__['data'][0])\n"
    )
    findings = found(text, RULE)
    assert [f.location.line for f in findings] == [6, 7]
    assert all("np.ascontiguousarray(a)" in f.help for f in findings)
    passed = text.replace(".data)", ".data, a.strides[0])").replace("[0])\n", "[0], a.strides)\n")
    assert found(passed, RULE) == []


def test_an_attribute_called_t_is_no_transpose_where_the_program_sets_it() -> None:
    body = "y.T = 4\nadd[(y.T,)](x, y.T, out, n, BS=64)"
    assert found(program(body), RULE) == []


@pytest.mark.parametrize("name", ["dgesv_", "cblas_dgemm", "cublasDgemm_v2", "solve"])
def test_blas_and_lapack_want_columns(name: str) -> None:
    text = (
        "import ctypes\nimport numpy as np\n\nlib = ctypes.CDLL('l.so')\n"
        f"a = np.zeros((4, 8))\nlib.{name}(a.T.ctypes.data)\nlib.{name}(a[:, ::2].ctypes.data)\n"
    )
    lines = [finding.location.line for finding in found(text, RULE)]
    assert lines == ([6, 7] if name == "solve" else [7])
