"""The profiled step for Perfetto: what is written follows the trace event format."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from memlint.tracer.trace_event import trace_event, write_trace_event
from tests.tracer.command import Command

TRAINING = """\
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1))
optimizer = torch.optim.Adam(model.parameters())


def step(x):
    flat = x.transpose(2, 3).reshape(8, -1)
    loss = model(x).square().mean() + flat.mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


for _ in range(5):
    step(torch.randn(8, 3, 64, 64))
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """A folder with the evidence and the events of a traced training."""
    command = Command(tmp_path_factory.mktemp("traced"))
    command.write("train.py", TRAINING)
    options = ("--no-replay", "-q", "-o", "out.json", "--trace-event", "out.json.gz")
    assert command.memlint("trace", *options, "train.py").stderr == ""
    return command


def _read(path: Path) -> list[Mapping[str, Any]]:
    written = json.loads(gzip.decompress(path.read_bytes()))
    events: list[Mapping[str, Any]] = written["traceEvents"]
    return events


def test_the_fields_that_the_format_asks_for(command: Command) -> None:
    events = _read(command.folder / "out.json.gz")
    assert {one["ph"] for one in events} == {"M", "X", "C", "i"}
    for one in events:
        assert isinstance(one["name"], str)
        assert isinstance(one["pid"], int)
        assert isinstance(one["tid"], int)
        if one["ph"] != "M":
            assert one["ts"] >= 0
        if one["ph"] == "X":
            assert one["dur"] >= 0
            assert one["cat"] in ("forward", "backward", "optimizer", "loading", "other")
        if one["ph"] == "i":
            assert one["s"] in ("g", "p", "t")
        if one["ph"] == "C":
            assert all(value >= 0 for value in one["args"].values())


def test_events_of_a_thread_nest(command: Command) -> None:
    threads = defaultdict(list)
    for one in _read(command.folder / "out.json.gz"):
        if one["ph"] == "X":
            threads[one["pid"], one["tid"]].append((one["ts"], one["ts"] + one["dur"]))
    assert threads
    for ranges in threads.values():
        within: list[float] = []
        for start, end in sorted(ranges, key=lambda one: (one[0], -one[1])):
            while within and within[-1] <= start + 1e-3:
                within.pop()
            # Times have been rounded to nanoseconds.
            assert not within or end <= within[-1] + 2e-3
            within.append(end)


def test_what_is_told(command: Command) -> None:
    events = _read(command.folder / "out.json.gz")
    (copied,) = [one for one in events if one["ph"] == "i" and "MEM312" in one["name"]]
    assert copied["args"]["line"] == "train.py:10"
    at = [one for one in events if one["ph"] == "X" and one["args"].get("line") == "train.py:10"]
    assert copied["ts"] == min(one["ts"] for one in at)
    names = {(one["name"], one["args"]["name"]) for one in events if one["ph"] == "M"}
    assert names == {("process_name", "host"), ("thread_name", "thread 0")}
    assert {one["name"] for one in events if one["ph"] == "C"} == {"memory on cpu"}


def test_it_is_written_from_the_evidence_as_well(command: Command) -> None:
    done = command.memlint("report", "out.json", "--trace-event", "again.json")
    assert (done.stdout, done.stderr) == ("", "")
    again = json.loads((command.folder / "again.json").read_text("utf-8"))
    assert again["traceEvents"] == _read(command.folder / "out.json.gz")


def test_the_report_tells_the_step_by_phase(command: Command) -> None:
    profile = command.load("out.json")["profile"]
    report = command.memlint("report", "out.json").stdout
    rows = [row.split() for row in report.splitlines()]
    for phase in profile["phases"]:
        (row,) = [row for row in rows if row[:1] == [phase["phase"]]]
        assert int(row[1]) == phase["operations"]
    assert "memory on cpu: at most" in report
    assert "memory on cpu" not in command.memlint("report", "-q", "out.json").stdout


def test_without_a_profiled_step(command: Command) -> None:
    command.write("short.py", "import torch\ntorch.ones(3).exp()\n")
    options = ("--no-replay", "-q", "-o", "short.json", "--trace-event", "events.json")
    said = command.memlint("trace", *options, "short.py").stderr
    assert said == "events.json: not written, as no step was profiled\n"
    again = command.memlint("report", "short.json", "--trace-event", "events.json", status=2)
    assert again.stderr == "error: short.json: no step was profiled in this run\n"
    both = command.memlint(
        "trace", "--no-profile-step", "--trace-event", "events.json", "short.py", status=2
    )
    assert "--trace-event needs the step" in both.stderr
    assert not (command.folder / "events.json").exists()


def test_devices_are_processes(tmp_path: Path) -> None:
    event = {"name": "k", "site": None, "phase": "other", "start_us": 1.0, "us": 2.0, "thread": 7}
    profile = {
        "events": [{**event, "thread": 0, "device": "cpu"}, {**event, "device": "cuda:0"}],
        "events_left_out": 3,
        "memory": [{"device": "cuda:0", "points": [[0.0, 5]]}],
    }
    write_trace_event(tmp_path / "out.json", trace_event({"torch": "2"}, [], profile))
    written = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert written["otherData"]["events_left_out"] == 3
    places = {(one["pid"], one["tid"]) for one in written["traceEvents"] if one["ph"] == "X"}
    assert places == {(0, 0), (1, 7)}
    names = {
        (one["pid"], one["tid"]): one["args"]["name"]
        for one in written["traceEvents"]
        if one["name"] == "thread_name"
    }
    assert names == {(0, 0): "thread 0", (1, 7): "stream 7"}
