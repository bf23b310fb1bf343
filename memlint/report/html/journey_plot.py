"""The journey of a layout: how its axes lie in memory, and what took it on its way."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from memlint.report.html.quantities import shown_ms
from memlint.report.html.recorded import Journey, Layout, Use
from memlint.report.html.svg import element, percent, picture

MOST_JOURNEYS = 20
MOST_USES = 40
_CELL, _GAP, _ROW = 64, 8, 24
_LOWER = 74
_MOST_AXES = 8


@dataclass(frozen=True, slots=True)
class JourneyPlot:
    """``left_out`` are the uses and conversions that are not among those listed."""

    journey: Journey
    axes: Markup | None
    costs: Markup | None
    uses: tuple[Use, ...]
    converted: tuple[Use, ...]
    left_out: int

    @property
    def operations(self) -> int:
        """How many operations took the layout as it was."""
        return sum(one.count for one in self.journey.uses)


def journey_plot(journey: Journey) -> JourneyPlot:
    """A journey as it is drawn."""
    uses, converted = journey.uses[:MOST_USES], journey.converted[:MOST_USES]
    left_out = len(journey.uses) - len(uses) + len(journey.converted) - len(converted)
    return JourneyPlot(
        journey, axes_diagram(journey.layout), _costs(journey), uses, converted, left_out
    )


def memory_order(layout: Layout) -> list[int]:
    """The axes that have a place in memory, the slowest first: those of more than one element
    that are not repeated."""
    sizes = zip(layout.shape, layout.strides, strict=False)
    placed = [axis for axis, (size, stride) in enumerate(sizes) if size > 1 and stride]
    return sorted(placed, key=lambda axis: -abs(layout.strides[axis]))


def axes_diagram(layout: Layout) -> Markup | None:
    """The axes as they are indexed above, as they lie in memory below, and lines between;
    ``None`` where there is nothing to draw."""
    count, order = len(layout.shape), memory_order(layout)
    if len(order) < 2 or count > _MOST_AXES:
        return None
    width = count * (_CELL + _GAP) - _GAP
    drawn = [_cell(axis, 0, layout.shape[axis], "") for axis in range(count)]
    last = len(order) - 1
    for place, axis in enumerate(order):
        drawn.append(_thread(axis, place))
        kind = "fast" if place == last else ""
        drawn.append(_cell(place, _LOWER, layout.shape[axis], kind))
    told = ", ".join(f"axis {axis} of {layout.shape[axis]}" for axis in order)
    return element(
        "svg",
        element("title", "How the axes lie in memory"),
        element("desc", f"From the slowest to the one that runs along addresses: {told}."),
        *drawn,
        role="img",
        viewBox=f"0 0 {width} {_LOWER + _ROW}",
        width=width,
        height=_LOWER + _ROW,
        class_="axes",
    )


def _left(place: int) -> int:
    return place * (_CELL + _GAP)


def _cell(place: int, y: int, size: int, kind: str) -> Markup:
    return element(
        "g",
        element("rect", x=_left(place) + 0.5, y=y + 0.5, width=_CELL - 1, height=_ROW - 1, rx=3),
        element("text", f"{size}", x=_left(place) + _CELL / 2, y=y + 16, text_anchor="middle"),
        class_=f"cell {kind}".rstrip(),
    )


def _thread(axis: int, place: int) -> Markup:
    start, end = _left(axis) + _CELL / 2, _left(place) + _CELL / 2
    middle = (_ROW + _LOWER) / 2
    path = f"M{start} {_ROW}C{start} {middle} {end} {middle} {end} {_LOWER}"
    return element("path", d=path, class_="thread" if axis == place else "thread crossed")


def _costs(journey: Journey) -> Markup | None:
    """One copy beside what its uses took longer in a step; ``None`` where it was not measured."""
    if journey.copy_ms is None or journey.sum_ms is None:
        return None
    largest = max(journey.copy_ms, journey.sum_ms, 1e-9)
    rows = (("one copy", journey.copy_ms, "copy"), ("longer in all", journey.sum_ms, "sum"))
    drawn = []
    for index, (label, ms, kind) in enumerate(rows):
        y = index * 34
        drawn += [
            element("text", f"{label}: {shown_ms(ms)}", x=0, y=y + 11),
            element(
                "rect", x=0, y=y + 16, height=9, class_=kind, width=percent(max(ms, 0) / largest)
            ),
        ]
    return picture(
        "One copy against all uses",
        f"One copy that makes it row-major takes {shown_ms(journey.copy_ms)}; its uses took "
        f"{shown_ms(journey.sum_ms)} longer in a step than on such a copy.",
        *drawn,
        height=64,
        class_="costs",
    )
