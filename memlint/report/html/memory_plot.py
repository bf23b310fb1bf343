"""The bytes in use over the profiled step, and what held them at the peak."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from memlint.report.html.quantities import round_step, shown_bytes, shown_ms, ticks
from memlint.report.html.recorded import Holder, Memory
from memlint.report.html.svg import element, percent, picture

_HEIGHT, _TOP, _BOTTOM = 240, 22, 24
_PLOT = _HEIGHT - _TOP - _BOTTOM
_WIDE, _HIGH = 1000, 1000
"""Of the drawing that the curve is stretched from."""
_ROWS_OF_TABLE = 20


@dataclass(frozen=True, slots=True)
class Share:
    """Some of the bytes of the peak, and their share of them."""

    holder: Holder | None
    nbytes: int
    bar: Markup
    share: float


@dataclass(frozen=True, slots=True)
class MemoryPlot:
    """``samples`` are times in milliseconds and bytes, for the table beside the plot."""

    memory: Memory
    plot: Markup
    shares: tuple[Share, ...]
    samples: tuple[tuple[float, int], ...]


def memory_plot(memory: Memory, span: float) -> MemoryPlot:
    """The plot of a device over ``span`` microseconds, above 0."""
    shares = [_share(one, one.nbytes, memory.peak_bytes) for one in memory.holders]
    if memory.other_bytes:
        shares.append(_share(None, memory.other_bytes, memory.peak_bytes))
    return MemoryPlot(memory, _plot(memory, span), tuple(shares), _samples(memory))


def _share(holder: Holder | None, nbytes: int, peak: int) -> Share:
    share = min(nbytes / peak, 1.0) if peak else 0.0
    bar = element(
        "svg",
        element("rect", x=0, y=0, width=percent(share), height=10, class_="held"),
        width="100%",
        height=10,
        aria_hidden="true",
        class_="share",
    )
    return Share(holder, nbytes, bar, share)


def _samples(memory: Memory) -> tuple[tuple[float, int], ...]:
    """Some of the points, the first, the last and the highest among them."""
    points = memory.points
    if not points:
        return ()
    every = max(1, len(points) // _ROWS_OF_TABLE)
    highest = max(range(len(points)), key=lambda index: points[index][1])
    chosen = sorted({*range(0, len(points), every), highest, len(points) - 1})
    return tuple((points[index][0] / 1e3, points[index][1]) for index in chosen)


def _plot(memory: Memory, span: float) -> Markup:
    top = max([memory.peak_bytes, 1, *(nbytes for _, nbytes in memory.points)])
    return picture(
        f"Memory in use on {memory.device} over the profiled step",
        f"At most {shown_bytes(memory.peak_bytes)}, after {shown_ms(memory.peak_us / 1e3)}; "
        f"{_at_ends(memory)}.",
        *_grid(top),
        *_times(span),
        _curve(memory, span, top),
        *_peak(memory, span, top),
        height=_HEIGHT,
        class_="memory-plot",
    )


def _at_ends(memory: Memory) -> str:
    if not memory.points:
        return "no curve was recorded"
    first, last = memory.points[0][1], memory.points[-1][1]
    return f"{shown_bytes(first)} when the step began and {shown_bytes(last)} when it ended"


def _y(nbytes: float, top: int) -> float:
    return _TOP + _PLOT * (1 - nbytes / top)


def _grid(top: int) -> list[Markup]:
    drawn = []
    for nbytes in ticks(top, round_step(top, 4)):
        y = _y(nbytes, top)
        drawn.append(element("line", x1="0%", x2="100%", y1=y, y2=y, class_="grid"))
        if nbytes:
            drawn.append(element("text", shown_bytes(nbytes), x=2, y=y - 4, class_="size"))
    return drawn


def _times(span: float) -> list[Markup]:
    drawn = []
    for us in ticks(span, round_step(span, 5)):
        part = us / span
        anchor = "start" if part < 0.02 else "end" if part > 0.92 else "middle"
        label = shown_ms(us / 1e3)
        drawn.append(element("text", label, x=percent(part), y=_HEIGHT - 6, text_anchor=anchor))
    return drawn


def _curve(memory: Memory, span: float, top: int) -> Markup:
    """The curve in steps: a number holds until the next."""
    if not memory.points:
        return Markup("")

    def x(us: float) -> str:
        return f"{us / span * _WIDE:.2f}"

    def y(nbytes: int) -> str:
        return f"{_HIGH * (1 - nbytes / top):.1f}"

    (first, level), *later = memory.points
    steps = f"M{x(first)} {y(level)}" + "".join(f"H{x(us)}V{y(nbytes)}" for us, nbytes in later)
    steps += f"H{_WIDE}"
    return element(
        "svg",
        element("path", d=f"{steps}V{_HIGH}H{x(first)}Z", class_="area"),
        element("path", d=steps, class_="level", vector_effect="non-scaling-stroke"),
        x=0,
        y=_TOP,
        width="100%",
        height=_PLOT,
        viewBox=f"0 0 {_WIDE} {_HIGH}",
        preserveAspectRatio="none",
    )


def _peak(memory: Memory, span: float, top: int) -> list[Markup]:
    part, y = min(memory.peak_us / span, 1.0), _y(memory.peak_bytes, top)
    x, late = percent(part), part > 0.5
    label = f"peak {shown_bytes(memory.peak_bytes)} at {shown_ms(memory.peak_us / 1e3)}"
    return [
        element("line", x1=x, x2=x, y1=y, y2=_TOP + _PLOT, class_="peak"),
        element("circle", cx=x, cy=y, r=4, class_="peak"),
        element(
            "text",
            label,
            x=x,
            y=_TOP - 9,
            text_anchor="end" if late else "start",
            class_="peak-label",
        ),
    ]
