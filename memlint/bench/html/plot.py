"""The curves of an experiment, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from memlint.bench.html.axes import Axis, axis_of, shown
from memlint.bench.results import Curve, Plot, Point
from memlint.report.html.svg import element, percent, picture

_HEIGHT, _BOTTOM = 260, 22
_TOP, _TOP_WITH_MARKS = 10, 44
"""Above the curves stand the names of the marks."""
_WIDE, _HIGH = 1000, 1000
"""Of the drawing that the curves are stretched from."""
_SIDE = 62
_TICKS_X, _TICKS_Y = 7, 6
_MARK_LEVELS, _LONGEST_NAME = 3, 16
COLORS = 6
_SHAPES = (
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z",
    "M-3.6 -3.6H3.6V3.6H-3.6Z",
    "M0 -5L5 0L0 5L-5 0Z",
    "M0 -4.8L4.8 3.8H-4.8Z",
    "M0 4.8L4.8 -3.8H-4.8Z",
)


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where values lie: shares of the width, and pixels from ``top``."""

    x: Axis
    y: Axis
    top: int

    @property
    def bottom(self) -> int:
        return self.top + _HEIGHT

    @property
    def height(self) -> int:
        return self.bottom + _BOTTOM

    def down(self, value: float) -> float:
        return self.top + _HEIGHT * (1 - self.y.place(value))


@dataclass(frozen=True, slots=True)
class Key:
    """A curve's name, and how it is drawn."""

    label: str
    swatch: Markup


