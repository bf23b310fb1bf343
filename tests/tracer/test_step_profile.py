"""What is told of a profiled step, from events that were written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from memlint.linter.rules import all_rules
from memlint.tracer.inner_copies import inner_copies, makes_a_difference
from memlint.tracer.located import allocated, located
from memlint.tracer.memory_curve import MOST_HOLDERS, memory_of, thinned
from memlint.tracer.observe import observe
from memlint.tracer.profiler_events import Event, Kernel, events_of, kernels_of
from memlint.tracer.records import Operation, Site
from memlint.tracer.sightings import Sighting
from memlint.tracer.step_profile import MOST_EVENTS, line_of, profile_of
from tests.tracer.profiles import event, mark, memory, operation, tensor

ADD = operation("aten.add.Tensor", 3)
MUL = operation("aten.mul.Tensor", 4, phase="backward")


def _told(
    events: Sequence[Event], operations: Sequence[Operation], kernels: Sequence[Kernel] = ()
) -> Mapping[str, Any]:
    return profile_of(events, kernels, operations, began=0, seconds=1e-3, shown=lambda path: path)


def _places(told: Mapping[str, Any]) -> list[tuple[str, int | None, str]]:
    return [
        (one["name"], one["site"] and one["site"]["line"], one["phase"]) for one in told["events"]
    ]


def test_a_mark_tells_what_the_event_before_it_was() -> None:
    step = [
        event("aten::add", 0, 10, event("PythonDispatchMode", 1, 9,
            event("aten::add", 2, 7, event("aten::to", 3, 4)), mark(0, 8))),
        event("autograd::engine::evaluate_function: MulBackward0", 10, 30,
            event("PythonDispatchMode", 11, 29, event("aten::mul", 12, 20), mark(1, 21))),
    ]  # fmt: skip
    told = _told(step, [ADD, MUL])
    assert _places(told) == [
        ("aten::add", 3, "forward"),
        ("aten::to", 3, "forward"),
        ("aten::mul", 4, "backward"),
    ]
    assert [(one["start_us"], one["us"]) for one in told["events"]] == [(2, 5), (3, 1), (12, 8)]
    assert told["phases"] == [
        {"phase": "forward", "ms": 0.005, "operations": 1},
        {"phase": "backward", "ms": 0.008, "operations": 1},
    ]


def test_a_mode_of_the_program_around_the_tracer_s_changes_nothing() -> None:
    inner = event("aten::add", 3, 6, event("PythonDispatchMode", 4, 6, event("aten::add", 5, 6)))
    step = [event("aten::add", 0, 10, event("PythonDispatchMode", 1, 9, inner, mark(0, 8)))]
    told = _told(step, [ADD])
    assert {place for place in _places(told) if place[0] == "aten::add"} == {
        ("aten::add", 3, "forward")
    }
    assert told["phases"] == [{"phase": "forward", "ms": 0.003, "operations": 1}]


def test_what_the_tracer_has_not_seen_has_no_line() -> None:
    step = [
        event("aten::sum", 0, 4, event("aten::fill_", 1, 2)),
        event("autograd::engine::evaluate_function: AddBackward0", 5, 9,
            event("aten::neg", 6, 7)),
    ]  # fmt: skip
    assert _places(_told(step, [])) == [
        ("aten::sum", None, "other"),
        ("aten::fill_", None, "other"),
        ("aten::neg", None, "backward"),
    ]


@pytest.mark.parametrize("nested", [True, False])
def test_operations_within_the_wait_for_a_batch_are_counted_once(nested: bool) -> None:
    stack = operation("aten.stack.default", 7, phase="loading")
    inside = [event("aten::stack", 2, 6), mark(0, 7)]
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    step = [event(name, 0, 10, *inside)] if nested else [event(name, 0, 10), *inside]
    told = _told(step, [stack])
    assert _places(told) == [(name, None, "loading"), ("aten::stack", 7, "loading")]
    assert told["phases"] == [{"phase": "loading", "ms": 0.01, "operations": 1}]


def test_threads_count_from_that_of_the_program() -> None:
    step = [
        event("aten::neg", 0, 1, thread=70),
        event("aten::add", 2, 3, thread=41),
        event(f"{mark(0, 4).name}", 4, 4, thread=41),
    ]
    told = _told(step, [ADD])
    assert [one["thread"] for one in told["events"]] == [1, 0]


def test_the_longest_events_are_kept() -> None:
    step = [event("aten::add", 10 * n, 10 * n + n % 7) for n in range(MOST_EVENTS + 50)]
    told = _told(step, [])
    assert len(told["events"]) == MOST_EVENTS
    assert told["events_left_out"] == 50
    assert min(one["us"] for one in told["events"]) == 0
    starts = [one["start_us"] for one in told["events"]]
    assert starts == sorted(starts)
    assert sum(one["us"] == 6 for one in told["events"]) == len(range(6, MOST_EVENTS + 50, 7))


def test_what_came_from_no_file_has_no_line() -> None:
    assert line_of(Site("<string>", "f", 3), str) is None
    assert line_of(Site("a.py", "f", 3), str.upper) == {"path": "A.PY", "function": "f", "line": 3}


# Devices


def test_kernels_stand_at_the_line_that_launched_them() -> None:
    step = [event("aten::add", 0, 5, event("aten::to", 1, 2, correlation=12)), mark(0, 6)]
    kernels = [
        Kernel("add_kernel", 8_000, 9_000, "cuda:0", 7, 12),
        Kernel("Memset", 9_000, 9_500, "cuda:0", 7, 99),
    ]
    rows = [one for one in _told(step, [ADD], kernels)["events"] if one["device"] != "cpu"]
    assert [(one["name"], one["site"] and one["site"]["line"]) for one in rows] == [
        ("add_kernel", 3),
        ("Memset", None),
    ]
    assert [(one["start_us"], one["us"], one["thread"]) for one in rows] == [(8, 1, 7), (9, 0.5, 7)]


def _node(name: str, tag: str, *children: Any) -> Any:
    fields = SimpleNamespace(inputs=[])
    return SimpleNamespace(
        name=name, tag=SimpleNamespace(name=tag), children=list(children), extra_fields=fields,
        start_time_ns=5, end_time_ns=9, start_tid=1, correlation_id=3,
    )  # fmt: skip


def _seen(name: str, kind: str) -> Any:
    return SimpleNamespace(
        name=lambda: name, device_type=lambda: f"DeviceType.{kind}", device_index=lambda: 1,
        device_resource_id=lambda: 7, linked_correlation_id=lambda: 3,
        start_ns=lambda: 20, duration_ns=lambda: 30,
    )  # fmt: skip


def test_what_ran_on_a_device_is_no_event_of_the_host() -> None:
    launch = _node("aten::add", "TorchOp", _node("add_kernel", "Kineto"))
    results = SimpleNamespace(
        experimental_event_tree=lambda: [launch, _node("Memset", "Kineto")],
        events=lambda: [_seen("aten::add", "CPU"), _seen("add_kernel", "CUDA")],
    )
    assert [(one.name, one.children) for one in events_of(results)] == [("aten::add", ())]
    assert kernels_of(results) == (Kernel("add_kernel", 20, 50, "cuda:1", 7, 3),)


NCHW = tensor(8, 64, 56, 56, strides=(200704, 3136, 56, 1))
NHWC = tensor(8, 64, 56, 56, strides=(200704, 1, 3584, 64))
WEIGHT = tensor(64, 64, 3, 3, strides=(576, 9, 3, 1))
CONVERTING = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(...)"


def _convolution(image: Any, microseconds: float) -> tuple[list[Event], list[Operation], Kernel]:
    conv = operation("aten.convolution.default", 9, image, WEIGHT)
    launch = event("aten::cudnn_convolution", 1, 4, correlation=5)
    step = [event("aten::convolution", 0, 5, launch), mark(0, 6)]
    kernel = Kernel(CONVERTING, 10_000, 10_000 + int(microseconds * 1e3), "cuda:0", 7, 5)
    return step, [conv], kernel


def _sightings(image: Any, microseconds: float) -> list[Sighting]:
    step, operations, kernel = _convolution(image, microseconds)
    work = Kernel("sm80_xmma_fprop", 20_000, 60_000, "cuda:0", 7, 5)
    copies = inner_copies(list(located(step, operations)), [kernel, work])
    rules = [rule() for rule in all_rules().rules.values()]
    return list(observe(rules, [], [one for one in copies if makes_a_difference(one)]))


def test_a_kernel_that_converts_formats_around_a_row_major_convolution() -> None:
    (told,) = _sightings(NCHW, 20)
    assert (told.rule.code, told.site.line, told.count) == ("MEM301", 9, 1)
    assert "`nchwToNhwcKernel` converts it, 0.02 of 0.06 ms" in told.message


def test_conversions_that_take_little_are_not_told() -> None:
    assert _sightings(NCHW, 2) == []


def test_kernels_of_channels_last_images_say_nothing_of_row_major_ones() -> None:
    assert _sightings(NHWC, 20) == []


# Memory


def _memory(events: Sequence[Event], operations: Sequence[Operation]) -> list[Mapping[str, Any]]:
    found = allocated(events, operations)
    return memory_of(found, 0, lambda site: line_of(site, lambda path: path))


def test_memory_over_time_and_what_holds_its_peak() -> None:
    step = [
        event("aten::add", 0, 5, memory(1, 16, 100), memory(2, 32, 40)),
        mark(0, 6),
        memory(7, 32, -40),
        event("aten::mul", 8, 12, memory(9, 48, 70)),
        mark(1, 13),
        memory(14, 16, -100),
    ]
    (told,) = _memory(step, [ADD, MUL])
    assert told["points"] == [[0, 0], [1, 100], [2, 140], [7, 100], [9, 170], [14, 70]]
    assert (told["peak_bytes"], told["peak_us"]) == (170, 9)
    assert [(one["operation"], one["site"]["line"], one["bytes"]) for one in told["holders"]] == [
        ("aten::add", 3, 100),
        ("aten::mul", 4, 70),
    ]
    assert told["other_bytes"] == 0


def test_what_was_there_before_is_counted_as_far_as_it_is_known() -> None:
    host = memory(1, 16, -30)
    device = memory(2, 64, 50, total=1050, device="cuda:0")
    told = {one["device"]: one for one in _memory([host, device], [])}
    assert told["cpu"]["points"] == [[0, 30], [1, 0]]
    assert told["cpu"]["holders"] == [{"site": None, "operation": "", "bytes": 30}]
    assert told["cuda:0"]["points"] == [[0, 1000], [2, 1050]]
    assert [one["bytes"] for one in told["cuda:0"]["holders"]] == [1050]


def test_the_smallest_holders_are_summed_up() -> None:
    count = MOST_HOLDERS + 5
    operations = [operation("aten.add.Tensor", n + 1) for n in range(count)]
    step = [
        one
        for n in range(count)
        for one in (event("aten::add", n, n + 0.5, memory(n, n, 10 * (n + 1))), mark(n, n + 0.6))
    ]
    (told,) = _memory(step, operations)
    assert [one["bytes"] for one in told["holders"]] == [
        10 * n for n in range(count, count - MOST_HOLDERS, -1)
    ]
    assert told["other_bytes"] == 10 + 20 + 30 + 40 + 50


def test_peaks_stay_where_points_are_left_out() -> None:
    points = [(float(n), 1000 if n == 777 else n % 10) for n in range(5_000)]
    kept = thinned(points, 100)
    assert len(kept) <= 100
    assert (777.0, 1000) in kept
    assert kept == sorted(kept)
    assert kept[-1] == points[-1]
    assert thinned(points[:50], 100) == points[:50]
