"""From a profiler's trace to evidence."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import memlint
from memlint.findings import Finding
from memlint.kineto.blind_spots import blind_spots
from memlint.kineto.device_work import DeviceWork
from memlint.kineto.frames import PythonEvents
from memlint.kineto.homeless import findings_without_lines
from memlint.kineto.homes import NO_FILE, Homes
from memlint.kineto.inner import inner_copies
from memlint.kineto.operations import Device, mark_hidden, operations_of
from memlint.kineto.reader import TraceFile, TraceFileError
from memlint.kineto.sites import Places, lines_text
from memlint.kineto.timeline import Collector, Timeline
from memlint.kineto.walk import Walk
from memlint.linter.rules import all_rules
from memlint.rule import Rule
from memlint.source.discover import path_inside
from memlint.tracer.evidence import evidence_of
from memlint.tracer.evidence_file import EvidenceFile
from memlint.tracer.findings import Programs, findings_of, merged
from memlint.tracer.observe import observed
from memlint.tracer.records import (
    DeviceCopy,
    InnerCopy,
    LayoutConversion,
    LostFormat,
    Operation,
    Record,
    Site,
    StoredScores,
    Stream,
)
from memlint.tracer.sightings import Sighting
from memlint.tracer.sites import site_counts

_OF_STEPS = frozenset({"sync-in-loop", "many-small-copies"})
"""Rules that count what happens in a step."""


def analyze(path: str | os.PathLike[str], root: str | os.PathLike[str] = ".") -> EvidenceFile:
    """The evidence of a trace; ``root`` is the folder that the program's files lie below.

    Raises :class:`TraceFileError`."""
    file = TraceFile(path)
    collector = Collector()
    timeline = collector.collect(file.events())
    if not timeline.operators and not timeline.kernels and not timeline.copies:
        raise TraceFileError(f"{path}: no profiler trace: no operators and no GPU work in it")
    return _Analysis(file, timeline, collector.sizes(), Path(root).resolve()).evidence()


@dataclass(frozen=True, slots=True)
class _Steps:
    """The marked steps: from and to, in microseconds, in order; ``unfinished`` tells of another
    one after them."""

    marks: Sequence[tuple[float, float]]
    unfinished: bool

    def of(self, time: float) -> int | None:
        """The number of the step that a time lies in."""
        index = bisect_right(self.marks, (time, float("inf"))) - 1
        if index >= 0 and time <= self.marks[index][1]:
            return index
        last = len(self.marks)
        return last if self.unfinished and index == last - 1 else None

    def durations(self) -> list[float]:
        """How long each step took, in seconds."""
        return [(end - begin) * 1e-6 for begin, end in self.marks]


class _Analysis:
    """One trace, read and gone through."""

    def __init__(
        self, file: TraceFile, timeline: Timeline, sizes: Mapping[int, int], root: Path
    ) -> None:
        self._file, self._timeline, self._root = file, timeline, root
        self._places = Places(root)
        walk = Walk(timeline, PythonEvents(root))
        for activation in walk.activations():
            self._places.place(activation)
        for spot in walk.alone:
            self._places.place_alone(spot)
        mark_hidden(walk.runs)
        self._runs = len(walk.runs)
        self._homes = Homes(walk.forward)
        self._steps = _Steps(timeline.steps, timeline.unfinished)
        self._device = _device_of(timeline)
        work = DeviceWork(timeline, sizes, walk.by_correlation)
        step = self._steps.of
        device = Device(self._device, work.kinds, step)
        self._timed = operations_of(walk.runs, self._homes, device)
        every = len(timeline.steps)
        self._copies = list(work.copies(self._homes, step, every, self._device))
        self._conversions = list(work.conversions(self._homes, step))
        self._summary = work.summary()
        self._programs = Programs(root)

    def evidence(self) -> EvidenceFile:
        """What the rules say, with what is known of it."""
        known = all_rules().rules
        told = self._told([rule() for rule in known.values()])
        by_sighting = {id(sighting): evidence for sighting, evidence in told}
        findings, homeless = findings_of(told, self._programs, known)
        alone = [(one, by_sighting[id(one)]) for one in homeless]
        labels = self._homes.labels
        trace = path_inside(str(self._file.path), self._root)
        findings += findings_without_lines(self._spelled(alone), labels, trace)
        findings.sort(key=_by_cost)
        operations = [one.operation for one in self._timed]
        programs = self._programs
        sites, left_out = site_counts(operations, [], programs.shown, programs.line)
        spots = blind_spots(self._file, self._timeline, self._missing())
        if left_out:
            spots.append(f"{left_out} places of operations that are too many to list")
        return EvidenceFile(self._meta(spots), tuple(findings), tuple(sites))

    def _spelled(
        self, told: Sequence[tuple[Sighting, Mapping[str, Any]]]
    ) -> Iterator[tuple[Sighting, Mapping[str, Any]]]:
        """Sightings whose files are spelled as findings spell them."""
        for sighting, evidence in told:
            site = sighting.site
            if site not in self._homes.labels:
                site = Site(self._programs.shown(site.path), site.function, max(site.line, 1))
            yield replace(sighting, site=site), evidence

    def _told(self, rules: Sequence[Rule]) -> list[tuple[Sighting, Mapping[str, Any]]]:
        operations = [one.operation for one in self._timed if one.clear]
        seconds = self._seconds()
        marked = bool(self._timeline.steps)
        asked = [one for one in rules if marked or one.name not in _OF_STEPS]
        spent: defaultdict[tuple[str, Site], float] = defaultdict(float)
        unsized: set[tuple[str, Site]] = set()
        sightings = []
        steps = max(len(self._timeline.steps), 1)
        inner = inner_copies([one for one in self._timed if one.clear], steps)
        others: list[Record] = [*self._copies, *self._conversions, *inner]
        for record, sighting in observed(asked, operations, others):
            key = (sighting.rule.code, sighting.site)
            if self._device != "cpu" and not sighting.settled:
                continue  # the device was there, and had no part in it
            spent[key] += _seconds_of(record, seconds, steps)
            if isinstance(record, LayoutConversion):
                unsized.add(key)
            sightings.append(sighting)
        at_place: defaultdict[Site, list[Operation]] = defaultdict(list)
        for operation in operations:
            at_place[operation.site].append(operation)
        told: list[tuple[Sighting, Mapping[str, Any]]] = []
        for sighting in merged(sightings):
            key = (sighting.rule.code, sighting.site)
            evidence = dict(
                evidence_of(
                    sighting, None, [], at_place.get(sighting.site, []), self._programs.shown
                )
            )
            evidence.update(self._times(spent[key], sighting))
            if key in unsized:
                evidence["bytes"] = None
            if evidence["born_at"] is not None and NO_FILE in evidence["born_at"]:
                evidence["born_at"] = None
            lines = self._places.doubtful.get(sighting.site)
            if lines is not None:
                evidence["note"] = (
                    f"the trace tells the function, not the line: it may be {lines_text(lines)}"
                    if lines
                    else "the trace tells the function, not the line"
                )
            told.append((sighting, evidence))
        return told

    def _missing(self) -> list[str]:
        """The files of the program that operators ran in, and that are not there."""
        ran = {one.operation.site.path for one in self._timed}
        ran |= {one.site.path for one in self._copies}
        ran |= {one.site.path for one in self._conversions}
        return sorted(one for one in self._places.missing if str(self._root / one) in ran)

    def _seconds(self) -> dict[int, float]:
        return {id(one.operation): one.seconds for one in self._timed}

    def _times(self, seconds: float, sighting: Sighting) -> Mapping[str, Any]:
        durations = self._steps.durations()
        each = seconds * 1e3 / len(durations) if durations else None
        step = median(durations) * 1e3 if durations else 0.0
        return {
            "as_is_ms": seconds * 1e3 / sighting.count,
            "spent_ms": seconds * 1e3,
            "spent_ms_per_step": each,
            "spent_share": each / step if each is not None and step else None,
        }

    def _meta(self, spots: Sequence[str]) -> dict[str, Any]:
        header = self._file.header
        return {
            "memlint": memlint.__version__,
            "torch": "",
            "python": "",
            "device": self._device,
            "host": str(header.get("host_name", "")),
            "rank": _rank(header),
            "folder": self._root.as_posix(),
            "steps": len(self._timeline.steps),
            "operations": self._runs,
            "complete": False,
            "source": path_inside(str(self._file.path), self._root),
            **self._summary,
            "blind_spots": list(spots),
        }


def _seconds_of(record: Record, seconds: Mapping[int, float], steps: int) -> float:
    if isinstance(record, InnerCopy):
        return record.seconds * steps
    if isinstance(record, (DeviceCopy, LayoutConversion)):
        return record.seconds
    if isinstance(record, Stream):
        return sum(seconds.get(id(one), 0.0) for one in record.takers)
    if isinstance(record, LostFormat):
        return sum(seconds.get(id(one), 0.0) for one in record.paid)
    if isinstance(record, StoredScores):
        return seconds.get(id(record.softmax), 0.0)
    return seconds.get(id(record), 0.0)


def _device_of(timeline: Timeline) -> str:
    if timeline.kernels or timeline.copies:
        return "cuda"
    return "cpu"


def _rank(header: Mapping[str, Any]) -> int | None:
    """The number of the process in a distributed run."""
    told = header.get("distributedInfo")
    if not isinstance(told, dict) or not isinstance(told.get("rank"), int):
        return None
    size = told.get("world_size")
    return int(told["rank"]) if isinstance(size, int) and size > 1 else None


def _by_cost(finding: Finding) -> tuple[float, float]:
    evidence: Mapping[str, Any] = finding.evidence or {}
    return -(evidence.get("spent_ms") or 0.0), -float(evidence.get("bytes") or 0)