@dataclass(frozen=True, slots=True)
class Value:
    """A point as it is written in the table beside the plot."""

    curve: str
    x: str
    y: str
    interval: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A plot as it is shown."""

    title: str
    x_label: str
    y_label: str
    keys: tuple[Key, ...]
    side: Markup
    picture: Markup
    values: tuple[Value, ...]


def drawn(plot: Plot) -> Drawn:
    """A plot; points that are not finite, or not above 0 on a logarithmic axis, are in its table
    alone."""
    points = [point for curve in plot.curves for point in curve.points]
    x = axis_of((one.x for one in points), plot.x_unit, log=plot.log_x)
    y = axis_of(
        (value for one in points for value in (one.y, one.low, one.high)),
        plot.y_unit,
        log=plot.log_y,
        from_zero=True,
    )
    has_marks = any(map(x.holds, plot.marks.values()))
    frame = _Frame(x, y, _TOP_WITH_MARKS if has_marks else _TOP)
    return Drawn(
        plot.title,
        plot.x_label,
        plot.y_label,
        tuple(Key(one.label, _swatch(index)) for index, one in enumerate(plot.curves)),
        _side(frame),
        _picture(plot, frame),
        tuple(_value(curve, one, frame) for curve in plot.curves for one in curve.points),
    )


def _picture(plot: Plot, frame: _Frame) -> Markup:
    names = ", ".join(curve.label for curve in plot.curves)
    return picture(
        plot.title,
        f"{plot.y_label} over {plot.x_label}: {names}. The table below has all values.",
        *_grid(frame),
        *_marks(plot, frame),
        _stretched(plot.curves, frame),
        *(
            _point(index, curve, one, frame)
            for index, curve in enumerate(plot.curves)
            for one in _placed(curve, frame)
        ),
        height=frame.height,
        class_="plot",
    )


def _side(frame: _Frame) -> Markup:
    """The labels of the y axis, in a picture of their own: they keep their width."""
    return element(
        "svg",
        *(
            element(
                "text", frame.y.label(one), x=_SIDE - 6, y=frame.down(one) + 4, text_anchor="end"
            )
            for one in frame.y.ticks(_TICKS_Y)
        ),
        width=_SIDE,
        height=frame.height,
        aria_hidden="true",
        class_="side",
    )


def _grid(frame: _Frame) -> Iterator[Markup]:
    for one in frame.y.ticks(_TICKS_Y):
        at = frame.down(one)
        yield element("line", x1="0%", x2="100%", y1=at, y2=at, class_="grid")
    for one in frame.x.ticks(_TICKS_X):
        part = frame.x.place(one)
        at_x, anchor = percent(part), "start" if part < 0.04 else "end" if part > 0.93 else "middle"
        yield element("line", x1=at_x, x2=at_x, y1=frame.top, y2=frame.bottom, class_="grid")
        label = frame.x.label(one)
        yield element("text", label, x=at_x, y=frame.bottom + 17, text_anchor=anchor)


def _marks(plot: Plot, frame: _Frame) -> Iterator[Markup]:
    x = frame.x
    within = sorted((value, name) for name, value in plot.marks.items() if x.holds(value))
    for index, (value, name) in enumerate(within):
        part, level = x.place(value), 11 + 13 * (index % _MARK_LEVELS)
        at, late = percent(part), part > 0.5
        label = f"{_short(name)} {x.label(value)}"
        yield element(
            "g",
            element("title", f"{name}: {x.label(value)}"),
            element("line", x1=at, x2=at, y1=level - 9, y2=frame.bottom),
            element(
                "text", label, x=at, y=level, dx=-4 if late else 4,
                text_anchor="end" if late else "start",
            ),
            class_="place-mark",
        )  # fmt: skip


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _placed(curve: Curve, frame: _Frame) -> list[Point]:
    """The points that can be drawn, from left to right."""
    found = [
        one for one in curve.points
        if math.isfinite(one.x) and math.isfinite(one.y)
        and (one.x > 0 or not frame.x.log) and (one.y > 0 or not frame.y.log)
    ]  # fmt: skip
    return sorted(found, key=lambda one: one.x)


def _stretched(curves: Sequence[Curve], frame: _Frame) -> Markup:
    """Bands and lines, in a drawing that is stretched to the width of the page."""
    x, y, children = frame.x, frame.y, []
    for index, curve in enumerate(curves):
        points = _placed(curve, frame)
        kind = _kind(index)
        if any(one.low < one.high for one in points):
            there = [_at(x.place(one.x), y.place(one.high)) for one in points]
            back = [_at(x.place(one.x), y.place(one.low)) for one in reversed(points)]
            path = f"M{'L'.join([*there, *back])}Z"
            children.append(element("path", d=path, class_=f"band {kind}"))
        if points:
            path = f"M{'L'.join(_at(x.place(one.x), y.place(one.y)) for one in points)}"
            children.append(
                element("path", d=path, class_=f"curve {kind}", vector_effect="non-scaling-stroke")
            )
    return element(
        "svg",
        *children,
        x=0,
        y=frame.top,
        width="100%",
        height=_HEIGHT,
        viewBox=f"0 0 {_WIDE} {_HIGH}",
        preserveAspectRatio="none",
    )


def _at(right: float, up: float) -> str:
    return f"{right * _WIDE:.2f} {(1 - up) * _HIGH:.2f}"


def _point(index: int, curve: Curve, one: Point, frame: _Frame) -> Markup:
    x, y = frame.x, frame.y
    told = f"{curve.label}, {x.label(one.x)}: {y.label(one.y)}"
    if one.low < one.high:
        told += f" ({_interval(one, y.unit)})"
    return element(
        "svg",
        element("title", told),
        element("path", d=_SHAPES[index % len(_SHAPES)]),
        x=percent(x.place(one.x)),
        y=frame.down(one.y),
        class_=f"point {_kind(index)}",
    )


def _value(curve: Curve, one: Point, frame: _Frame) -> Value:
    held = _interval(one, frame.y.unit) if one.low < one.high else ""
    return Value(curve.label, frame.x.label(one.x), frame.y.label(one.y), held)


def _interval(one: Point, unit: str) -> str:
    return f"{shown(one.low, unit)} to {shown(one.high, unit)}"


def _swatch(index: int) -> Markup:
    return element(
        "svg",
        element("line", x1=0, x2=26, y1=7, y2=7, class_=f"curve {_kind(index)}"),
        element(
            "g",
            element("path", d=_SHAPES[index % len(_SHAPES)]),
            transform="translate(13 7)",
            class_=f"point {_kind(index)}",
        ),
        width=26,
        height=14,
        aria_hidden="true",
    )


def _kind(index: int) -> str:
    return f"s{index % COLORS}"
