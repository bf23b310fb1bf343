"""The parts of the HTML report: quantities, excerpts, plots."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

pytest.importorskip("jinja2")

from markupsafe import Markup

from memlint.findings import Location
from memlint.report.html.excerpts import Row, excerpt, one_line
from memlint.report.html.journey_plot import axes_diagram, memory_order
from memlint.report.html.memory_plot import memory_plot
from memlint.report.html.prose import prose
from memlint.report.html.quantities import (
    round_step,
    shown_bytes,
    shown_ms,
    shown_ratio,
    ticks,
)
from memlint.report.html.ratio_plot import Ratios, ratio_plot
from memlint.report.html.recorded import Event, Layout, Line, Memory, Profile
from memlint.report.html.svg import element
from memlint.report.html.timeline import phase_spans, timeline
from tests.report.markup import Element, parsed


@pytest.mark.parametrize(
    ("nbytes", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (56_623_104, "56.6 MB"), (2.5e12, "2,500 GB")],
)
def test_bytes(nbytes: float, shown: str) -> None:
    assert shown_bytes(nbytes) == shown


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (0, "0 ms"),
        (0.0123, "12.3 µs"),
        (0.9, "900 µs"),
        (1.5, "1.50 ms"),
        (480, "480 ms"),
        (72_849, "72.8 s"),
        (-8.1, "-8.10 ms"),
        (1e-7, "0.000 µs"),
    ],
)
def test_times(milliseconds: float, shown: str) -> None:
    assert shown_ms(milliseconds) == shown


def test_ratios() -> None:
    assert shown_ratio(20.04) == "20.0\N{MULTIPLICATION SIGN}"


@pytest.mark.parametrize("span", [1e-3, 0.7, 1.0, 3.0, 9.99, 480_000.0, 7e11])
@pytest.mark.parametrize("most", [4, 5])
def test_ticks_are_round_and_few(span: float, most: int) -> None:
    step = round_step(span, most)
    first = step / 10.0 ** math.floor(math.log10(step) + 1e-9)
    assert any(math.isclose(first, one) for one in (1, 2, 5))
    found = ticks(span, step)
    assert found[0] == 0
    assert 2 <= len(found) <= most + 1
    assert span - step < found[-1] <= span * (1 + 1e-9)


def test_elements_escape_what_they_are_given() -> None:
    made = element("text", "<b>&\x1b", Markup("<i/>"), class_='"x', text_anchor="end", x=1 / 3)
    assert made == (
        '<text class="&#34;x" text-anchor="end" x="0.333">&lt;b&gt;&amp;\\x1b<i/></text>'
    )


def test_prose() -> None:
    assert prose("write `a < b` here") == "write <code>a &lt; b</code> here"
    assert prose("one ` only & `two`") == "one <code> only &amp; </code>two`"
    assert prose("none") == "none"
    assert prose("") == ""


def test_an_excerpt_marks_what_it_is_about() -> None:
    lines = [f"line {number}" for number in range(1, 21)]
    rows = excerpt(lines, Location(5, 3, 6, 5))
    assert [row.number for row in rows] == [*range(2, 10)]
    assert rows[3] == Row(5, "li", "ne 5", "")
    assert rows[4] == Row(6, "", "line", " 6")
    assert rows[5] == Row(7, "line 7")
    assert [row.number for row in excerpt(lines, Location(1, 1, 20, 3))] == [*range(1, 14)]
    spaced = ["", " ", "one", "", "two", "\t", "", "far"]
    assert [row.number for row in excerpt(spaced, Location(4, 1, 4, 1))] == [3, 4, 5]
    assert excerpt(lines, Location(21, 1, 21, 2)) == ()
    assert len(excerpt(["x" * 5000], Location(1, 1, 1, 5000))[0].marked) < 500
    beyond = excerpt(["ab"], Location(1, 9, 1, 12))[0]
    assert beyond.before + beyond.marked + beyond.after == "ab"
    assert one_line(["", "  x\x1b"], 2) == "x\N{REPLACEMENT CHARACTER}"
    assert one_line([], 1) is None


def event(start: float, us: float, phase: str = "forward", thread: int = 0, line: int = 1) -> Event:
    return Event("aten::add", Line("a.py", "f", line), phase, start, us, thread, "cpu")


def profile(*events: Event, step_ms: float = 0.1) -> Profile:
    return Profile(step_ms, events, 0, (), ())


def svg(markup: Markup) -> Element:
    return parsed(str(markup)).children[0]


def test_calls_lie_within_their_callers_and_are_counted_once() -> None:
    one = timeline(
        profile(event(0, 60), event(10, 20), event(12, 5), event(40, 10), event(20, 60, thread=1))
    )
    (lane,) = one.lanes
    bars = list(svg(lane.bars).all("rect"))
    assert [bar.attributes["y"] for bar in bars] == ["0", "4", "8", "0", "4"]
    assert [bar.attributes["x"] for bar in bars] == ["0%", "10%", "12%", "20%", "40%"]
    assert lane.ms == pytest.approx(0.12)
    assert one.phases == ("forward",)
    assert lane.operations == 5


def test_a_line_has_a_lane_on_each_device() -> None:
    kernel = Event("kernel", Line("a.py", "f", 1), "forward", 5, 50, 7, "cuda:0")
    lanes = timeline(profile(event(0, 10), kernel)).lanes
    assert [(lane.title, lane.device) for lane in lanes] == [
        ("a.py:1", "cpu"),
        ("a.py:1", "cuda:0"),
    ]


def test_what_runs_beyond_the_step_is_within_the_picture() -> None:
    one = timeline(profile(event(0, 10), event(150, 50)))
    last = list(svg(one.lanes[0].bars).all("rect"))[-1]
    assert (last.attributes["x"], last.attributes["width"]) == ("75%", "25%")


def test_the_shortest_operation_is_drawn() -> None:
    one = timeline(profile(event(0, 0), event(1, 999_999), step_ms=1000.0))
    first = next(svg(one.lanes[0].bars).all("rect"))
    assert first.attributes["width"] == "0.02%"


def test_phases_have_one_order() -> None:
    names = ("other", "optimizer", "backward", "forward", "loading")
    one = timeline(profile(*(event(place, 1, name) for place, name in enumerate(names))))
    assert one.phases == ("loading", "forward", "backward", "optimizer", "other")


def test_the_shortest_lanes_share_one() -> None:
    events = [event(number, 1 + (number % 50), line=number) for number in range(50)]
    *lanes, shared = timeline(profile(*events)).lanes
    assert [lane.site.line for lane in lanes if lane.site] == [*range(10, 50)]
    assert shared.title == "10 other places"
    assert shared.operations == 10


def test_a_phase_lasts_until_another_begins() -> None:
    spans = phase_spans(
        [
            event(0, 10),
            event(2, 3, "backward"),  # within what the forward pass called
            event(20, 10),
            event(28, 10, "backward", thread=1),
            Event("kernel", None, "other", 30, 500, 7, "cuda:0"),
        ]
    )
    assert spans == [("forward", 0, 30), ("backward", 30, 38)]


def test_the_curve_holds_a_number_until_the_next() -> None:
    memory = Memory("cpu", ((0.0, 0), (50.0, 100), (75.0, 20)), 100, 50.0, (), 0)
    plot = memory_plot(memory, 100.0)
    area, level = svg(plot.plot).all("path")
    assert level.attributes["d"] == "M0.00 1000.0H500.00V0.0H750.00V800.0H1000"
    assert str(area.attributes["d"]).endswith("V1000H0.00Z")
    (peak,) = svg(plot.plot).all("circle")
    assert peak.attributes["cx"] == "50%"
    assert plot.samples == ((0.0, 0), (0.05, 100), (0.075, 20))


def test_a_memory_of_nothing_is_drawn() -> None:
    plot = memory_plot(Memory("cpu", (), 0, 0.0, (), 0), 1.0)
    assert not list(svg(plot.plot).all("path"))
    assert "no curve was recorded" in svg(plot.plot).text
    assert plot.samples == ()


def layout(shape: tuple[int, ...], strides: tuple[int, ...]) -> Layout:
    return Layout(shape, strides, "float32", "cpu")


def test_axes_in_the_order_of_memory() -> None:
    assert memory_order(layout((16, 256, 128), (32768, 1, 256))) == [0, 2, 1]
    # Neither axes of size 1 nor repeated ones have a place in memory.
    assert memory_order(layout((1, 3, 5, 7), (1, 35, 0, 1))) == [1, 3]
    assert axes_diagram(layout((5,), (1,))) is None
    assert axes_diagram(layout((5, 5), ())) is None
    drawn = axes_diagram(layout((16, 256, 128), (32768, 1, 256)))
    assert drawn is not None
    crossed = [one for one in svg(drawn).all("path") if "crossed" in one.classes]
    assert len(crossed) == 2
    assert [one.text for one in svg(drawn).of_class("fast")] == ["256"]
    assert "axis 0 of 16, axis 2 of 128, axis 1 of 256" in svg(drawn).text


@pytest.mark.parametrize(
    "ratios",
    [
        Ratios(2.1, 1.9, 2.5, 1.6, 0.95, 1.05),
        Ratios(0.01, 0.005, 0.02, 0.001, 0.9, 1.1),
        Ratios(900.0, 1.0, 1e6, 800.0, 0.2, 5.0),
        Ratios(1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    ],
)
def test_ratios_lie_within_their_plot(ratios: Ratios) -> None:
    drawn = svg(ratio_plot(ratios))
    labels = [float(str(one.attributes["x"])[:-1]) for one in drawn.all("text")]
    assert len(labels) >= 2
    assert all(later - before >= 13.9 for before, later in pairwise(labels))
    assert drawn.of_class("one")
    ratio, net = (float(str(one.attributes["cx"])[:-1]) for one in drawn.all("circle"))
    assert (ratio <= net) == (ratios.ratio <= ratios.net)
    for rect in drawn.all("rect"):
        start, width = (float(str(rect.attributes[name])[:-1]) for name in ("x", "width"))
        assert 0 <= start <= start + width <= 100
