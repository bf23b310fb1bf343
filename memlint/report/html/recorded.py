"""What the page takes from an evidence document besides its findings: the profiled step, the
journeys of layouts, and the lines that operations ran at."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the traced program."""

    path: str
    function: str
    line: int

    @property
    def short(self) -> str:
        """``file.py:12``, without the folders."""
        return f"{self.path.rsplit('/', 1)[-1]}:{self.line}"

    @property
    def full(self) -> str:
        """``folder/file.py:12``."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Event:
    """An operation of the profiled step; times in microseconds since the step began."""

    name: str
    site: Line | None
    phase: str
    start: float
    duration: float
    thread: int
    device: str

    @property
    def end(self) -> float:
        """When it had ended."""
        return self.start + self.duration


@dataclass(frozen=True, slots=True)
class Phase:
    """What a phase of the step took, in milliseconds."""

    name: str
    ms: float
    operations: int


@dataclass(frozen=True, slots=True)
class Holder:
    """What some of the bytes of a peak were allocated for."""

    site: Line | None
    operation: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class Memory:
    """The bytes in use on a device: ``points`` are microseconds, and bytes from then on."""

    device: str
    points: tuple[tuple[float, int], ...]
    peak_bytes: int
    peak_us: float
    holders: tuple[Holder, ...]
    other_bytes: int


@dataclass(frozen=True, slots=True)
class Profile:
    """The profiled step; its events are in the order of their start."""

    step_ms: float
    events: tuple[Event, ...]
    left_out: int
    phases: tuple[Phase, ...]
    memory: tuple[Memory, ...]

    @property
    def span(self) -> float:
        """Microseconds from the step's beginning to the last thing that is known of it; above 0."""
        ends = [self.step_ms * 1e3, *(one.end for one in self.events)]
        ends += [one.points[-1][0] for one in self.memory if one.points]
        return max(ends) or 1.0


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a tensor; strides in elements, none for a tensor that has none."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: str

    @property
    def text(self) -> str:
        """``float32[16, 256] with strides (1, 16)``."""
        array = f"{self.dtype}{list(self.shape)}"
        return f"{array} with strides {self.strides}" if self.strides else array


@dataclass(frozen=True, slots=True)
class Use:
    """Operations that took a layout, as it was or to copy it to another (``nbytes`` in all)."""

    site: Line
    operation: str
    count: int
    nbytes: int | None = None


@dataclass(frozen=True, slots=True)
class Journey:
    """A layout from where it came up through what took it; times in milliseconds."""

    born: Line
    layout: Layout
    births: int
    uses: tuple[Use, ...]
    converted: tuple[Use, ...]
    copy_ms: float | None
    sum_ms: float | None


@dataclass(frozen=True, slots=True)
class SiteRow:
    """An operation at a line, how often it was noted, and the text of the line where known."""

    line: Line
    operation: str
    count: int
    source: str | None


@dataclass(frozen=True, slots=True)
class Recorded:
    """``profile`` is ``None`` where no step was profiled, ``journeys`` where none were recorded."""

    profile: Profile | None
    journeys: tuple[Journey, ...] | None
    sites: tuple[SiteRow, ...]

    def sources(self) -> dict[tuple[str, int], str]:
        """The text of lines by path and number, as it was when the program ran."""
        return {
            (one.line.path, one.line.line): one.source
            for one in self.sites
            if one.source is not None
        }


def recorded(document: Mapping[str, Any]) -> Recorded:
    """Read an evidence document; raises ``KeyError``, ``TypeError`` or ``ValueError`` where its
    keys are none of the schema's.  ``profile``, ``journeys`` and ``source`` may be missing."""
    profile, journeys = document.get("profile"), document.get("journeys")
    return Recorded(
        None if profile is None else _profile(profile),
        None if journeys is None else tuple(_journey(one) for one in journeys),
        tuple(_site(one) for one in document["sites"]),
    )


def layout_of(written: Mapping[str, Any]) -> Layout:
    """A layout as the evidence has it."""
    return Layout(
        tuple(int(one) for one in written["shape"]),
        tuple(int(one) for one in written["strides"]),
        str(written["dtype"]),
        str(written["device"]),
    )


def _number(written: Any) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"not a number that could be drawn: {written!r}")
    return number


def _size(written: Any) -> float:
    number = _number(written)
    if number < 0:
        raise ValueError(f"negative: {written!r}")
    return number


def _line(written: Mapping[str, Any]) -> Line:
    return Line(str(written["path"]), str(written["function"]), int(written["line"]))


def _some_line(written: Mapping[str, Any] | None) -> Line | None:
    return None if written is None else _line(written)


def _site(written: Mapping[str, Any]) -> SiteRow:
    source = written.get("source")
    return SiteRow(
        _line(written),
        str(written["operation"]),
        int(written["count"]),
        None if source is None else str(source),
    )


def _event(written: Mapping[str, Any]) -> Event:
    return Event(
        str(written["name"]),
        _some_line(written["site"]),
        str(written["phase"]),
        _size(written["start_us"]),
        _size(written["us"]),
        int(written["thread"]),
        str(written["device"]),
    )


def _profile(written: Mapping[str, Any]) -> Profile:
    events = sorted((_event(one) for one in written["events"]), key=lambda one: one.start)
    phases = tuple(
        Phase(str(one["phase"]), _size(one["ms"]), int(one["operations"]))
        for one in written["phases"]
    )
    memory = tuple(_memory(one) for one in written["memory"] or ())
    return Profile(
        _size(written["step_ms"]),
        tuple(events),
        int(written["events_left_out"]),
        phases,
        memory,
    )


def _memory(written: Mapping[str, Any]) -> Memory:
    holders = tuple(
        Holder(_some_line(one["site"]), str(one["operation"]), int(one["bytes"]))
        for one in written["holders"]
    )
    return Memory(
        str(written["device"]),
        tuple(sorted((_size(us), int(_size(nbytes))) for us, nbytes in written["points"])),
        int(_size(written["peak_bytes"])),
        _size(written["peak_us"]),
        holders,
        int(_size(written["other_bytes"])),
    )


def _use(written: Mapping[str, Any]) -> Use:
    nbytes = written.get("bytes")
    return Use(
        _line(written["site"]),
        str(written["operation"]),
        int(written["count"]),
        None if nbytes is None else int(nbytes),
    )


def _journey(written: Mapping[str, Any]) -> Journey:
    copy_ms, sum_ms = written["copy_ms"], written["sum_ms"]
    return Journey(
        _line(written["born"]),
        layout_of(written["layout"]),
        int(written["births"]),
        tuple(_use(one) for one in written["uses"]),
        tuple(_use(one) for one in written["converted"]),
        None if copy_ms is None else _size(copy_ms),
        None if sum_ms is None else _number(sum_ms),
    )
