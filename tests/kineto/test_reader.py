"""Traces are read event by event, whatever their form and wherever they end."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlint.kineto import reader
from memlint.kineto.reader import TraceFile, TraceFileError

EVENTS = [
    {"ph": "X", "name": "aten::add", "ts": 5190550801706.313, "dur": 0.5, "args": {"n": [1, -2]}},
    {"ph": "X", "name": 'a "quoted\\" kernel<µ>', "ts": 1e3, "args": {"x": None, "y": True}},
    {"ph": "i", "name": "Record Window End", "ts": 12},
]
SHARED = [HealthCheck.function_scoped_fixture]
"""Each example writes its file anew."""
HEADER = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceName": "t"}


def read(path: Path) -> tuple[list[Any], TraceFile]:
    file = TraceFile(path)
    return list(file.events()), file


def written(folder: Path, text: str | bytes, name: str = "trace.json") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def document(events: list[Any] = EVENTS, **options: Any) -> str:
    return json.dumps({**HEADER, "traceEvents": events}, **options)


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("first", [True, False])
def test_any_order_of_members(first: bool, indent: int | None, tmp_path: Path) -> None:
    every = {"traceEvents": EVENTS}
    whole = {**every, **HEADER} if first else {**HEADER, **every}
    events, file = read(written(tmp_path, json.dumps(whole, indent=indent)))
    assert (events, file.header, file.cut_short) == (EVENTS, HEADER, False)


def test_a_bare_list(tmp_path: Path) -> None:
    events, file = read(written(tmp_path, json.dumps(EVENTS)))
    assert (events, file.header, file.cut_short) == (EVENTS, {}, False)


def test_gzip_is_known_by_its_content(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(document().encode()), "trace.json")
    assert read(path)[0] == EVENTS


def test_names_with_control_characters(tmp_path: Path) -> None:
    text = document().replace("aten::add", "aten::add\n\tx")
    assert read(written(tmp_path, text))[0][0]["name"] == "aten::add\n\tx"


@given(size=st.integers(1, 40), ascii_only=st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=SHARED)
def test_pieces_of_any_size(
    size: int, ascii_only: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers, words, escapes and characters of several bytes may be cut anywhere."""
    monkeypatch.setattr(reader, "_CHUNK", size)
    text = document(EVENTS * 3, ensure_ascii=ascii_only)
    events, file = read(written(tmp_path, text))
    assert (events, file.header, file.cut_short) == (EVENTS * 3, HEADER, False)


@given(length=st.integers(1, len(document()) - 1), size=st.integers(1, 200))
@settings(max_examples=200, deadline=None, suppress_health_check=SHARED)
def test_a_file_that_breaks_off(
    length: int, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there is read, and it is known that there was more."""
    monkeypatch.setattr(reader, "_CHUNK", size)
    text = document()[:length]
    events, file = read(written(tmp_path, text))
    assert file.cut_short
    assert events == EVENTS[: len(events)]
    whole = sum(text.count(json.dumps(one)) for one in EVENTS)
    assert len(events) == whole


@pytest.mark.parametrize("lost", [1, 9, 40])
def test_gzip_that_breaks_off(lost: int, tmp_path: Path) -> None:
    data = gzip.compress(document(EVENTS * 400).encode())
    events, file = read(written(tmp_path, data[:-lost]))
    assert events == (EVENTS * 400)[: len(events)]
    assert file.cut_short == (len(events) < 1200)
    assert len(events) > 1000


def test_gzip_in_several_members(tmp_path: Path) -> None:
    data = document(EVENTS * 40).encode()
    path = written(tmp_path, gzip.compress(data[:500]) + gzip.compress(data[500:]))
    assert read(path)[0] == EVENTS * 40


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty, no profiler trace"),
        (b" \n", "empty, no profiler trace"),
        (b"import torch\n", "no JSON, so no profiler trace"),
        (b'{"version": 1, "findings": []}', "it has no `traceEvents`"),
        (b"[1, 2]", "not a list of events"),
        (b'{"traceEvents": 3}', "it has no `traceEvents`"),
        (b'{"traceEvents": [{"a": 1} {"b": 2}, {"c": 1, "d": 1, "e": 12345678901234}]}', "no JSON"),
        (b'{"traceEvents": [{"a": nope, "b": 1, "c": 12345678901234567890123456}]}', "no JSON"),
        (b"\x1f\x8b\x08\x00nothing of the kind", "damaged gzip data"),
    ],
)
def test_files_that_are_no_traces(content: bytes, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    with pytest.raises(TraceFileError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(TraceFileError, match="No such file"):
        read(tmp_path / "none.json")
    with pytest.raises(TraceFileError, match="a folder"):
        read(tmp_path)


def test_where_it_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place is counted from the start of the file."""
    monkeypatch.setattr(reader, "_CHUNK", 64)
    text = document(EVENTS * 20)
    wrong = text.index('"ts"', 1000)
    with pytest.raises(TraceFileError, match=f"at character {wrong:,}: "):
        read(written(tmp_path, text[:wrong] + "?" * 40 + text[wrong:]))
