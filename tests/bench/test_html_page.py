"""The page of a run: what stands in it, and that nothing else does."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from dataclasses import replace

import pytest

pytest.importorskip("jinja2")

from memlint.bench.html.axes import Axis, axis_of, shown
from memlint.bench.html.page import render_page
from memlint.bench.html.plot import drawn
from memlint.bench.html.ratio_bar import RatioScale
from memlint.bench.results import Answer, Curve, Outcome, Plot, Point, Session, Standing
from tests.bench import sessions
from tests.report.markup import Element, parsed

HOSTILE = "</script></style></title>--><img src=x onerror=hack()>\"'><svg onload=hack()>{{ 7*7 }}"
PERCENT = re.compile(r"(-?[\d.]+)%")


@pytest.fixture(scope="module")
def page() -> Element:
    return parsed(render_page(sessions.SESSION))


def rows(page: Element, section: str, kind: str) -> list[str]:
    return [one.words for one in page.with_id(section).of_class(kind)]


def test_every_comparison_has_its_row(page: Element) -> None:
    found = rows(page, "comparisons", "compared")
    assert len(found) == 5
    assert found[0].startswith("float64, 1024 x 1024 compiled: columns in the outer loop against")
    assert found[0].endswith(
        "9.27\N{MULTIPLICATION SIGN} 8.21\N{EN DASH}10.5 13.5 ms 1.43 ms slower"
    )
    assert "0.20 with a conversion of 3 µs" in found[2]
    benches = rows(page, "comparisons", "bench")
    assert [one.split()[0] for one in benches] == ["MEM101", "MEM303", "MEM503"]


def test_claims_gaps_and_facts_are_told(page: Element) -> None:
    claims = rows(page, "claims", "claim")
    assert any(
        one.endswith("holds in part 12 times at 4096 x 4096 row-column-scan") for one in claims
    )
    assert any("does not hold here 1.2 to 24 times" in one for one in claims)
    missing = page.with_id("missing").words
    assert "blocking-transfer, uncoalesced torch sees no CUDA device" in missing
    assert "broken-one failed: ValueError: <no> such | thing" in missing
    assert "column-order-loop cuda not measured" in missing
    assert "L1 48 KiB, L2 2 MiB, L3 32 MiB; lines of 64 bytes" in page.with_id("machine").words


def test_a_plot_has_as_many_points_as_the_data_and_all_values_in_words(page: Element) -> None:
    figures = page.of_class("plot-figure")
    plots = [plot for outcome in sessions.OUTCOMES for plot in outcome.plots]
    assert len(figures) == len(plots) == 3
    for figure, plot in zip(figures, plots, strict=True):
        count = sum(len(curve.points) for curve in plot.curves)
        (picture,) = figure.of_class("plot")
        points = picture.of_class("point")
        assert len(points) == count
        assert len(list(figure.of_class("values")[0].all("tr"))) == 1 + count
        assert [key.words for key in figure.of_class("key")] == [c.label for c in plot.curves]
        assert len(picture.of_class("curve")) == len(plot.curves)
        for number in (one for e in picture.all() for one in e.attributes.values() if one):
            assert all(0 <= float(part) <= 100 for part in PERCENT.findall(number))
    told = [one.words for one in figures[1].of_class("point") if one.name == "svg"]
    assert told[0] == "in order, 4 KiB: 1 ns (900 ps to 3 ns)"


def test_places_worth_a_line_are_marked_where_the_axis_holds_them(page: Element) -> None:
    marks = [one.words for one in page.of_class("place-mark")]
    assert marks == [f"{name}: {size} {name} {size}" for name, size in
                     (("L1", "48 KiB"), ("L2", "2 MiB"), ("L3", "32 MiB"))]  # fmt: skip


def test_a_run_in_which_nothing_was_measured_has_its_page() -> None:
    page = parsed(render_page(sessions.EMPTY))
    assert "Nothing was compared." in page.words
    assert "No experiment with curves was run." in page.words
    assert "All that was asked for was measured." in page.words


def test_only_its_own_style_and_script_apply(page: Element) -> None:
    (policy,) = (
        str(one.attributes["content"])
        for one in page.all("meta")
        if one.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    for name in ("style", "script"):
        (own,) = page.all(name)
        digest = base64.b64encode(hashlib.sha256(own.text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert not [one for one in page.all() if {"style", "src"} & one.attributes.keys()]


def wild() -> Session:
    row = replace(
        sessions.SLOWER, what=HOSTILE, variant=HOSTILE, as_is_form=HOSTILE, alternative_form=HOSTILE
    )
    points = (Point(1.0, 1.0, 1.0, 1.0), Point(2.0, 2.0, 1.0, 3.0))
    plot = Plot(
        HOSTILE, HOSTILE, "", HOSTILE, HOSTILE, (Curve(HOSTILE, points),), marks={HOSTILE: 1.5}
    )
    outcome = Outcome(
        HOSTILE, HOSTILE, rows=(row,), plots=(plot,), notes=(HOSTILE,), code=HOSTILE,
        failed=HOSTILE, answers=(Answer("column-scan", Standing.HOLDS, HOSTILE),),
    )  # fmt: skip
    return replace(
        sessions.SESSION, outcomes=(outcome,), machine=replace(sessions.MACHINE, cpu=HOSTILE)
    )


def test_what_others_wrote_is_text() -> None:
    page = parsed(render_page(wild()))
    assert len(list(page.all("script"))) == 1
    assert not [one for one in page.all() if one.name == "img" or "onload" in one.attributes]
    assert page.words.count("{{ 7*7 }}") > 10


def test_logarithmic_axes_are_labelled_at_round_numbers() -> None:
    sizes = axis_of([4096.0, float(1 << 29)], "B", log=True)
    ticks = sizes.ticks(7)
    assert 3 <= len(ticks) <= 7
    assert all(math.log2(one).is_integer() for one in ticks)
    assert all(0 <= sizes.place(one) <= 1 for one in ticks)
    assert [round(one) for one in axis_of([256, 4096], "", log=True).ticks(7)] == [
        500, 1000, 2000,
    ]  # fmt: skip
    wide = axis_of([1e-10, 1e3], "s", log=True).ticks(6)
    assert all(math.log10(one) == pytest.approx(round(math.log10(one))) for one in wide)
    assert axis_of([1.01, 1.02], "s", log=True).ticks(6)[0] == pytest.approx(1.01, rel=0.01)


@pytest.mark.parametrize("values", [[], [0.0], [5.0], [-3.0, -1.0], [float("nan")], [0.0, 0.0]])
@pytest.mark.parametrize("log", [False, True])
def test_an_axis_is_found_for_whatever_was_measured(values: list[float], log: bool) -> None:
    axis = axis_of(values, "s", log=log, from_zero=True)
    assert axis.low < axis.high
    assert axis.ticks(6)
    assert all(0 <= axis.place(one) <= 1 for one in values if math.isfinite(one))


def test_values_beyond_a_logarithmic_axis_are_drawn_nowhere_but_told() -> None:
    points = (
        Point(0.0, 1.0, 1.0, 1.0),
        Point(1.0, float("nan"), 1.0, 1.0),
        Point(2.0, 3.0, 0.0, 4.0),
    )
    plot = Plot("one", "x", "", "y", "s", (Curve("one", points),))
    found = drawn(plot)
    assert len(found.values) == 3
    assert found.values[1].y == "not known"
    assert found.picture.count('class="point') == 1


def test_quantities_have_prefixes() -> None:
    told = [shown(*one) for one in (
        (1.4e-10, "s/B"), (0.0, "s"), (2500.0, "s"), (2.5e9, "B/s"), (999.9e-9, "s"), (3.0, "x"),
        (1536.0, "B"),
    )]  # fmt: skip
    assert told == ["140 ps/B", "0 s", "2,500 s", "2.5 GB/s", "1 µs", "3 x", "1.5 KiB"]


def test_bars_share_one_scale() -> None:
    every = [row for outcome in sessions.OUTCOMES for row in outcome.rows]
    extreme = replace(sessions.SLOWER, ratio=1e15, low=1e14, high=1e16, control_high=1e9)
    scale = RatioScale([*every, extreme])
    for row in (*every, extreme, replace(extreme, ratio=0.0, low=0.0)):
        bar = parsed(str(scale.bar(row)))
        assert all(
            0 <= float(part) <= 100
            for one in bar.all()
            for value in one.attributes.values()
            for part in PERCENT.findall(value or "")
        )
    assert "1\N{MULTIPLICATION SIGN}" in str(scale.labels())


def test_a_linear_axis_begins_at_zero_where_that_is_asked_for() -> None:
    assert axis_of([3.0, 8.0], "s", log=False, from_zero=True).low == 0
    assert axis_of([3.0, 8.0], "s", log=False).low > 2
    assert Axis(0.0, 8.0, False, "s").ticks(5) == [0, 2, 4, 6, 8]
