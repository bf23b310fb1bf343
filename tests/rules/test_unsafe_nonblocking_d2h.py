from __future__ import annotations

import pytest

from memlint.findings import Applicability, Confidence, Severity
from tests.rules.linting import fixed, found, only

RULE = "unsafe-nonblocking-d2h"


def program(*lines: str) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"import numpy as np\nimport torch\n\n\ndef run(x, y, event, flag, store):\n{body}\n"


COPY = 'h = x.to("cpu", non_blocking=True)'


@pytest.mark.parametrize(
    "read",
    [
        "h.numpy()",
        "h.item()",
        "h[0].tolist()",
        "float(h.sum())",
        "print(h)",
        'f"{h}"',
        "np.asarray(h)",
        "torch.save({'h': h}, 'p')",
        "torch.stack([h, h])",
        "torch.equal(h, y)",
        "h + 1",
        "h > 0",
        "[one.numpy() for one in [h]]",
        "h.view(-1).mean()",
    ],
)
def test_a_read_with_nothing_to_wait_for_the_copy(read: str) -> None:
    finding = only(program(COPY, f"a = {read}"), RULE)
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.HIGH)
    (place,) = finding.related
    assert place.location.line == 7


@pytest.mark.parametrize(
    "wait",
    [
        "torch.cuda.synchronize()",
        "torch.accelerator.synchronize()",
        "torch.cuda.current_stream().synchronize()",
        "event.record(); event.synchronize()",
        "s = y.item()",
        "s = y.cpu()",
        "s = y.to('cpu')",
    ],
)
def test_silent_after_a_wait(wait: str) -> None:
    assert found(program(COPY, wait, "return h.numpy()"), RULE) == []


def test_a_wait_must_be_on_every_path() -> None:
    lines = (COPY, "if flag:", "    torch.cuda.synchronize()")
    assert found(program(*lines, "return h.numpy()"), RULE)
    assert (
        found(program(*lines, "else:", "    event.synchronize()", "return h.numpy()"), RULE) == []
    )


@pytest.mark.parametrize("wait", ["event.record()", "torch.cuda.current_stream().record_event()"])
def test_a_recorded_event_is_no_wait(wait: str) -> None:
    assert found(program(COPY, wait, "return h.numpy()"), RULE)


@pytest.mark.parametrize("end", ["return h", "return {'h': h}", "store.kept = h", "store['h'] = h"])
def test_what_outlives_the_function_needs_an_event(end: str) -> None:
    finding = only(program(COPY, end), RULE)
    assert finding.confidence is Confidence.MEDIUM
    assert "outlives the function" in finding.message
    assert found(program(COPY, "event.record()", end), RULE) == []


@pytest.mark.parametrize(
    "use", ["h.shape", "h.to('cuda')", "h.cuda(non_blocking=True)", "h.numel()", "flag(h)", "h[0]"]
)
def test_silent_where_the_host_does_not_read(use: str) -> None:
    assert found(program(COPY, f"a = {use}"), RULE) == []


def test_a_buffer_is_known_by_its_memory() -> None:
    made = "host = torch.empty(8, pin_memory=True)"
    copied = "host[:4].copy_(x, non_blocking=True)"
    assert found(program(made, copied, "return host.sum()"), RULE)
    assert found(program(made, copied, "torch.cuda.synchronize()", "return host.sum()"), RULE) == []
    assert found(program("host = torch.empty(8)", copied, "return host.sum()"), RULE) == []


def test_the_fix_waits_and_changes_no_values() -> None:
    torch = pytest.importorskip("torch")
    text = program(COPY, "return h.numpy()")
    finding = only(text, RULE)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE
    changed = fixed(text, finding.fix)
    assert 'x.to("cpu", non_blocking=False)' in changed
    assert found(changed, RULE) == []
    results = []
    for version in (text, changed):
        names: dict[str, object] = {}
        exec(compile(version, RULE, "exec"), names)
        results.append(names["run"](torch.arange(4), None, None, None, None).tolist())  # type: ignore[operator]
    assert results == [[0, 1, 2, 3]] * 2


@pytest.mark.parametrize(
    "copy",
    [
        'h = x.to("cpu")',
        'h = x.to("cuda", non_blocking=True)',
        "h = x.to(y, non_blocking=True)",
        'h = x.to("cpu", non_blocking=flag)',
        'h = x.to("cpu", non_blocking=False)',
    ],
)
def test_silent_on_other_copies(copy: str) -> None:
    assert found(program(copy, "return h.numpy()"), RULE) == []
