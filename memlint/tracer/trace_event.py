"""The profiled step in Chrome's trace event format, which Perfetto opens.

The format is described in "Trace Event Format" (Google, 2016); times are in microseconds.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memlint.findings import Finding

_HOST = 0
"""The process of what runs on the host; devices are processes of their own."""


def trace_event(
    meta: Mapping[str, Any], findings: Sequence[Finding], profile: Mapping[str, Any]
) -> dict[str, Any]:
    """Events of the step by thread and category of phase, memory as counters, findings as instants
    where their line first ran; ``profile`` is as in the evidence file."""
    processes = _processes(profile)
    return {
        "traceEvents": [
            *_names(profile, processes),
            *(_complete(event, processes) for event in profile["events"]),
            *_counters(profile["memory"]),
            *_instants(findings, profile["events"]),
        ],
        "displayTimeUnit": "ms",
        "otherData": {
            "memlint": str(meta.get("memlint", "")),
            "torch": str(meta.get("torch", "")),
            "events_left_out": profile["events_left_out"],
        },
    }


def write_trace_event(path: str | os.PathLike[str], written: Mapping[str, Any]) -> None:
    """Write it as JSON, compressed where the name ends in ``.gz``; raises ``OSError``."""
    data = json.dumps(written, allow_nan=False).encode("ascii")
    if os.fspath(path).endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    Path(path).write_bytes(data)


def _processes(profile: Mapping[str, Any]) -> Mapping[str, int]:
    devices = dict.fromkeys(event["device"] for event in profile["events"])
    others = [device for device in devices if device != "cpu"]
    return {"cpu": _HOST, **{device: number for number, device in enumerate(others, 1)}}


def _names(profile: Mapping[str, Any], processes: Mapping[str, int]) -> Iterator[Mapping[str, Any]]:
    for device, process in processes.items():
        yield _named("process_name", process, 0, "host" if device == "cpu" else device)
    lanes = dict.fromkeys((event["device"], event["thread"]) for event in profile["events"])
    for device, thread in lanes:
        kind = "thread" if device == "cpu" else "stream"
        yield _named("thread_name", processes[device], thread, f"{kind} {thread}")


def _named(what: str, process: int, thread: int, name: str) -> Mapping[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}


def _complete(event: Mapping[str, Any], processes: Mapping[str, int]) -> Mapping[str, Any]:
    return {
        "ph": "X",
        "name": event["name"],
        "cat": event["phase"],
        "ts": event["start_us"],
        "dur": event["us"],
        "pid": processes[event["device"]],
        "tid": event["thread"],
        "args": _place(event["site"]),
    }


def _place(site: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if site is None:
        return {}
    return {"line": f"{site['path']}:{site['line']}", "function": site["function"]}


def _counters(memory: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for one in memory:
        for us, nbytes in one["points"]:
            yield {
                "ph": "C",
                "name": f"memory on {one['device']}",
                "ts": us,
                "pid": _HOST,
                "tid": 0,
                "args": {"bytes": nbytes},
            }


def _instants(
    findings: Sequence[Finding], events: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    first: dict[tuple[str, int], Mapping[str, Any]] = {}
    for event in events:
        if event["site"] is not None and event["device"] == "cpu":
            first.setdefault((event["site"]["path"], event["site"]["line"]), event)
    for one in findings:
        event = first.get((one.path, one.location.line), {})
        yield {
            "ph": "i",
            "s": "t" if event else "g",
            "name": f"{one.code} {one.name}",
            "cat": "finding",
            "ts": event.get("start_us", 0.0),
            "pid": _HOST,
            "tid": event.get("thread", 0),
            "args": {
                "line": f"{one.path}:{one.location.line}",
                "message": one.message,
                "verdict": str((one.evidence or {}).get("verdict", "")),
                "write instead": one.help,
            },
        }
