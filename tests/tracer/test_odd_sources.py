"""Where findings stand when the source is unusual, or not there to be read."""

from __future__ import annotations

import linecache
import os
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
import torch

import memlint
from memlint.findings import Finding
from memlint.tracer import Trace

IMAGES = torch.ones(4, 16, 64, 32)


def traced(work: Any) -> Trace:
    with memlint.trace(quiet=True, replay=False) as trace:
        for _ in range(3):
            work()
    trace.document()
    return trace


def hidden(trace: Trace) -> Finding:
    (found,) = [one for one in trace.findings if one.code == "MEM312"]
    return found


def function_of(path: Path, text: str | bytes) -> FunctionType:
    """The function ``work`` of a file with that text."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    names: dict[str, Any] = {"images": IMAGES}
    exec(compile(path.read_bytes(), str(path), "exec"), names)
    made = names["work"]
    assert isinstance(made, FunctionType)
    return made


COPY = "images.permute(0, 2, 3, 1).reshape(-1, 16)"


@pytest.mark.parametrize(
    "text",
    [
        f"work = lambda: {COPY}\n",
        f"def work(): {COPY}; return 1\n",
        f"def work(): return [{COPY} for _ in range(1)]\n",
        f"def work(): return f'{{{COPY}}}'[:2]\n",
        f"def both(function): return lambda: function()\n@both\ndef work(): return {COPY}\n",
        f"import functools\nwork = lambda: functools.partial(lambda x=1: {COPY})()\n",
        f"class Work:\n    def __call__(self): return {COPY}\ndef work(): Work()()\n",
        f"def work(): exec('1'); return eval({COPY!r}, globals())\n",
    ],
)
def test_a_line_is_found_however_its_code_is_written(tmp_path: Path, text: str) -> None:
    trace = traced(function_of(tmp_path / "odd.py", text))
    if "eval" in text:
        assert trace.findings == []
        assert "1 finding stands in no file that can be read" in trace.meta["blind_spots"]
        return
    line = text[: text.index(COPY)].count("\n") + 1
    assert hidden(trace).location.line == line


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no columns are told before Python 3.11")
def test_columns_are_counted_in_characters(tmp_path: Path) -> None:
    text = f"def work(): größe = 'ÄÖÜ€🙂'; return {COPY}\n"
    found = hidden(traced(function_of(tmp_path / "odd.py", text)))
    assert found.location.column == text.index(COPY) + 1
    assert found.location.end_column == text.index(COPY) + len(COPY) + 1


def test_other_encodings_are_read(tmp_path: Path) -> None:
    text = f"# coding: latin-1\ndef work(): größe = 1; return {COPY}\n".encode("latin-1")
    assert hidden(traced(function_of(tmp_path / "odd.py", text))).location.line == 2


@pytest.mark.parametrize("name", ["<string>", "<stdin>", "<ipython-input-3-abc>", "", "nowhere.py"])
def test_code_of_no_file_is_counted_and_told_of(name: str) -> None:
    names: dict[str, Any] = {"images": IMAGES}
    exec(compile(f"def work(): return {COPY}", name, "exec"), names)
    trace = traced(names["work"])
    assert trace.findings == []
    assert "1 finding stands in no file that can be read" in trace.meta["blind_spots"]
    assert "in no file that can be read" in " ".join(trace.report().split())


@pytest.mark.parametrize("name", ["/tmp/ipykernel_17/123.py", "<ipython-input-3-abc>"])
def test_cells_of_notebooks_are_read(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """They lie in no file; their text is put where tracebacks look for it."""
    text = f"x = 1\ndef work(): return {COPY}\n"
    monkeypatch.setitem(linecache.cache, name, (len(text), None, text.splitlines(True), name))
    names: dict[str, Any] = {"images": IMAGES}
    exec(compile(text, name, "exec"), names)
    found = hidden(traced(names["work"]))
    assert Path(found.path).name == Path(name).name
    assert found.location.line == 2


@pytest.mark.parametrize("left", [None, "x = (\n", "\0", "x = 1\n", "", b"\xff\xfe\x00"])
def test_a_source_that_changed_meanwhile(tmp_path: Path, left: str | bytes | None) -> None:
    path = tmp_path / "changing.py"
    work = function_of(path, f"\n\n\ndef work(): return {COPY}\n")

    def changing() -> None:
        work()
        if left is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(left.encode() if isinstance(left, str) else left)

    trace = traced(changing)
    assert [one for one in trace.findings if one.path.endswith("changing.py")] == []
    assert "1 finding stands in no file that can be read" in trace.meta["blind_spots"]


def test_a_program_may_go_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    work = function_of(Path("odd.py"), f"def work(): return {COPY}\n")

    def going() -> None:
        os.chdir(tmp_path / "deep")
        work()

    found = hidden(traced(going))
    assert (found.path, found.location.line) == ("odd.py", 1)


def test_frames_of_libraries_are_told_unless_they_are_excluded(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages" / "library"
    folder.mkdir(parents=True)
    library = function_of(folder / "layers.py", f"def work(): return {COPY}\n")
    names: dict[str, Any] = {"library": library}
    text = "\ndef work(): return library()\n"
    (tmp_path / "train.py").write_text(text)
    exec(compile(text, str(tmp_path / "train.py"), "exec"), names)
    assert hidden(traced(names["work"])).path.endswith("site-packages/library/layers.py")
    for options in ({"exclude": ["site-packages"]}, {"include": ["train.py"]}):
        with memlint.trace(quiet=True, replay=False, **options) as trace:
            names["work"]()
        assert hidden(trace).path.endswith("train.py")
        assert hidden(trace).location.line == 2
