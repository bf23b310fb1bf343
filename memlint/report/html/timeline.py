"""The profiled step along time: a lane for each line of the program, and the phases above."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from memlint.report.html.quantities import round_step, shown_ms, ticks
from memlint.report.html.recorded import Event, Line, Profile
from memlint.report.html.svg import element, percent, picture

MOST_LANES = 40
_LONGEST_NAME = 60
_HEIGHT, _INSET, _DEEPEST = 18, 4, 3
_NARROWEST = 0.0002
"""What has no width is not drawn at all."""
_LABELS = 5
_FINER = 10
_PHASES = ("loading", "forward", "backward", "optimizer")


@dataclass(frozen=True, slots=True)
class Lane:
    """What ran at a line (or at none, or at many), on one device; times in milliseconds.

    ``ms`` is the time in operations of the lane that no other of the lane called."""

    site: Line | None
    title: str
    device: str
    ms: float
    first_ms: float
    operations: int
    phases: tuple[str, ...]
    bars: Markup


@dataclass(frozen=True, slots=True)
class Timeline:
    """``lanes`` begin with what began first."""

    lanes: tuple[Lane, ...]
    axis: Markup
    bands: Markup
    phases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Bar:
    event: Event
    depth: int


@dataclass(slots=True)
class _Row:
    site: Line | None
    device: str
    bars: list[_Bar]

    @property
    def us(self) -> float:
        return sum(one.event.duration for one in self.bars if one.depth == 0)


def timeline(profile: Profile) -> Timeline:
    """The lanes of the step; beyond :data:`MOST_LANES` the shortest share one."""
    rows = _rows(profile.events)
    kept = sorted(rows, key=lambda row: -row.us)[:MOST_LANES]
    chosen = {id(row) for row in kept}
    lanes = [_lane(row, profile.span) for row in rows if id(row) in chosen]
    others = [row for row in rows if id(row) not in chosen]
    if others:
        lanes.append(_shared(others, profile.span))
    return Timeline(
        tuple(lanes),
        _axis(profile.span),
        _bands(profile),
        tuple(sorted({one.phase for one in profile.events}, key=_rank)),
    )


def _rank(phase: str) -> tuple[int, str]:
    return _PHASES.index(phase) if phase in _PHASES else len(_PHASES), phase


def _rows(events: Iterable[Event]) -> list[_Row]:
    """The events by line and device, in the order of their first; each with its depth among the
    events of its row and thread."""
    at_place: dict[tuple[Line | None, str], list[Event]] = {}
    for one in events:
        at_place.setdefault((one.site, one.device), []).append(one)
    return [_Row(site, device, _nested(found)) for (site, device), found in at_place.items()]


def _nested(events: Sequence[Event]) -> list[_Bar]:
    open_ends: dict[int, list[float]] = {}
    bars = []
    for one in sorted(events, key=lambda event: (event.start, -event.duration)):
        ends = open_ends.setdefault(one.thread, [])
        while ends and ends[-1] <= one.start:
            ends.pop()
        bars.append(_Bar(one, len(ends)))
        ends.append(one.end)
    return bars


def _lane(row: _Row, span: float) -> Lane:
    title = "no line of the program" if row.site is None else row.site.full
    return _made(row.site, title, row.device, row.bars, span)


def _shared(rows: Sequence[_Row], span: float) -> Lane:
    bars = [bar for row in rows for bar in row.bars]
    devices = sorted({row.device for row in rows})
    places = f"{len(rows)} other place{'' if len(rows) == 1 else 's'}"
    return _made(None, places, ", ".join(devices), bars, span)


def _made(site: Line | None, title: str, device: str, bars: Sequence[_Bar], span: float) -> Lane:
    ms = sum(bar.event.duration for bar in bars if bar.depth == 0) / 1e3
    first = min(bar.event.start for bar in bars) / 1e3
    drawn = picture(
        f"{title} on {device}",
        f"{len(bars)} operations, {shown_ms(ms)} in all, the first after {shown_ms(first)}.",
        *(_rect(bar, span) for bar in bars),
        height=_HEIGHT,
        class_="bars",
    )
    phases = tuple(dict.fromkeys(bar.event.phase for bar in bars))
    return Lane(site, title, device, ms, first, len(bars), phases, drawn)


def _rect(bar: _Bar, span: float) -> Markup:
    event, inset = bar.event, _INSET * min(bar.depth, _DEEPEST)
    name = event.name if len(event.name) <= _LONGEST_NAME else event.name[:_LONGEST_NAME] + "…"
    told = f"{name}: {shown_ms(event.duration / 1e3)} from {shown_ms(event.start / 1e3)}"
    return element(
        "rect",
        element("title", f"{told}, {event.phase}"),
        x=percent(event.start / span),
        width=percent(max(event.duration / span, _NARROWEST)),
        y=inset,
        height=_HEIGHT - inset,
        class_=phase_class(event.phase),
    )


def phase_class(phase: str) -> str:
    """The class that a phase is coloured by."""
    return f"p-{phase if phase in _PHASES else 'other'}"


def _axis(span: float) -> Markup:
    """Ticks with their times; the finer ones are for a page that has been zoomed."""
    coarse = round_step(span, _LABELS)
    main = ticks(span, coarse)
    known = {round(one / coarse * _FINER) for one in main}
    finer = [
        one for one in ticks(span, coarse / _FINER) if round(one / coarse * _FINER) not in known
    ]
    drawn = [_tick(one, span, "main") for one in main]
    drawn += [_tick(one, span, "fine") for one in finer]
    return picture(
        "Time since the step began",
        f"From 0 to {shown_ms(span / 1e3)}.",
        *drawn,
        height=22,
        class_="axis",
    )


def _tick(us: float, span: float, kind: str) -> Markup:
    part = us / span
    anchor = "start" if part < 0.02 else "end" if part > 0.92 else "middle"
    return element(
        "g",
        element("line", x1=percent(part), x2=percent(part), y1=16, y2=22),
        element("text", shown_ms(us / 1e3), x=percent(part), y=12, text_anchor=anchor),
        class_=kind,
    )


def _bands(profile: Profile) -> Markup:
    """Which phase the program was in, as far as its operations tell."""
    spans = phase_spans(profile.events)
    drawn = [
        element(
            "rect",
            element("title", f"{phase}: {shown_ms(start / 1e3)} to {shown_ms(end / 1e3)}"),
            x=percent(start / profile.span),
            width=percent((end - start) / profile.span),
            y=0,
            height=8,
            class_=phase_class(phase),
        )
        for phase, start, end in spans
    ]
    order = ", ".join(dict.fromkeys(phase for phase, _, _ in spans)) or "none"
    return picture("Phases of the step", f"In order: {order}.", *drawn, height=8, class_="bands")


def phase_spans(events: Iterable[Event]) -> list[tuple[str, float, float]]:
    """Stretches of operations of one phase on the host: phase, start and end in microseconds."""
    spans: list[tuple[str, float, float]] = []
    for one in events:
        if one.device != "cpu":
            continue
        if spans and (spans[-1][0] == one.phase or one.end <= spans[-1][2]):
            phase, start, end = spans[-1]
            spans[-1] = (phase, start, max(end, one.end))
        else:
            start = max(one.start, spans[-1][2]) if spans else one.start
            spans.append((one.phase, start, one.end))
    return spans
